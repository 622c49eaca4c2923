"""Scorers of a model: fitted on train, scored, fused, with their reasons."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeVar

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
    Reason,
    Reporter,
    Scorer,
    ScorerInput,
    ScorerSpec,
    Split,
)
from plant_cli.scoring.fusion import Candidates, Fusion, fit_fusion, fuse_rows, gather_candidates, hat_weights
from plant_cli.scoring.lexical import number_words
from plant_cli.scoring.predictions import NETWORK
from plant_cli.scoring.scores import Scores, cut_folds, no_scores, order_shares

Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class NamedScorer:
    """A scorer under its name.

    Args:
        chosen: its name and all its options.
        scorer: fitted on train.
        views: views that it takes of a document.
    """

    chosen: Choice
    scorer: Scorer
    views: int

    @property
    def name(self) -> str:
        """What it is called."""
        return self.chosen.name

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        """What it says for some labels of one document; `ScorerError` if it fails."""
        return ask(self.name, "cannot say why", lambda: list(self.scorer.explain(document, labels)))

    def score(self, documents: Documents, labels: int) -> list[Scores]:
        """Scores of documents under each view.

        Raises:
            ComponentError: the scorer fails, or its scores are not what was promised.
        """
        if not len(documents):
            return [Scores(matrix=csr_array(np.zeros((0, labels), dtype=np.float32)), floor=np.zeros(0, dtype=np.float32))] * self.views
        return check_scores(self.name, lambda: self.scorer.score(documents), (len(documents), labels), self.views)


def check_scores(name: str, score: Callable[[], Sequence[csr_array]], shape: tuple[int, int], views: int | None = None) -> list[Scores]:
    """What a scorer says, if it is what was promised.

    Args:
        name: of the scorer.
        score: asks it.
        shape: documents and labels.
        views: that it must take; None: any number from 1 on.

    Raises:
        ScorerError: it fails, or says something else.
    """
    found = ask(name, "fails", lambda: [Scores.of(view) for view in score()])
    if not found or (views is not None and len(found) != views):
        raise ScorerError(name, f"takes {len(found)} views of documents, not {views or 'one or more'}")
    for view in found:
        if view.matrix.shape != shape:
            raise ScorerError(name, f"gives scores {view.matrix.shape}, not {shape} (documents, labels)")
        if not np.isfinite(view.matrix.data).all():
            raise ScorerError(name, "gives scores that are not numbers")
    return found


class ScorerError(ComponentError):
    """A scorer fails.

    Args:
        name: of the scorer.
        what: it does.
    """

    def __init__(self, name: str, what: str) -> None:
        super().__init__(
            f"the scorer '{name}' {what}",
            where=f"option scorers, '{name}'",
            expected="finite scores of every document for the labels of train",
            todo=f"train without it (`plant finetune --scorers` with other names); while training, --allow-missing leaves '{name}' out",
        )
        self.name = name


def ask(name: str, what: str, call: Callable[[], Answer]) -> Answer:
    """What a scorer answers.

    Args:
        name: of the scorer.
        what: is said if it fails, such as "fails".
        call: asks it.

    Raises:
        ScorerError: it fails.
    """
    try:
        return call()
    except (PlantError, MemoryError):
        raise
    except Exception as error:
        raise ScorerError(name, f"{what}: {type(error).__name__}: {error}") from error


Rows = npt.NDArray[np.int64]
TAUGHT = 1000  # training documents whose left-out scores teach the weights
FEW = 30  # documents from which on it is said that a scorer tells no labels apart
Chosen = Sequence[tuple[ScorerSpec, Options]]


def read_words(texts: Iterable[str], analyser: Analyser) -> Documents:
    """Texts in words, as the corpus counts them."""
    return number_words(analyser.spell(text) for text in texts)


@dataclass(frozen=True, kw_only=True)
class FusedScorers:
    """Several scorers as one.

    Args:
        scorers: in the order of the weights.
        fusion: weights of the views of all.
        alone: weights of the views of each, when it is used alone.
        train_counts: training documents of each label [L].
        analyser: finds the words of texts.
    """

    scorers: Sequence[NamedScorer]
    fusion: Fusion
    alone: Mapping[str, Fusion]
    train_counts: npt.NDArray[np.int64]
    analyser: Analyser

    def read(self, texts: Sequence[str], reporter: Reporter, name: str, *, keep_words: bool = False) -> ScoredDocuments:
        """Score texts.

        Args:
            texts: one a document [B].
            reporter: where progress goes.
            name: of the texts, for progress.
            keep_words: whether the documents are kept in words, too, for reasons.

        Raises:
            ComponentError: a scorer fails.
        """
        documents = read_words(texts, self.analyser)
        found: list[Scores] = []
        with reporter.progress(f"scorers: {name}", len(self.scorers), "scorers") as task:
            for scorer in self.scorers:
                found += scorer.score(documents, len(self.train_counts))
                task.advance(1)
        return ScoredDocuments(scorers=self, candidates=gather_candidates(found), documents=documents if keep_words else None)

    def views_of(self, name: str) -> list[int]:
        """The places of a scorer's views among all."""
        ends = [0, *accumulate(scorer.views for scorer in self.scorers)]
        place = [scorer.name for scorer in self.scorers].index(name)
        return list(range(ends[place], ends[place + 1]))


