"""Models that were trained: read back, and texts scored with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from plant_cli.api import Analyser, ArtefactError, Corpus, LabelIndex, MachineSection, PlantError, ScorerSpec, first_line
from plant_cli.network.assembly import DESCRIPTION, Network, load_network, require_words
from plant_cli.network.candidates import UNSCORED, measure_recall
from plant_cli.network.design import ComponentLookup
from plant_cli.network.hardware import Hardware, choose_hardware
from plant_cli.network.reading import HiddenReader, LiveReader, Rows, find_token_words, measure_cut, tokenize
from plant_cli.relevance.relevance_table import read_vocabulary
from plant_cli.scoring.calibration import LIMIT, Curves, bend_labels, label_weights
from plant_cli.scoring.fusion import Fusion
from plant_cli.scoring.predictions import NETWORK
from plant_cli.scoring.scorers import FusedScorers, NamedScorer, ScoredDocuments, ask, explain_labels, load_scorers
from plant_cli.scoring.stored_scorers import AGAIN, StoredScorer, StoredScorers, read_scorers, write_scorers
from plant_cli.scoring.top import (
    WHOLE,
    ListedLogits,
    Logits,
    Mix,
    Scoring,
    TopCollector,
    TopLabels,
    cut_batches,
    keep_logits,
    list_logits,
    score_documents,
    top_labels,
)


@dataclass(frozen=True, kw_only=True)
class Combination:
    """How the scores of network and scorers are combined: the scorers, and the calibration of all together.

    Args:
        scorers: None: there is a network alone.
        calibration: weights of the network, where there is one, and of the scorers; then an offset.
        train_counts: training documents of each label [L].
        curves: what bends the sum, by training frequency; none: it is as it is.
    """

    scorers: FusedScorers | None
    calibration: Fusion
    train_counts: npt.NDArray[np.int64]
    curves: Curves = ()

    def weights(self) -> tuple[Logits, Logits]:
        """The weight of each source for each label [S, L], and the offset of each label [L]."""
        return label_weights(self.calibration, self.train_counts)

    @property
    def trust(self) -> Logits:
        """The weight of what scorers say together, for each label [L]."""
        trust: Logits = self.weights()[0][-1]
        return trust

    def apply_curves(self, logits: Logits) -> Logits:
        """Weighted sums for all labels [B, L] as the calibration bends them."""
        return bend_labels(self.curves, logits, self.train_counts) if self.curves else logits

    def calibrate(self, logits: Logits, train_counts: npt.NDArray[np.int64]) -> Logits:
        """What scorers say together [B, N], calibrated, where there is no network.

        Args:
            logits: of documents and some labels.
            train_counts: training documents of these labels [N].
        """
        weights, offset = label_weights(self.calibration, train_counts)
        found: Logits = np.clip(logits, -LIMIT, LIMIT) * weights[0] + offset
        return bend_labels(self.curves, found, train_counts) if self.curves else found

    @property
    def last_frequency(self) -> float:
        """Training documents from which all labels are calibrated alike."""
        return max(float(self.calibration.knots[-1]), *(float(curve.least) for curve in self.curves), 0.0)


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """Where a trained model is loaded from, and what for.

    Args:
        folder: of the stage `finetune`.
        corpus: the run's corpus.
        component: finds backbone, decoder and scorers.
        machine: where it is to run.
        relevance: gives the run's folder `mig`, if it has one; asked only if the decoder looks at words.
    """

    folder: Path
    corpus: Corpus
    component: ComponentLookup
    machine: MachineSection
    relevance: Callable[[], Path | None] = lambda: None


class TrainedModel(Protocol):
    """A model that is loaded once and asked many times."""

    @property
    def combination(self) -> Combination | None:
        """The scorers and the calibration; None for a network that was saved without calibration."""
        ...

    def score(self, texts: Sequence[str], scoring: Scoring) -> TopLabels:
        """The k best labels of each text.

        Args:
            texts: one a document.
            scoring: how.

        Raises:
            Interrupted: the user stopped the command.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class ScorerModel:
    """Scorers without a network; see `TrainedModel`."""

    combination: Combination
    scorers: FusedScorers

    def score(self, texts: Sequence[str], scoring: Scoring) -> TopLabels:
        """See `TrainedModel.score`."""
        scored = self.scorers.read(texts, scoring.reporter, scoring.name, keep_words=scoring.reasons)
        top = self._score_whole(scored, scoring)
        parts = score_parts(scored, scoring.k) if scoring.parts else {}
        reasons = explain_labels(scored, self.combination.trust, top.labels) if scoring.reasons else ()
        return replace(top, parts=parts, reasons=reasons)

    def _score_whole(self, scored: ScoredDocuments, scoring: Scoring) -> TopLabels:
        if scoring.keep is None:
            return list_calibrated(self.combination, scored).best(scoring.k, scoring.should_stop)
        counts = self.combination.train_counts
        collected = TopCollector(len(scored), min(scoring.k, len(counts)), scoring.keep)
        for rows in cut_batches(len(scored), scoring.should_stop):
            collected.add(rows, self.combination.calibrate(scored.logits(rows), counts))
        return collected.done()


