"""Reading documents: token batches, the word of each token, and a warning about what is cut off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from plant_cli.api import Analyser, Documents, Evidence, Reading, Reporter, TokenBatch
from plant_cli.data.blocks import work_ahead
from plant_cli.scoring.cuts import measure_cut, tokenize
from plant_cli.scoring.top_labels import Room
from plant_network.answers import encode
from plant_network.assembly import Network
from plant_network.compute import TOKEN_MULTIPLE, round_up, send
from plant_network.hardware import Hardware

Rows = npt.NDArray[np.int64]
THREADS_AHEAD = 2  # that read kept states while a card computes; up to five batches wait there
OUTSIDE = -1  # the row of a word that the relevance table does not have


@dataclass(frozen=True, kw_only=True)
class DocumentWords:
    """The distinct words of a document and the tokens that spell them."""

    vocabulary: Rows  # row of each distinct word [U] in the relevance table, or `OUTSIDE`
    token: Rows  # token positions [n], one entry for each (token, word) that overlap
    word: Rows  # the word of each entry [n], 0 ≤ word < U

    def by_position(self) -> DocumentWords:
        """Every token as a word of its own, with the row of the first word of the table that it
        spells.
        """
        rows = self.vocabulary[self.word]
        order = np.lexsort((rows == OUTSIDE, self.token))  # stable: words of the table first
        token, first = np.unique(self.token[order], return_index=True)
        return DocumentWords(vocabulary=rows[order[first]], token=token, word=np.arange(len(token)))


def match_words(
    texts: Sequence[str],
    words: Documents,
    tokens: TokenBatch,
    vocabulary: Sequence[str],
    analyser: Analyser,
) -> Iterator[DocumentWords]:
    """Match the words of each text with its tokens, by their offsets; `vocabulary` has the
    words of the relevance table.
    """
    row_of = words.find_words({word: row for row, word in enumerate(vocabulary)})
    ends = pairwise(words.ends.tolist())
    for text, spans, (begin, end) in zip(texts, tokens.spans, ends, strict=True):
        distinct, firsts, numbers = np.unique(
            words.numbers[begin:end], return_index=True, return_inverse=True
        )
        order = np.argsort(firsts)  # words are numbered as they come
        position = np.empty_like(order)
        position[order] = np.arange(len(order))
        borders = analyser.find_borders(text)
        first = np.searchsorted(spans[:, 1], borders[:, 0], side="right")
        last = np.searchsorted(spans[:, 0], borders[:, 1], side="left")
        counts = np.maximum(last - first, 0)
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        word = np.repeat(position[numbers], counts)
        seen = np.unique(
            word
        )  # words whose tokens lie beyond the backbone's limit have no token to be scored at
        known = row_of[distinct[order[seen]]]
        yield DocumentWords(
            vocabulary=known,
            token=np.repeat(first, counts) + within,
            word=np.searchsorted(seen, word),
        )


def find_token_words(
    texts: Sequence[str],
    words: Documents,
    tokens: TokenBatch,
    vocabulary: Sequence[str],
    analyser: Analyser,
) -> list[Rows]:
    """For each document, the row of each token's word in the relevance table [T], or `OUTSIDE`.

    Where a token overlaps several words of the table, the first of them counts.
    """
    found = []
    for matched, spans in zip(
        match_words(texts, words, tokens, vocabulary, analyser), tokens.spans, strict=True
    ):
        entries = matched.vocabulary[matched.word]
        known = np.flatnonzero(entries != OUTSIDE)[::-1]  # the first is written last
        words_of_tokens = np.full(len(spans), OUTSIDE, dtype=np.int64)
        words_of_tokens[matched.token[known]] = entries[known]
        found.append(words_of_tokens)
    return found


class HiddenReader(Protocol):
    """Reads documents of a split for decoders."""

    tokens: TokenBatch
    reads_ahead: bool  # whether it may read batches in other threads, before they are asked for

    def read(self, rows: Rows) -> Reading:
        """Some documents [B], padded to a multiple of `TOKEN_MULTIPLE` tokens."""
        ...


class LiveReader:
    """Runs the backbone every time; gradients flow unless it is frozen.

    States of a frozen backbone are rounded as a cache of them would be: choices made on cached ones
    then hold for live ones. `words` has the row of each token's word in the relevance table, [T]
    for each document; None where the decoder needs none.
    """

    reads_ahead = False

    def __init__(
        self,
        network: Network,
        tokens: TokenBatch,
        hardware: Hardware,
        words: Sequence[Rows] | None = None,
    ) -> None:
        self.network, self.tokens, self.hardware, self.words = network, tokens, hardware, words

    def read(self, rows: Rows) -> Reading:
        """The reading of some documents."""
        with (
            self.hardware.autocast(),
            torch.set_grad_enabled(torch.is_grad_enabled() and not self.network.backbone_is_frozen),
        ):
            hidden, mask = pad_to_multiple(*encode(self.network.backbone, self.tokens.select(rows)))
        if self.network.backbone_is_frozen:
            hidden = hidden.to(self.hardware.dtype)
        hidden = hidden.masked_fill(
            ~mask[..., None], 0
        )  # a backbone may leave anything there, NaN too
        return Reading.of(hidden, mask, lay_out_words(self.words, rows, mask))


def read_in_turn(reader: HiddenReader, batches: Iterable[Rows]) -> Iterator[tuple[Rows, Reading]]:
    """Batches, each with its reading."""

    def read(rows: Rows) -> tuple[Rows, Reading]:
        return rows, reader.read(rows)

    return work_ahead(read, batches, THREADS_AHEAD) if reader.reads_ahead else map(read, batches)


def pad_to_multiple(hidden: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden states [B, T, H] and their mask [B, T], padded to a multiple of `TOKEN_MULTIPLE`
    tokens.
    """
    beyond = round_up(mask.shape[1], TOKEN_MULTIPLE) - mask.shape[1]
    return (
        (functional.pad(hidden, (0, 0, 0, beyond)), functional.pad(mask, (0, beyond)))
        if beyond
        else (hidden, mask)
    )