@dataclass(frozen=True, kw_only=True)
class ScoredDocuments:
    """Documents that all scorers have scored.

    Args:
        scorers: that scored them.
        candidates: what they say.
        documents: in words, where these were kept.
    """

    scorers: FusedScorers
    candidates: Candidates
    documents: Documents | None = None

    def __len__(self) -> int:
        return self.candidates.shape[0]

    def logits(self, rows: Rows) -> npt.NDArray[np.float32]:
        """What all scorers say together of some documents [b, L]."""
        return fuse_rows(self.scorers.fusion, self.candidates, self.scorers.train_counts, rows)


@dataclass(frozen=True, kw_only=True)
class FittedScorers:
    """Scorers as they were fitted.

    Args:
        scorers: fitted on all of train.
        taught: training documents whose left-out scores taught the weights [b].
        left_out: these scores.
        seconds: that each scorer took.
        missing: why scorers were left out, by name.
    """

    scorers: FusedScorers
    taught: Rows
    left_out: ScoredDocuments
    seconds: Mapping[str, float]
    missing: Mapping[str, str] = field(default_factory=dict)


def fit_scorers(
    chosen: Chosen,
    train: Split,
    labels: LabelIndex,
    analyser: Analyser,
    reporter: Reporter,
    *,
    seed: int,
    allow_missing: bool = False,
    check: Callable[[], None] = lambda: None,
) -> FittedScorers | None:
    """Fit scorers on train, and learn from left-out scores of train how much each counts.

    Args:
        chosen: scorers and their options.
        train: the training split: nothing else is read.
        labels: the label index, with titles.
        analyser: finds the words of texts and titles.
        reporter: where progress, notes and warnings go.
        seed: of the sample that teaches the weights.
        allow_missing: whether a scorer that fails is left out with a warning.
        check: called between scorers; raises if the user stopped the command.

    Returns:
        None if no scorer is left.

    Raises:
        ComponentError: a scorer fails, or its scores are not what was promised.
    """
    given = _gather_input(train, labels, analyser, reporter, seed)
    fitted: dict[str, tuple[NamedScorer, list[Scores]]] = {}
    seconds: dict[str, float] = {}
    missing: dict[str, str] = {}
    with reporter.progress("fitting scorers", len(chosen), "scorers") as task:
        for spec, options in chosen:
            check()
            started = time.perf_counter()
            found = _fit_or_miss(spec, options, given, allow_missing=allow_missing)
            if isinstance(found, str):
                missing[spec.name] = found
            else:
                fitted[spec.name] = found
            seconds[spec.name] = time.perf_counter() - started
            task.advance(1)
    if not fitted:
        return None
    zero_shot = {spec.name: spec.zero_shot for spec, _ in chosen}
    return _weigh(fitted, given, analyser, seconds, missing, zero_shot)


def load_scorers(
    stored: Sequence[tuple[NamedScorer, Fusion]], fusion: Fusion | None, labels: LabelIndex, analyser: Analyser
) -> FusedScorers | None:
    """Scorers with the weights that were learned for them; None without any."""
    if fusion is None:
        return None
    return FusedScorers(
        scorers=[scorer for scorer, _ in stored],
        fusion=fusion,
        alone={scorer.name: alone for scorer, alone in stored},
        train_counts=np.asarray(labels.train_counts, dtype=np.int64),
        analyser=analyser,
    )


