"""Scorers in stage 2, alone or with a network: they are fitted on train and measured on
validation. This module imports no torch.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import plant_cli
from plant_cli.api import (
    Corpus,
    DataError,
    Documents,
    MachineSection,
    ScorerSpec,
    Split,
    SplitName,
    StageContext,
)
from plant_cli.api.components import ComponentLookup
from plant_cli.data.blocks import checking
from plant_cli.data.changed_labels import read_label_edits
from plant_cli.data.corpus_files import CorpusRecord
from plant_cli.data.files import read_size
from plant_cli.data.training_part import TrainingPart
from plant_cli.data.words import drop_unused
from plant_cli.evaluation.threshold_tuning import Objective
from plant_cli.relevance.mig_options import MigOptions
from plant_cli.relevance.relevance_table import read_edits
from plant_cli.relevance.weighing import BY_INFORMATION, RelevanceRule, make_rule
from plant_cli.runs.dask_workers import working_at
from plant_cli.runs.folder import CHECKPOINTS_FOLDER, StageFolder
from plant_cli.runs.machine import available_memory
from plant_cli.runs.session import Session
from plant_cli.runs.word_store import open_words
from plant_cli.scoring.calibration import Calibrated, calibrate
from plant_cli.scoring.decisions import Bands
from plant_cli.scoring.excluded_labels import find_excluded
from plant_cli.scoring.forecast import require_resources
from plant_cli.scoring.fused_scorers import Combination, FusedScorers, ScoredDocuments, score_parts
from plant_cli.scoring.kept_scorers import KeptScorers
from plant_cli.scoring.known_words import find_common
from plant_cli.scoring.scorer_files import write_scorers
from plant_cli.scoring.scorer_fitting import FusionFit, fit_scorers
from plant_cli.scoring.top_labels import Rows, TopLabels
from plant_cli.training.judging import LABELS_JUDGED, Judge, find_families
from plant_cli.training.training_options import FinetuneOptions

ALONE = (1.0,)  # weight of the scorers where validation says nothing


@dataclass(frozen=True, kw_only=True)
class StageInputs:
    """What a stage works from, with a network or without one:
    `plant_network.materials.Inputs` adds the network.
    """

    corpus: Corpus
    machine: MachineSection  # the seed; for a network, device and precision, too
    session: Session
    component: ComponentLookup  # finds scorers, losses, metrics and shortlists
    rule: RelevanceRule = BY_INFORMATION  # finds the relevance of words, for scorers that ask

    def words(self, name: SplitName) -> Documents:
        """The words of a split."""
        check = partial(self.session.check, "while words were counted", "all words counted")
        return open_words(self.session, self.corpus, name, check=check).documents


@dataclass(frozen=True, kw_only=True)
class AloneResult:
    """What scorers reached without a network."""

    fit: FusionFit
    # of figures and threshold: validation, or train by left-out scores where there is no validation
    split: str
    figures: Mapping[
        str, float
    ]  # of all scorers together, probabilities calibrated without each document's fold
    parts: Mapping[str, Mapping[str, float]]  # of each scorer alone, by its name
    calibrated: Calibrated
    threshold: float  # for all labels
    bands: Bands
    conditions: str  # which documents and labels the figures are of


def finetune_scorers(given: StageInputs, options: FinetuneOptions) -> AloneResult:
    """Fit scorers on train, calibrate them and tune the threshold on validation; all is saved
    in the stage's folder.
    """
    with checking(
        partial(
            given.session.check,
            "while scorers were calibrated",
            "scorers that are fitted and calibrated",
        )
    ):
        fit = require_fit(fit_chosen(given, options), given.session.folder)
        corpus, scored = given.corpus, fit.validation or fit.left_out
        split = (
            corpus.gold_labels("train").take(fit.rows)
            if fit.validation is None
            else corpus.gold_labels("validation")
        )
        judge = make_judge(given, options, split)
        calibrated, top = rank_scored(judge, scored, left_out=fit.validation is None)
        parts, figures = judge_parts(judge, scored), judge.figures(top)
        save_combination(
            given, build_combination(judge, calibrated, fit.scorers), calibrated, parts, fit
        )
        return AloneResult(
            fit=fit,
            split=split.name,
            figures=figures,
            parts=parts,
            calibrated=calibrated,
            threshold=judge.save_thresholds(top, options.tune, given.session, corpus.labels.hash),
            bands=judge.save_bands(top, given.session, corpus.labels.hash),
            conditions=judge.conditions,
        )


def require_fit(fit: FusionFit | None, folder: Path) -> FusionFit:
    """What was fitted for a stage in that folder; `DataError` where no scorer was left."""
    if fit is None:
        raise DataError(
            "no scorer is left that fits the corpus",
            where=str(folder),
            expected="at least one scorer that fits the corpus: `titles` needs titles of labels",
            todo="name other scorers: --scorers words,neighbours,linear",
        )
    return fit


def fit_chosen(
    given: StageInputs, options: FinetuneOptions, rows: Rows | None = None
) -> FusionFit | None:
    """Fit the scorers that the options name, and score validation; None without scorers. A stop
    leaves those that are fitted.

    With `rows` they are fitted on these training documents alone; validation is not looked at, and
    nothing is kept.
    """
    corpus = given.corpus
    if not options.chosen_scorers:
        return None
    chosen = [given.component(ScorerSpec, one) for one in options.chosen_scorers]
    needs_texts = any(spec.needs_texts for spec, _ in chosen)

    def read(name: SplitName) -> Documents:
        words = given.words(name)
        return replace(words, texts=corpus.split(name).texts) if needs_texts else words

    train, words = corpus.gold_labels("train"), read("train")
    if rows is not None:
        train, words = train.take(rows), drop_unused(words.take(rows))
    if any(hasattr(options, "pieces") for _, options in chosen):  # it compares documents
        _require_room(given, words, train.gold.nnz / max(1, len(words)))
    source = CorpusRecord.read(given.session.run_path / "corpus").source
    edits = _find_edits(source, given.session.run_path)
    stoppable = checking(
        partial(given.session.check, "while scorers were fitted", "all scorers fitted")
    )
    with stoppable, working_at(given.machine.scheduler):
        return fit_scorers(
            chosen,
            train,
            words,
            corpus.labels,
            corpus.analyser,
            given.session.reporter,
            seed=given.machine.seed,
            validation=read("validation")
            if rows is None and corpus.has_split("validation")
            else None,
            allow_missing=options.allow_missing,
            kept=_keep(given) if rows is None else None,
            vocabulary=edits is None or bool(source.get("zero_shot")),
            added=() if edits is None else [*read_label_edits(edits).added],
            rule=given.rule,
        )


def _require_room(given: StageInputs, words: Documents, labels: float) -> None:
    """Refuse what memory or disk cannot hold; `labels` that a document has on average."""
    limit = given.machine.memory_limit
    require_resources(
        words,
        labels,
        len(given.corpus.labels),
        None if limit is None else read_size(limit),
        available_memory(),
        shutil.disk_usage(given.session.folder).free,
        given.session.reporter,
    )


def _find_edits(source: Mapping[str, Any], run_path: Path) -> Path | None:
    """The table of edits of labels; in the run, where this was moved."""
    if source.get("label_edits") is None:
        return None
    edits = Path(source["label_edits"])
    return edits if edits.exists() else run_path / edits.name


def _keep(given: StageInputs) -> KeptScorers:
    corpus, machine = given.corpus, given.machine
    origin = {
        "plant": plant_cli.__version__,
        "data": corpus.data_hash,
        "labels": corpus.labels.hash,
        "analyser": corpus.analyser.hash,
        "seed": machine.seed,
        "relevance": given.rule.hash,
    }
    return KeptScorers(
        folder=given.session.folder / CHECKPOINTS_FOLDER,
        origin=origin,
        warn=given.session.reporter.warn,
    )


def rank_scored(
    judge: Judge, scored: ScoredDocuments, *, left_out: bool = False
) -> tuple[Calibrated, TopLabels]:
    """Calibrate scorers without a network on a split, and rank their best labels there, each
    document by weights fitted on the other folds.

    Pairs that no scorer lists come after those that one does. `left_out`: the split is train and
    the scores are left-out ones.
    """
    pairs = scored.as_source()
    counts = judge.train_counts[: judge.labels]
    calibrated = calibrate(
        pairs, judge.sorted_gold, counts, prior=ALONE, by_frequency=True, left_out=left_out
    )
    every = TopLabels.of(
        build_combination(judge, calibrated, scored.scorers).calibrate(scored), LABELS_JUDGED
    )
    best = pairs.top(
        scored.draw(calibrated.logits, pairs.rows, counts[pairs.labels]), LABELS_JUDGED
    )
    is_full = (
        np.bincount(pairs.rows, minlength=pairs.shape[0]) >= min(LABELS_JUDGED, pairs.shape[1])
    )[:, None]
    labels, scores = (
        np.where(is_full, best.labels, every.labels),
        np.where(is_full, best.scores, every.scores),
    )
    return calibrated, TopLabels(labels=labels, scores=scores, assigned_share=every.assigned_share)


def build_combination(
    judge: Judge, calibrated: Calibrated, scorers: FusedScorers | None
) -> Combination:
    """Scorers beside a network, or without one, under a calibration; without scorers there is a
    network alone.
    """
    counts = judge.train_counts[: judge.labels] if scorers is None else scorers.train_counts
    return Combination(
        scorers=scorers,
        calibration=calibrated.calibration,
        train_counts=counts,
        excluded=judge.excluded,
    )


def make_judge(given: StageInputs, options: FinetuneOptions, split: Split) -> Judge:
    """What measures scores of a split."""
    objective: Objective = "micro-F1" if options.tune == "micro-F1" else "macro-F1"
    judge = Judge(
        split,
        given.corpus.labels,
        given.corpus.sizes["train"],
        find_families(given.component),
        objective,
    )
    judge.excluded = find_excluded(options.exclude, given.corpus.labels)
    judge.target = options.target
    return judge


def judge_parts(judge: Judge, scored: ScoredDocuments) -> dict[str, dict[str, float]]:
    """Figures of each scorer alone."""
    return {name: judge.figures(top) for name, top in score_parts(scored, LABELS_JUDGED).items()}


def _describe_residuals(fit: FusionFit) -> dict[str, Any]:
    if fit.residuals is None:
        return {}
    labels, gain = len(fit.residuals.residuals.labels), asdict(fit.residuals.gain)
    return {
        "residuals": {"labels": labels, "strength": fit.residuals.strength, "log_loss_saved": gain}
    }


def save_combination(
    given: StageInputs,
    combination: Combination,
    calibrated: Calibrated,
    parts: Mapping[str, Mapping[str, float]],
    fit: FusionFit | None,
) -> None:
    """Write the scorers and the calibration into the stage's folder, with what was measured on
    validation.
    """
    figures: dict[str, Any] = {
        "calibration_before": calibrated.before.to_json(),
        "calibration": calibrated.reliability.to_json(),
        "calibration_method": calibrated.method,
        "calibration_losses": {name: asdict(losses) for name, losses in calibrated.losses.items()},
        "parts": {name: dict(figures) for name, figures in parts.items()},
        **({} if fit is None else {"missing": dict(fit.missing), **_describe_residuals(fit)}),
    }
    corpus = given.corpus
    if combination.scorers is None:
        words = given.words("train")
        common = find_common(words.frequencies, len(words))
        combination = replace(
            combination, common=frozenset(words.vocabulary[word] for word in common)
        )
    part = isinstance(corpus, TrainingPart) or bool((combination.train_counts < 0).any())
    write_scorers(
        given.session.folder,
        combination,
        figures,
        corpus.labels.hash,
        corpus.analyser.hash,
        own_counts=part,
    )
    _keep(given).drop()


def find_rule(context: StageContext, options: FinetuneOptions) -> RelevanceRule:
    """How the run finds the relevance of words, where a scorer asks for it; by mutual
    information where it has not yet.
    """
    asked = any(
        context.component(ScorerSpec, one)[0].needs_relevance for one in options.chosen_scorers
    )
    folder = context.find_input("mig", options.relevance) if asked else None
    if folder is None:
        return BY_INFORMATION
    record = StageFolder(folder).record()
    given = MigOptions() if record is None else MigOptions(**record.options)
    return make_rule(context.corpus(), given, context.component, read_edits(folder))
