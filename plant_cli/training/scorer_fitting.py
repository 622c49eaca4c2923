"""Scorers in stage 2: fitted on train, judged on validation; with a network beside them or alone. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from plant_cli.api import Corpus, DataError, MachineSection, ScorerSpec, Split
from plant_cli.network.design import ComponentLookup
from plant_cli.runs.session import Session
from plant_cli.scoring.calibration import Calibrated, Pairs, calibrate, describe_reliability, list_scored
from plant_cli.scoring.models import Combination, list_calibrated, save_combination, score_parts
from plant_cli.scoring.scorers import FittedScorers, FusedScorers, ScoredDocuments, ScorerError, fit_scorers
from plant_cli.scoring.top import TopLabels
from plant_cli.training.judging import KEPT, Judge, find_families
from plant_cli.training.options import FinetuneOptions

ALONE = (1.0,)  # weight of the scorers where validation says nothing


@dataclass(frozen=True, kw_only=True)
class ScorerInputs:
    """What scorers are fitted from.

    Args:
        corpus: the documents.
        machine: the seed; a network is told its device and precision, too.
        session: of the stage.
        component: finds scorers, losses, metrics and shortlists.
    """

    corpus: Corpus
    machine: MachineSection
    session: Session
    component: ComponentLookup


@dataclass(frozen=True, kw_only=True)
class Scored:
    """What scorers reached without a network.

    Args:
        scorers: as they were fitted.
        split: what figures and threshold are of: validation, or train by left-out scores where there is no validation.
        figures: of all scorers together, probabilities calibrated without each document's part.
        parts: of each scorer alone, by its name.
        calibrated: what makes probabilities of their sum, and how well they hold.
        threshold: the decision threshold for all labels.
        conditions: which documents and labels the figures are of.
    """

    scorers: FittedScorers
    split: str
    figures: Mapping[str, float]
    parts: Mapping[str, Mapping[str, float]]
    calibrated: Calibrated
    threshold: float
    conditions: str


def score_alone(given: ScorerInputs, options: FinetuneOptions) -> Scored:
    """Fit scorers on train, calibrate them and tune the threshold on validation; all is saved in the stage's folder.

    Raises:
        ComponentError: a scorer fails.
        Interrupted: the user stopped the command.
        DataError: no scorer is left that could say anything.
    """
    scorers, scored = fit_beside(given, options)
    if scorers is None:
        raise _nothing_left(given)
    corpus, folder = given.corpus, given.session.folder
    has_validation = scored is not None
    split = corpus.split("validation") if has_validation else corpus.split("train").take(scorers.taught)
    found = scored or scorers.left_out
    judge = make_judge(given, options, split)
    counts = judge.train_counts[: len(corpus.labels)]
    calibrated, whole = rank_scored(judge, found, left_out=not has_validation)
    combination = combine(calibrated, scorers.scorers, counts)
    parts = judge_parts(judge, found)
    figures = judge.figures(whole)
    save_combination(combination, folder, corpus, describe(calibrated, parts, scorers))
    return Scored(
        scorers=scorers,
        split=split.name,
        figures=figures,
        parts=parts,
        calibrated=calibrated,
        threshold=judge.save_thresholds(whole, options.tune, given.session, corpus.labels.hash),
        conditions=judge.conditions,
    )


def rank_scored(judge: Judge, scored: ScoredDocuments, *, left_out: bool = False) -> tuple[Calibrated, TopLabels]:
    """Scorers without a network, calibrated on a split, and their best labels for it; each document's by weights learned without its part.

    Args:
        judge: of the split.
        scored: what they say of it.
        left_out: the split is train and the scores are left-out ones.
    """
    pairs, counts = list_scored(scored), judge.train_counts[: judge.labels]
    calibrated = calibrate(pairs, judge.sorted_gold, counts, prior=ALONE, by_frequency=True, left_out=left_out)
    return calibrated, _rank(scored, pairs, calibrated, combine(calibrated, scored.scorers, counts))


def combine(calibrated: Calibrated, scorers: FusedScorers | None, train_counts: npt.NDArray[np.int64]) -> Combination:
    """Scorers beside a network, or without one, under a calibration.

    Args:
        calibrated: as learned.
        scorers: None: there is a network alone.
        train_counts: training documents of each label [L].
    """
    return Combination(scorers=scorers, calibration=calibrated.fusion, train_counts=train_counts, curves=calibrated.curves)


def fit_beside(given: ScorerInputs, options: FinetuneOptions) -> tuple[FittedScorers | None, ScoredDocuments | None]:
    """Fit the scorers beside a network and score validation by them; None without scorers, or without validation.

    Raises:
        ComponentError: a scorer fails.
        Interrupted: the user stopped the command.
    """
    if not options.chosen_scorers:
        return None, None
    corpus, reporter = given.corpus, given.session.reporter
    chosen = [given.component(ScorerSpec, one) for one in options.chosen_scorers]
    missing: dict[str, str] = {}
    while True:
        fitted = fit_scorers(
            chosen,
            corpus.split("train"),
            corpus.labels,
            corpus.analyser,
            reporter,
            seed=given.machine.seed,
            allow_missing=options.allow_missing,
            check=partial(given.session.check, "while scorers were fitted", "all scorers fitted"),
        )
        if fitted is None:
            return None, None
        fitted = replace(fitted, missing={**missing, **fitted.missing})
        if not corpus.has_split("validation"):
            return fitted, None
        try:
            return fitted, fitted.scorers.read(corpus.split("validation").texts, reporter, "validation")
        except ScorerError as error:
            if not options.allow_missing:
                raise
            reporter.warn(f"{error.what}: it is left out, and the others are fitted anew")
            missing[error.name] = error.what
            chosen = [(spec, own) for spec, own in chosen if spec.name != error.name]


def make_judge(given: ScorerInputs, options: FinetuneOptions, split: Split) -> Judge:
    """What measures scores of a split."""
    objective = "micro-F1" if options.tune == "micro-F1" else "macro-F1"
    return Judge(split, given.corpus.labels, given.corpus.sizes["train"], find_families(given.component), objective)  # type: ignore[arg-type]


def judge_parts(judge: Judge, scored: ScoredDocuments) -> dict[str, dict[str, float]]:
    """Figures of each scorer alone."""
    return {name: judge.figures(top) for name, top in score_parts(scored, KEPT).items()}


def describe(calibrated: Calibrated, parts: Mapping[str, Mapping[str, float]], scorers: FittedScorers | None) -> dict[str, Any]:
    """What `scorers.json` and the stage's record say of them."""
    return {
        "calibration_before": describe_reliability(calibrated.before),
        "calibration": describe_reliability(calibrated.reliability),
        "calibration_method": calibrated.method,
        "calibration_losses": {name: asdict(losses) for name, losses in calibrated.losses.items()},
        "parts": {name: dict(figures) for name, figures in parts.items()},
        **({} if scorers is None else {"missing": dict(scorers.missing)}),
    }


def _rank(scored: ScoredDocuments, pairs: Pairs, calibrated: Calibrated, combination: Combination) -> TopLabels:
    """The best labels by calibrated logits; pairs that no scorer lists come after those that one does."""
    every = list_calibrated(combination, scored).best(KEPT)
    best = pairs.best(calibrated.logits, KEPT)
    listed = np.bincount(pairs.rows, minlength=pairs.shape[0]) >= min(KEPT, pairs.shape[1])
    return TopLabels(
        labels=np.where(listed[:, None], best.labels, every.labels),
        scores=np.where(listed[:, None], best.scores, every.scores),
        assigned_share=every.assigned_share,
    )


def _nothing_left(given: ScorerInputs) -> DataError:
    return DataError(
        "no scorer is left that could say anything",
        where=str(given.session.folder),
        expected="at least one scorer that fits the corpus: `titles` needs titles of labels",
        todo="name other scorers: --scorers words,neighbours,linear",
    )