def list_calibrated(combination: Combination, scored: ScoredDocuments) -> ListedLogits:
    """Calibrated logits of documents without a network.

    Args:
        combination: with scorers, and calibrated without a network.
        scored: the documents, as the scorers see them.
    """
    scorers = scored.scorers
    found = list_logits(scorers.fusion, scored.candidates, scorers.train_counts, combination.last_frequency)
    return replace(
        found,
        logits=combination.calibrate(found.logits[None], scorers.train_counts[found.labels])[0],
        floors=combination.calibrate(found.floors, found.counts),
    )


def score_parts(scored: ScoredDocuments, k: int) -> dict[str, TopLabels]:
    """The k best labels of documents by each scorer alone; by one scorer alone there is nothing to tell apart from the whole."""
    scorers = scored.scorers
    parts = {name: scored.candidates.take(scorers.views_of(name)) for name in (scorer.name for scorer in scorers.scorers)}
    return {name: list_logits(scorers.alone[name], own, scorers.train_counts).best(k) for name, own in parts.items()}


def save_combination(combination: Combination, folder: Path, corpus: Corpus, figures: Mapping[str, Any]) -> None:
    """Write the scorers and the calibration into the folder of the model.

    Args:
        combination: what to write.
        folder: of the stage.
        corpus: the run's corpus.
        figures: what was found on validation, for the record.
    """
    scorers = combination.scorers
    stored = [] if scorers is None else [
        StoredScorer(
            chosen=one.chosen,
            views=one.views,
            tensors=ask(one.name, "cannot be saved", one.scorer.tensors),
            alone=scorers.alone[one.name],
        )
        for one in scorers.scorers
    ]  # fmt: skip
    content = StoredScorers(
        scorers=tuple(stored),
        fusion=None if scorers is None else scorers.fusion,
        calibration=combination.calibration,
        curves=tuple(combination.curves),
        figures=figures,
    )
    write_scorers(folder, content, corpus.labels.hash, corpus.analyser.hash)


def load_combination(folder: Path, labels: LabelIndex, analyser: Analyser, component: ComponentLookup) -> Combination | None:
    """What `save_combination` wrote, or None if there is nothing; `ArtefactError` if a file is damaged or of another label order."""
    stored = read_scorers(folder, labels.hash, analyser.hash)
    if stored is None:
        return None
    loaded = []
    for one in stored.scorers:
        spec, options = component(ScorerSpec, one.chosen)
        try:
            scorer = spec.load(options, one.tensors)
        except (PlantError, MemoryError):
            raise
        except Exception as error:  # whatever damaged arrays make of their reader
            raise ArtefactError(
                f"the scorer '{one.chosen.name}' cannot be made again: {first_line(error)}",
                where=str(folder),
                expected="its arrays as `plant finetune` wrote them",
                todo=f"restore the files, or {AGAIN}",
            ) from error
        loaded.append((NamedScorer(chosen=one.chosen, scorer=scorer, views=one.views), one.alone))
    counts = np.asarray(labels.train_counts, dtype=np.int64)
    scorers = load_scorers(loaded, stored.fusion, labels, analyser)
    return Combination(scorers=scorers, calibration=stored.calibration, train_counts=counts, curves=stored.curves)


def has_network(folder: Path) -> bool:
    """Whether a trained model in the folder of a stage has a network."""
    return (folder / DESCRIPTION).exists()


def load_model(source: ModelSource) -> TrainedModel:
    """A trained model; torch is imported only if it has a network.

    Raises:
        ArtefactError: a part was made for another order of labels, or cannot be read.
    """
    folder, corpus = source.folder, source.corpus
    combination = load_combination(folder, corpus.labels, corpus.analyser, source.component)
    if has_network(folder) or combination is None or combination.scorers is None:
        return load_network_model(source, combination)
    return ScorerModel(combination=combination, scorers=combination.scorers)


