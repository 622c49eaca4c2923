"""Scorers fitted on train, with the weights that left-out scores of train teach."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from plant_cli.api import (
    Analyser,
    Choice,
    ComponentError,
    Documents,
    LabelIndex,
    Options,
    PlantError,
    PluginError,
    Reporter,
    ScorerInput,
    ScorerSpec,
    Split,
    promises,
)
from plant_cli.api.scorers import short_ends
from plant_cli.data.blocks import stop_if_asked
from plant_cli.data.words import drop_unused, number_words
from plant_cli.relevance.weighing import BY_INFORMATION, RelevanceRule
from plant_cli.scoring.forecast import DOCUMENTS_REFITTED
from plant_cli.scoring.fused_scorers import (
    FusedScorers,
    NamedScorer,
    ScoredDocuments,
    ScorerError,
    ask,
    check_scores,
)
from plant_cli.scoring.fusion import fit_fusion, gather_pairs, learned_nothing
from plant_cli.scoring.kept_scorers import Fitted, KeptScorers
from plant_cli.scoring.known_words import KnownWords
from plant_cli.scoring.label_residuals import FittedResiduals, fit_residuals
from plant_cli.scoring.sparse_scores import SparseScores, order_shares
from plant_cli.scoring.top_labels import Rows

DOCUMENTS_LEFT_OUT = 1000  # training documents whose left-out scores teach the weights
DOCUMENTS_FOR_A_NOTE = 30  # documents from which on it is noted that a scorer tells no labels apart
_WORD = re.compile(r"[^\W\d_]{3}")


@dataclass(frozen=True, kw_only=True)
class FusionFit:
    """Scorers as they were fitted."""

    scorers: FusedScorers  # fitted on all of train
    rows: Rows  # training documents whose left-out scores taught the weights [b]
    left_out: ScoredDocuments  # these scores
    seconds: Mapping[str, float]  # that each scorer took
    missing: Mapping[str, str]  # why scorers were left out, by name
    validation: ScoredDocuments | None  # scores of validation; None without it
    residuals: FittedResiduals | None  # of single labels; None: left-out documents want none


def fit_scorers(
    chosen: Sequence[tuple[ScorerSpec, Options]],
    train: Split,
    words: Documents,
    labels: LabelIndex,
    analyser: Analyser,
    reporter: Reporter,
    *,
    seed: int,
    validation: Documents | None = None,
    allow_missing: bool = False,
    kept: KeptScorers | None = None,
    vocabulary: bool = True,
    added: Sequence[str] = (),
    rule: RelevanceRule = BY_INFORMATION,
) -> FusionFit | None:
    """Fit scorers on train, learn from left-out scores of a sample of train how much each counts,
    and score validation, if it is given.

    `words` are those of the training documents. A scorer that fails raises an error or, with
    `allow_missing`, is left out with a warning; None if no scorer is left. Scorers that were `kept`
    are not fitted again, and others are kept as soon as they are fitted. `vocabulary` is that of
    `fit_fusion`, and `added` are labels that people added to the corpus. `rule` finds the relevance
    of words.
    """
    may_fail: tuple[type[PlantError], ...] = (ComponentError, PluginError) if allow_missing else ()
    may_score_badly: tuple[type[ScorerError], ...] = (ScorerError,) if allow_missing else ()
    titles = (
        _find_titles(labels, reporter)
        if any(spec.needs_names or spec.zero_shot for spec, _ in chosen)
        else labels.titles
    )
    given = _gather_input(train, words, titles, labels.alternatives, analyser, reporter, seed, rule)
    others = _leave_out(given, given.rows, once=True) if len(train) > DOCUMENTS_REFITTED else None
    fitted: dict[str, Fitted] = {}
    missing: dict[str, str] = {}
    seconds: dict[str, float] = {}
    with reporter.progress("fitting scorers", len(chosen), "scorers") as task:
        for spec, options in chosen:
            stop_if_asked()
            started = time.perf_counter()
            if spec.needs_names and not len(given.names):
                missing[spec.name] = "no label has a title"
                reporter.note(f"scorer {spec.name}: left out, no label has a title")
                task.advance(1)
                continue
            try:
                fitted[spec.name] = _fit(spec, options, given, others, kept)
            except may_fail as error:
                missing[spec.name] = error.what
                reporter.warn(f"{error.what}: it is left out")
            seconds[spec.name] = time.perf_counter() - started
            task.advance(1)
    zero_shot = {spec.name: spec.zero_shot for spec, _ in chosen}
    while fitted:
        left_out, residuals = _weigh(
            fitted, given, zero_shot, vocabulary, np.isin(labels.ids, list(added))
        )
        scorers = left_out.scorers
        try:
            scored = (
                None if validation is None else scorers.score(validation, reporter, "validation")
            )
            return FusionFit(
                scorers=scorers,
                rows=given.rows,
                left_out=left_out,
                seconds=seconds,
                missing=missing,
                validation=scored,
                residuals=residuals,
            )
        except may_score_badly as error:
            missing[error.name] = error.what
            reporter.warn(f"{error.what}: it is left out, and the others are weighed anew")
            del fitted[error.name]
    return None


def _gather_input(
    train: Split,
    words: Documents,
    titles: Sequence[str | None],
    alternatives: Sequence[Sequence[str]],
    analyser: Analyser,
    reporter: Reporter,
    seed: int,
    rule: RelevanceRule,
) -> ScorerInput:
    sample = np.random.default_rng(seed).permutation(len(train))[:DOCUMENTS_LEFT_OUT]
    names, spelt, label_of = list[str](), list[tuple[str, ...]](), list[int]()
    for label, (title, others) in enumerate(zip(titles, alternatives, strict=True)):
        known = set[tuple[str, ...]]()  # the words of its names
        for name in (title, *others):
            own = tuple(analyser.spell(name or ""))
            if name and own and own not in known:
                known.add(own)
                names.append(name)
                spelt.append(own)
                label_of.append(label)
    kept, ends = train.gold, short_ends(train.gold.indptr)
    # Columns in 64 bits would widen, for each product, those of the documents, too.
    gold = csr_array(
        (kept.data.astype(np.int64), kept.indices.astype(np.int32), ends), shape=kept.shape
    )
    gold.sort_indices()
    return ScorerInput(
        documents=words,
        doc_ids=tuple(train.doc_ids),
        gold=gold,
        names=replace(number_words(spelt), texts=names),
        label_of=np.array(label_of, dtype=np.int64),
        rows=np.sort(sample).astype(np.int64),
        reporter=reporter,
        relate=rule.relate,
    )


def _find_titles(labels: LabelIndex, reporter: Reporter) -> Sequence[str | None]:
    """The titles of labels; where no label has one and most ids are words, the ids."""
    if any(labels.titles) or any(labels.alternatives):
        return labels.titles
    words = [label for label in labels.ids if _is_of_words(label)]
    if len(words) <= len(labels.ids) / 2:
        return labels.titles
    reporter.note(
        f"no label has a title, but most ids are words, such as '{max(words, key=str.isalpha)}': "
        "scorers read them as titles"
    )
    return labels.ids


def _is_of_words(label: str) -> bool:
    """Whether an id is not an address, has three letters in a row, and more letters than other
    characters.
    """
    return (
        "://" not in label
        and _WORD.search(label) is not None
        and 2 * sum(map(str.isalpha, label)) > len(label)
    )


def _fit(
    spec: ScorerSpec,
    options: Options,
    given: ScorerInput,
    others: ScorerInput | None,
    kept: KeptScorers | None,
) -> Fitted:
    """Fit a scorer on all training documents, or on the `others` of those whose scores teach
    the weights; or take one that was kept.
    """
    if kept is not None and (found := kept.find(spec, options)) is not None:
        given.reporter.note(f"scorer {spec.name}: as it was fitted before the stop")
        return found
    shape = (len(given.rows), given.gold.shape[1])
    fitted = ask(spec.name, "cannot be fitted", lambda: spec.fit(options, others or given))
    tensors = ask(
        spec.name, "cannot be saved", fitted.scorer.tensors, promises.ARRAYS
    )  # better now than after hours of training

    def score_left_out() -> Sequence[csr_array]:
        if others is not None:
            return fitted.scorer.score(given.documents.take(given.rows))
        return (
            _leave_folds_out(spec, options, given) if fitted.left_out is None else fitted.left_out
        )

    left_out = check_scores(spec.name, score_left_out, shape)
    if spec.needs_names and not any(
        _tells_apart(order_shares(view, csr_array(given.gold[given.rows]))) for view in left_out
    ):
        given.reporter.note(
            f"scorer {spec.name}: tells no labels apart here; are titles in the language of the "
            "texts?"
        )
    chosen = Choice(name=spec.name, options=options.model_dump(mode="json"))
    named = NamedScorer(chosen=chosen, scorer=fitted.scorer, views=len(left_out)), left_out
    if kept is not None:
        kept.keep(named, tensors)
    return named


def _tells_apart(shares: npt.NDArray[np.float64]) -> bool:
    """Whether pairs of labels are in the right order more often than by chance; few documents
    are no reason to doubt it.
    """
    return (
        len(shares) < DOCUMENTS_FOR_A_NOTE
        or float(shares.mean()) - 2 * float(shares.std(ddof=1)) / len(shares) ** 0.5 > 0.5
    )


def _leave_folds_out(spec: ScorerSpec, options: Options, given: ScorerInput) -> list[csr_array]:
    """Scores of `given.rows` by scorers that were fitted without their fold."""
    if len(given.documents) < 2:
        return [SparseScores.none(len(given.rows), given.gold.shape[1]).matrix]
    parts, folds = [], given.cut_folds()
    for fold in folds:
        others = _leave_out(given, given.rows[fold])
        parts.append(spec.fit(options, others).scorer.score(given.documents.take(given.rows[fold])))
    order = np.argsort(np.concatenate(folds))
    return [
        csr_array(csr_array(vstack(view, format="csr"))[order]) for view in zip(*parts, strict=True)
    ]


def _leave_out(given: ScorerInput, rows: Rows, *, once: bool = False) -> ScorerInput:
    """The training documents without some; what is left of them `once` has no word that none of
    them has.
    """
    kept = np.setdiff1d(np.arange(len(given.documents)), rows)
    documents = given.documents.take(kept)
    documents = drop_unused(documents) if once else documents
    gold, doc_ids = csr_array(given.gold[kept]), [given.doc_ids[row] for row in kept]
    return replace(
        given, documents=documents, doc_ids=doc_ids, gold=gold, rows=np.zeros(0, dtype=np.int64)
    )


def _weigh(
    fitted: Mapping[str, Fitted],
    given: ScorerInput,
    zero_shot: Mapping[str, bool],
    vocabulary: bool,
    added: npt.NDArray[np.bool_],
) -> tuple[ScoredDocuments, FittedResiduals | None]:
    """Left-out scores of train by the scorers, and the weights that they teach; some labels
    were `added` [L].
    """
    counts = np.bincount(given.gold.indices, minlength=given.gold.shape[1]).astype(np.int64)
    counts[added & np.isin(np.arange(len(counts)), given.label_of)] *= -1
    pairs, gold = (
        gather_pairs([view for _, views in fitted.values() for view in views]),
        csr_array(given.gold[given.rows]),
    )
    ends = [0, *accumulate(len(views) for _, views in fitted.values())]
    able = [zero_shot[name] for name, (_, views) in fitted.items() for _ in views]
    alone = {
        name: fit_fusion(
            pairs.take(range(first, last)),
            gold,
            counts,
            left_out=True,
            zero_shot=able[first:last],
            vocabulary=vocabulary,
        )
        for name, first, last in zip(fitted, ends[:-1], ends[1:], strict=True)
    }
    fusion = (
        next(iter(alone.values()))
        if len(alone) == 1
        else fit_fusion(pairs, gold, counts, left_out=True, zero_shot=able, vocabulary=vocabulary)
    )
    if learned_nothing(fusion):
        given.reporter.warn(
            "the weights of the scorers could not be learned, so all count alike: in the sample "
            f"of {len(given.rows)} training documents "
            "no label has both another training document and a place in the list of a scorer"
        )
    scorers = [scorer for scorer, _ in fitted.values()]
    known = KnownWords.fit(given.documents, given.names, given.rows)
    residuals = fit_residuals(pairs, gold, counts, fusion)
    fused = FusedScorers(
        scorers=scorers,
        fusion=fusion,
        alone=alone,
        train_counts=counts,
        known=known,
        residuals=None if residuals is None else residuals.residuals,
    )
    left_out = ScoredDocuments(
        scorers=fused,
        pairs=pairs,
        documents=given.documents.take(given.rows),
        crossed=None if residuals is None else residuals.crossed,
    )
    return left_out, residuals
