"""Texts in, best labels out: a trained network, with scorers beside it or without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from plant_cli.api import Analyser
from plant_cli.artefacts.model import require_words
from plant_cli.artefacts.predictions import NETWORK
from plant_cli.artefacts.relevance import read_vocabulary
from plant_cli.inference.model import Combination, ModelSource, score_parts
from plant_cli.inference.reasons import explain_labels
from plant_cli.inference.scorers import ScoredDocuments
from plant_cli.inference.scoring import WHOLE, Mix, keep_logits, score_documents, top_labels
from plant_cli.inference.top import Scoring, TopLabels
from plant_cli.lexical.calibration import LIMIT
from plant_cli.model.label_scores import UNSCORED
from plant_cli.model.candidates import measure_recall
from plant_cli.model.hardware import Hardware, choose_hardware
from plant_cli.model.network import Network, load_network
from plant_cli.model.reading import HiddenReader, LiveReader, Rows, tokenize
from plant_cli.model.token_words import find_token_words
from plant_cli.model.truncation import measure_cut


@dataclass(frozen=True)
class NetworkModel:
    """A trained network that is loaded once and asked many times; see `plant_cli.inference.model.TrainedModel`.

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
