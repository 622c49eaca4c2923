"""A trained model: a network, scorers, or both, and the calibration that makes one probability of what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from plant_cli.api import Analyser, ArtefactError, Corpus, LabelIndex, MachineSection, PlantError, ScorerSpec, first_line
from plant_cli.artefacts.model import DESCRIPTION
from plant_cli.artefacts.scorers import AGAIN, StoredScorer, StoredScorers, read_scorers, write_scorers
from plant_cli.inference.listed import ListedLogits, list_logits
from plant_cli.inference.named_scorers import NamedScorer, ask
from plant_cli.inference.reasons import explain_labels
from plant_cli.inference.scorers import FusedScorers, ScoredDocuments, load_scorers
from plant_cli.inference.top import Logits, Scoring, TopCollector, TopLabels, cut_batches
from plant_cli.lexical.calibration import LIMIT, label_weights
from plant_cli.lexical.fusion import Fusion
from plant_cli.lexical.isotonic import Curves, bend_labels
from plant_cli.model.design import ComponentLookup


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
        from plant_cli.inference.texts import load_network_model

        return load_network_model(source, combination)
    return ScorerModel(combination=combination, scorers=combination.scorers)