@dataclass(frozen=True)
class NetworkModel:
    """A trained network that is loaded once and asked many times; see `plant_cli.scoring.models.TrainedModel`.

    Args:
        network: its decoder is folded: it cannot be trained further.
        combination: scorers and the calibration; None if there is neither.
        hardware: where it runs.
        analyser: finds the words of texts.
        vocabulary: the words of the run's relevance table, for decoders that look at words.
    """

    network: Network
    combination: Combination | None
    hardware: Hardware
    analyser: Analyser
    vocabulary: Sequence[str] = ()

    def __post_init__(self) -> None:
        with self.hardware.autocast():
            self.network.to(self.hardware.device).fold_decoder()

    def score(self, texts: Sequence[str], scoring: Scoring) -> TopLabels:
        """See `TrainedModel.score`."""
        scored = self._read_scored(texts, scoring)
        tokens = tokenize(self.network, texts, scoring.reporter, scoring.name, evidence=scoring.evidence)
        words = find_token_words(texts, tokens, self.vocabulary, self.analyser) if self.network.needs_words else None
        live = LiveReader(self.network, tokens, self.hardware, words)
        reader = live if scoring.cached is None else scoring.cached(live)
        mix = mix_scorers(self.combination, scored)
        amounts = np.zeros((len(texts), min(scoring.k, self.network.labels)))
        if scoring.reasons and self.combination is not None and scored is not None:
            mix = note_amounts(mix, self.combination, scored, amounts)
        mixes: dict[str, Mix] = {WHOLE: mix}
        parts: dict[str, TopLabels] = {}
        if scoring.parts and scored is not None:
            mixes[NETWORK] = keep_logits
            parts = score_parts(scored, scoring.k)
        found = score_documents(self.network, reader, self.hardware, scoring, mixes)
        whole = found.pop(WHOLE)
        recall = self._measure_recall(reader, scoring)
        reasons = (
            explain_labels(scored, self.combination.trust, whole.labels, amounts) if scoring.reasons and self.combination and scored else ()
        )
        return replace(whole, shortlist_recall=recall, cut=measure_cut(tokens, scoring.evidence), parts=found | parts, reasons=reasons)

    def _read_scored(self, texts: Sequence[str], scoring: Scoring) -> ScoredDocuments | None:
        """The texts, as scorers see them; None without scorers."""
        if self.combination is None or self.combination.scorers is None:
            return None
        return self.combination.scorers.read(texts, scoring.reporter, scoring.name, keep_words=scoring.reasons)

    def _measure_recall(self, reader: HiddenReader, scoring: Scoring) -> float | None:
        """The share of the best labels that a shortlist kept; None without one."""
        if scoring.candidates is None:
            return None
        return measure_recall(self.network, reader, self.hardware, scoring.candidates, scoring.k, batch=scoring.batch)


def mix_scorers(combination: Combination | None, scored: ScoredDocuments | None) -> Mix:
    """What becomes of the network's logits where there are scorers, too, or a calibration was learned.

    Args:
        combination: the scorers and the calibration; None if there is neither.
        scored: the documents, as the scorers see them; None without scorers.
    """
    if combination is None:
        return keep_logits
    weights, offset = (torch.from_numpy(part) for part in combination.weights())

    def mix(rows: Rows, logits: Tensor) -> Tensor:
        whole = torch.addcmul(offset.to(logits.device), logits.clamp(-LIMIT, LIMIT), weights[0].to(logits.device))
        if scored is not None:
            whole.addcmul_(torch.from_numpy(scored.logits(rows)).to(logits.device), weights[1].to(logits.device))
        found = torch.from_numpy(combination.apply_curves(whole.float().cpu().numpy())).to(whole) if combination.curves else whole
        return found.masked_fill_(logits < UNSCORED / 2, UNSCORED)  # what a shortlist left out is not found by scorers either

    return mix


def note_amounts(mix: Mix, combination: Combination, scored: ScoredDocuments, amounts: npt.NDArray[np.float64]) -> Mix:
    """The same mixture, which also notes what the network adds to the best labels, over what it gives the document's candidates on average.

    Args:
        mix: the logits that count.
        combination: has the weight of the network for each label.
        scored: the documents, as the scorers see them.
        amounts: filled with log-odds, best label first [N, k].
    """
    weights = torch.from_numpy(combination.weights()[0][0])

    def noting(rows: Rows, logits: Tensor) -> Tensor:
        whole, cut = mix(rows, logits), logits.clamp(-LIMIT, LIMIT).double().cpu()
        best = top_labels(whole, amounts.shape[1])[0].cpu()
        for row, own, labels in zip(rows.tolist(), cut, best, strict=True):
            listed = torch.from_numpy(scored.candidates.labels[scored.candidates.span(row)])
            average = own[listed].mean() if len(listed) else own.mean()
            amounts[row] = (weights[labels] * (own[labels] - average)).numpy()
        return whole

    return noting


def load_network_model(source: ModelSource, combination: Combination | None) -> NetworkModel:
    """A trained network, with the scorers beside it.

    Args:
        source: where it is.
        combination: scorers and the calibration; None if there is neither.

    Raises:
        ArtefactError: the network was made for another order of labels, or cannot be read.
    """
    hardware = choose_hardware(source.machine)
    network, vocabulary = load_network_with_words(source)
    return NetworkModel(network, combination, hardware, source.corpus.analyser, vocabulary)


def load_network_with_words(source: ModelSource) -> tuple[Network, Sequence[str]]:
    """A trained network, and the words of the relevance table that it was trained with; none if it needs none.

    Raises:
        ArtefactError: the network was made for another order of labels, for other words, or cannot be read.
    """
    corpus = source.corpus
    network = load_network(source.folder, source.component, source.machine, corpus.labels, corpus.sizes["train"])
    if not network.needs_words:
        return network, ()
    mig = source.relevance()
    words = () if mig is None else read_vocabulary(mig)["word"].to_list()
    require_words(source.folder, words, mig or "a run without relevance")
    return network, words