def lay_out_words(words: Sequence[Rows] | None, rows: Rows, mask: Tensor) -> Tensor | None:
    """The words of a batch as `Reading.words` [B, T], for a mask [B, T] whose real tokens come
    first; None where there are none.
    """
    if words is None:
        return None
    laid_out = np.full(mask.shape, OUTSIDE, dtype=np.int64)
    for number, row in enumerate(rows):
        laid_out[number, : len(words[row])] = words[row]
    return send(torch.from_numpy(laid_out), mask.device)


def make_tokens(
    network: Network, texts: Sequence[str], reporter: Reporter, name: str, batch: int = 512
) -> TokenBatch:
    """Tokenise a split, with progress."""
    parts: list[TokenBatch] = []
    with reporter.progress(f"tokenising {name}", len(texts), "documents") as task:
        for start in range(0, len(texts), batch):
            parts.append(tokenize(network.backbone, texts[start : start + batch]))
            task.advance(len(parts[-1]))
    return TokenBatch(
        ids=[i for p in parts for i in p.ids],
        spans=[s for p in parts for s in p.spans],
        dropped=[d for p in parts for d in p.dropped],
    )


def warn_of_cut(
    network: Network, tokens: TokenBatch, reporter: Reporter, name: str, evidence: Evidence | None
) -> None:
    """Warn of text, and gold evidence, beyond the backbone's limit."""
    cut = measure_cut(tokens, evidence)
    if cut.documents:
        longer = sum(1 for dropped in tokens.dropped if dropped)
        reporter.warn(
            f"{name}: {longer} of {len(tokens)} documents ({cut.documents:.1%}) are longer than "
            f"{network.backbone.max_length} tokens; "
            f"{sum(tokens.dropped)} tokens beyond ({cut.tokens:.1%} of all) are not read"
            f"{f'; {cut.evidence}' if cut.evidence else ''} "
            "(to read them, train with --set model.backbone.max_tokens=…)"
        )


def lengths(tokens: TokenBatch) -> npt.NDArray[np.int64]:
    """Tokens of each document."""
    return np.array([len(ids) for ids in tokens.ids], dtype=np.int64)


def count_fitting(room: Room | int, longest: int) -> int:
    """Documents that fit if the longest has so many tokens; at least one. A number is one of
    documents.
    """
    if isinstance(room, int) or room.tokens is None:
        return room if isinstance(room, int) else room.documents
    return max(1, min(room.documents, room.tokens // round_up(max(1, longest), TOKEN_MULTIPLE)))


def sorted_batches(lengths: Rows, room: Room | int) -> list[Rows]:
    """All rows by length, for scoring: the longest first, so that memory runs out at once or
    never.
    """
    order = np.argsort(-lengths, kind="stable")
    batches = []
    while len(order):
        size = count_fitting(room, int(lengths[order[0]]))
        batches.append(order[:size])
        order = order[size:]
    return batches
