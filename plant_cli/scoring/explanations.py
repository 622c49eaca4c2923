"""Where in a text it stands that a label applies: the attention of a network, and the words that scorers name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plant_cli.api import Analyser, Reason, Reporter, SilentReporter
from plant_cli.scoring.models import Combination, ModelSource, has_network, load_combination
from plant_cli.scoring.scorers import explain_labels


@dataclass(frozen=True, kw_only=True)
class TextEvidence:
    """The evidence for one label in one text.

    Args:
        spans: of its words, in order, in code points, end exclusive [n, 2].
        weights: how much each counts for the label, ≥ 0 [n].
        reason: what scorers say, in words; empty without.
    """

    spans: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]
    reason: str


def find_evidence(
    source: ModelSource, texts: Sequence[str], labels: Sequence[Sequence[int]], reporter: Reporter
) -> list[list[TextEvidence]]:
    """The evidence for some labels of each text: attention where the model has a network, and the words that its scorers name.

    Args:
        source: where the model is.
        texts: one a document [B].
        labels: rows of the label index, some for each text.
        reporter: where progress goes.

    Raises:
        ArtefactError: the model is missing, damaged, or of another order of labels.
    """
    folder, corpus = source.folder, source.corpus
    combination = load_combination(folder, corpus.labels, corpus.analyser, source.component)
    reasons = [_explain(combination, text, own) for text, own in zip(texts, labels, strict=True)]
    words = [_place_words(corpus.analyser, text) for text in texts]
    named = [[_mark_words(found, why.words) for why in whys] for (found, _), whys in zip(words, reasons, strict=True)]
    weights = named
    if has_network(folder):
        attention = _read_attention(source, texts, labels, reporter)
        weights = [
            [_join(add_to_words(tokens, of_tokens, spans), of_names) for of_tokens, of_names in zip(of_text, own, strict=True)]
            for (_, spans), (tokens, of_text), own in zip(words, attention, named, strict=True)
        ]
    return [
        [TextEvidence(spans=spans, weights=weight, reason=why.text) for weight, why in zip(own, whys, strict=True)]
        for (_, spans), own, whys in zip(words, weights, reasons, strict=True)
    ]


def _join(attention: npt.NDArray[np.float64], named: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The mean of attention on words and of the words that are named, both as shares [n]; one alone where the other is 0 throughout."""
    shares = [part / part.sum() for part in (attention, named) if part.any()]
    return np.mean(shares, axis=0) if shares else attention


def _explain(combination: Combination | None, text: str, labels: Sequence[int]) -> list[Reason]:
    if combination is None or combination.scorers is None or not labels:
        return [Reason(text="")] * len(labels)
    scored = combination.scorers.read([text], SilentReporter(), "reasons", keep_words=True)
    return explain_labels(scored, combination.trust, np.array([labels], dtype=np.int64))[0]


def _place_words(analyser: Analyser, text: str) -> tuple[list[str], npt.NDArray[np.int64]]:
    found = analyser.words(text)
    return [word for word, _, _ in found], np.array([[start, end] for _, start, end in found], dtype=np.int64).reshape(-1, 2)


def _mark_words(words: Sequence[str], named: Sequence[str]) -> npt.NDArray[np.float64]:
    """1 for each word of a text that is named, else 0."""
    known = set(named)
    return np.array([word in known for word in words], dtype=np.float64)


def _read_attention(
    source: ModelSource, texts: Sequence[str], labels: Sequence[Sequence[int]], reporter: Reporter
) -> list[tuple[npt.NDArray[np.int64], list[npt.NDArray[np.float64]]]]:
    """Of each text the spans of its tokens [T, 2], and the attention of each label on them [T]."""
    import torch

    from plant_cli.network.hardware import choose_hardware
    from plant_cli.network.reading import LiveReader, find_token_words, tokenize
    from plant_cli.scoring.models import load_network_with_words

    hardware = choose_hardware(source.machine)
    network, vocabulary = load_network_with_words(source)
    network.to(hardware.device).eval()
    tokens = tokenize(network, texts, reporter, "documents")
    words = find_token_words(texts, tokens, vocabulary, source.corpus.analyser) if network.needs_words else None
    reader = LiveReader(network, tokens, hardware, words)
    found: list[tuple[npt.NDArray[np.int64], list[npt.NDArray[np.float64]]]] = []
    with torch.no_grad(), hardware.autocast(), reporter.progress("attention", len(texts), "documents") as task:
        for row, own in enumerate(labels):
            spans = np.asarray(tokens.spans[row], dtype=np.int64).reshape(-1, 2)
            weights = [np.zeros(len(spans))] * len(own)
            if own and len(spans):
                on_tokens = network.decoder.attention(reader.read(np.array([row])), torch.tensor(own, device=hardware.device))
                weights = list(on_tokens[0, :, : len(spans)].double().cpu().numpy())
            found.append((spans, weights))
            task.advance(1)
    return found


def add_to_words(tokens: npt.NDArray[np.int64], weights: npt.NDArray[np.float64], words: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The weights of tokens [T], added up over each word that they spell [n].

    Args:
        tokens: their spans, in order [T, 2].
        weights: one a token.
        words: spans of words, in order, apart [n, 2].
    """
    summed = np.zeros(len(words))
    if len(words):
        place = np.minimum(np.searchsorted(words[:, 1], tokens[:, 0], side="right"), len(words) - 1)
        inside = (words[place, 0] < tokens[:, 1]) & (tokens[:, 0] < words[place, 1])
        np.add.at(summed, place[inside], weights[inside])
    return summed