def _gather_input(train: Split, labels: LabelIndex, analyser: Analyser, reporter: Reporter, seed: int) -> ScorerInput:
    sample = np.random.default_rng(seed).permutation(len(train))[:TAUGHT]
    names, label_of = _spell_names(labels, analyser)
    gold = csr_array(train.gold.astype(np.int64))
    gold.sort_indices()
    return ScorerInput(
        documents=read_words(train.texts, analyser),
        doc_ids=train.doc_ids,
        gold=gold,
        names=number_words(names),
        label_of=label_of,
        rows=np.sort(sample).astype(np.int64),
        reporter=reporter,
    )


def _spell_names(labels: LabelIndex, analyser: Analyser) -> tuple[list[Sequence[str]], Rows]:
    """The words of each label's title and of its other names, each of a label's names once, and the label of each [M]."""
    names: list[Sequence[str]] = []
    label_of: list[int] = []
    for label, (title, others) in enumerate(zip(labels.titles, labels.alternatives, strict=True)):
        spelt = dict.fromkeys(tuple(analyser.spell(name or "")) for name in (title, *others))
        own = [words for words in spelt if words]
        names += own
        label_of += [label] * len(own)
    return names, np.array(label_of, dtype=np.int64)


def _fit_or_miss(spec: ScorerSpec, options: Options, given: ScorerInput, *, allow_missing: bool) -> tuple[NamedScorer, list[Scores]] | str:
    """A scorer, see `_fit`, or why it is left out: there is nothing that it could say, or it fails and may be left out."""
    if spec.needs_names and not len(given.names):
        given.reporter.note(f"scorer {spec.name}: left out, no label has a title")
        return "no label has a title"
    try:
        return _fit(spec, options, given)
    except ComponentError as error:
        if not allow_missing:
            raise
        given.reporter.warn(f"{error.what}: it is left out")
        return error.what


def _fit(spec: ScorerSpec, options: Options, given: ScorerInput) -> tuple[NamedScorer, list[Scores]]:
    """A scorer fitted on all of train, and what it says of documents left out."""
    shape = (len(given.rows), given.gold.shape[1])
    fitted = ask(spec.name, "cannot be fitted", lambda: spec.fit(options, given))
    ask(spec.name, "cannot be saved", fitted.scorer.tensors)  # better found now than after hours of training
    parts = fitted.left_out
    left_out = check_scores(spec.name, lambda: _leave_parts_out(spec, options, given) if parts is None else parts, shape)
    if spec.needs_names and not any(_tells_apart(order_shares(view, csr_array(given.gold[given.rows]))) for view in left_out):
        given.reporter.note(f"scorer {spec.name}: tells no labels apart here; are titles in the language of the texts?")
    chosen = Choice(name=spec.name, options=options.model_dump(mode="json"))
    return NamedScorer(chosen=chosen, scorer=fitted.scorer, views=len(left_out)), left_out


def _tells_apart(shares: npt.NDArray[np.float64]) -> bool:
    """Whether pairs of labels are in the right order more often than by chance; few documents are no reason to doubt it."""
    return len(shares) < FEW or float(shares.mean()) - 2 * float(shares.std(ddof=1)) / len(shares) ** 0.5 > 0.5


def _leave_parts_out(spec: ScorerSpec, options: Options, given: ScorerInput) -> list[csr_array]:
    """Scores of `given.rows` by scorers that were fitted without them, some of them at a time: few where train is large."""
    count, wanted = len(given.documents), len(given.rows)
    if count < 2:
        return [no_scores(wanted, given.gold.shape[1])]
    parts, places = [], cut_folds(count, wanted)
    for held_out in places:
        rows = given.rows[held_out]
        scorer = spec.fit(options, _restrict(given, np.setdiff1d(np.arange(count), rows))).scorer
        parts.append(scorer.score(given.documents.take(rows)))
    order = np.argsort(np.concatenate(places))
    return [csr_array(csr_array(vstack(view, format="csr"))[order]) for view in zip(*parts, strict=True)]


def _restrict(given: ScorerInput, rows: Rows) -> ScorerInput:
    return ScorerInput(
        documents=given.documents.take(rows),
        doc_ids=[given.doc_ids[row] for row in rows],
        gold=csr_array(given.gold[rows]),
        names=given.names,
        label_of=given.label_of,
        rows=np.zeros(0, dtype=np.int64),
        reporter=given.reporter,
    )


def _weigh(
    fitted: Mapping[str, tuple[NamedScorer, list[Scores]]],
    given: ScorerInput,
    analyser: Analyser,
    seconds: Mapping[str, float],
    missing: Mapping[str, str],
    zero_shot: Mapping[str, bool],
) -> FittedScorers:
    counts = np.bincount(given.gold.indices, minlength=given.gold.shape[1]).astype(np.int64)
    candidates = gather_candidates([view for _, views in fitted.values() for view in views])
    gold = csr_array(given.gold[given.rows])
    ends = [0, *accumulate(len(views) for _, views in fitted.values())]
    able = [zero_shot[name] for name, (_, views) in fitted.items() for _ in views]
    alone = {
        name: fit_fusion(candidates.take(range(first, last)), gold, counts, left_out=True, zero_shot=able[first:last])
        for name, first, last in zip(fitted, ends[:-1], ends[1:], strict=True)
    }
    fusion = next(iter(alone.values())) if len(alone) == 1 else fit_fusion(candidates, gold, counts, left_out=True, zero_shot=able)
    if fusion.untaught:
        given.reporter.warn(
            f"how much each scorer counts could not be learned, so all count alike: of the {len(given.rows)} training "
            "documents that were looked at, none has a label that another one has, too, and that a scorer lists"
        )
    scorers = FusedScorers(
        scorers=[scorer for scorer, _ in fitted.values()], fusion=fusion, alone=alone, train_counts=counts, analyser=analyser
    )
    return FittedScorers(
        scorers=scorers,
        taught=given.rows,
        left_out=ScoredDocuments(scorers=scorers, candidates=candidates),
        seconds=dict(seconds),
        missing=dict(missing),
    )


LEAST = 0.05  # log-odds below which a part is not named


def explain_labels(
    scored: ScoredDocuments, trust: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], network: npt.NDArray[np.float64] | None = None
) -> list[list[Reason]]:
    """What speaks for some labels of each document, the part that adds most first: `network +2.3; titles +2.1 (…); words +0.8 (…)`.

    The number is what the part adds to the log-odds of the whole model, over a label of average scores among the document's candidates;
    it is of the weighted sum, before the calibration's curves, where there are any.

    Args:
        scored: the documents, kept in words [B].
        trust: the weight of the scorers' sum in the whole model, for each label [L].
        labels: rows of the label index [B, k].
        network: what it adds to these labels [B, k]; None: it is not told.
    """
    scorers, candidates, documents = scored.scorers, scored.candidates, scored.documents
    if documents is None:
        raise ValueError("the documents were not kept in words")
    found = []
    for row, own in enumerate(labels.tolist()):
        words = documents.take(np.array([row]))
        document = number_words([[words.vocabulary[number] for number in words.numbers.tolist()]])  # whose vocabulary is its own
        said = {scorer.name: scorer.explain(document, own) for scorer in scorers.scorers}
        inside = candidates.span(row)
        listed = dict(zip(candidates.labels[inside].tolist(), candidates.values[inside], strict=True))
        values = [trust[label] * listed.get(label, candidates.floors[row]) for label in own]
        besides = [{} if network is None else {NETWORK: float(amount)} for amount in (own if network is None else network[row])]
        found.append([_tell(scorers, said, place, label, values[place], besides[place]) for place, label in enumerate(own)])
    return found


def _tell(
    scorers: FusedScorers,
    said: dict[str, list[Reason]],
    place: int,
    label: int,
    values: npt.NDArray[np.float64],
    besides: dict[str, float],
) -> Reason:
    weights = (hat_weights(scorers.train_counts[[label]], scorers.fusion.knots) @ scorers.fusion.weights.T)[0]
    added = besides | {name: float((weights * values)[scorers.views_of(name)].sum()) for name in said}
    parts, words = [], dict[str, None]()
    for name in sorted(added, key=lambda name: -added[name]):
        if added[name] >= LEAST:
            reason = said[name][place] if name in said else Reason(text="")
            parts.append(f"{name} +{added[name]:.1f}" + (f" ({reason.text})" if reason.text else ""))
            words |= dict.fromkeys(reason.words)
    return Reason(text="; ".join(parts), words=tuple(words))
