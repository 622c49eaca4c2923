"""The language model: its vocabulary, an LSTM with dropped weights, and the streams of tokens
that it is trained on.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TypedDict

import numpy as np
import numpy.typing as npt
import regex
import torch
from torch import Tensor, nn
from torch.nn import functional

from plant_awd_lstm import Direction, DropoutOptions
from plant_cli.api import DataError
from plant_cli.api.errors import damaged_file
from plant_cli.kit import hash_strings, read_json, write_json

Int32Array = npt.NDArray[np.int32]

VOCABULARY_FILE = "vocabulary.json"
RESTORE_OR_PRETRAIN = "restore the file, or run plant pretrain-lm again with --force"
SPECIAL = ("<pad>", "<unknown>", "<begin>")
PAD, UNKNOWN, BEGIN = range(len(SPECIAL))

_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
LANGUAGE_MODEL_TOKEN = regex.compile(
    rf"{_UNSPACED}\p{{M}}*+|[[\p{{L}}\p{{N}}_]--{_UNSPACED}][[\p{{L}}\p{{N}}\p{{M}}_]--{_UNSPACED}]*+|\S\p{{M}}*+",
    regex.VERSION1,
)
"""A run of letters and digits, a character of a script without spaces, or one sign."""


@dataclass(frozen=True)
class Vocabulary:
    """The words that have an embedding, in the order of its rows."""

    words: tuple[str, ...]  # `SPECIAL` first, then by falling frequency

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def hash(self) -> str:
        """Equal for vocabularies that cut and number every text alike."""
        return hash_strings(["awd-lstm", LANGUAGE_MODEL_TOKEN.pattern, *self.words])

    def read(self, text: str) -> tuple[Int32Array, Int32Array]:
        """The rows [n] of a text's tokens, and their character offsets [n, 2]."""
        matches = list(LANGUAGE_MODEL_TOKEN.finditer(text))
        ids = [self.rows.get(fold(match[0]), UNKNOWN) for match in matches]
        spans = np.array([match.span() for match in matches], dtype=np.int32).reshape(-1, 2)
        return np.array(ids, dtype=np.int32), spans

    def save(self, folder: Path) -> None:
        """Write the words as a JSON list."""
        write_json(folder / VOCABULARY_FILE, list(self.words))


def fold(token: str) -> str:
    """A token as in the vocabulary: lower-cased, in normal form C."""
    lower = token.lower()
    return lower if lower.isascii() else unicodedata.normalize("NFC", lower)


def read_language_model_vocabulary(folder: Path) -> Vocabulary:
    """The vocabulary that `Vocabulary.save` wrote."""
    what = "the vocabulary of the language model"
    words = read_json(folder / VOCABULARY_FILE, what)
    texts = isinstance(words, list) and all(isinstance(word, str) for word in words)
    if not texts or tuple(words[: len(SPECIAL)]) != SPECIAL or len(set(words)) != len(words):
        why = "it is no list of distinct words, or does not begin with the special ones"
        raise damaged_file(
            what,
            why,
            folder / VOCABULARY_FILE,
            expected=f"a JSON list that begins with {', '.join(SPECIAL)}",
            todo=RESTORE_OR_PRETRAIN,
        )
    return Vocabulary(tuple(words))


def fit_vocabulary(texts: Iterable[str], *, min_count: int, max_words: int) -> Vocabulary:
    """The frequent words of the training texts, ties in alphabetical order; fewer than two are
    refused.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(fold(match[0]) for match in LANGUAGE_MODEL_TOKEN.finditer(text))
    for word in SPECIAL:
        counts.pop(word, None)
    frequent = sorted(
        (word for word, count in counts.items() if count >= min_count),
        key=lambda word: (-counts[word], word),
    )
    if len(frequent) < 2:
        most = max(counts.values(), default=0)
        raise DataError(
            f"the training texts have a vocabulary of {_plural(len(frequent), 'word')}: a "
            "language model has nothing to predict",
            where=f"split train: {_plural(len(counts), 'distinct word')}, the most frequent "
            f"occurs {_plural(most, 'time')}",
            expected=f"two words or more that occur {min_count} times or more",
            todo="count rarer words with --min-count 1, or look at the corpus with `plant data "
            "stats`",
        )
    return Vocabulary((*SPECIAL, *frequent[:max_words]))


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


LstmState = tuple[Tensor, Tensor]
"""Hidden and cell state of one layer, each [1, B, H]."""

EMBEDDING_RANGE = 0.1


class Sizes(TypedDict):
    """Sizes of the network, as `language-model.json` holds them."""

    embedding: int
    hidden: int
    layers: int


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """The encoder's outputs for a window."""

    raw: Tensor  # of the last layer [B, T, E]
    dropped: Tensor  # the same after the output dropout
    states: Sequence[LstmState]  # of every layer, to be carried to the next window


class LstmLayer(nn.Module):
    """One LSTM layer whose recurrent weights are dropped, the same ones at every token of a window
    (DropConnect).

    The four gates are in torch's order: input, forget, cell, output.

    Source: Merity et al. 2018, arXiv:1708.02182, section 2.
    """

    def __init__(self, size: int, hidden: int, weight_dropout: float) -> None:
        super().__init__()
        self.weight_dropout = weight_dropout
        bound = hidden**-0.5
        self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh = (
            nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))
            for shape in ((4 * hidden, size), (4 * hidden, hidden), (4 * hidden,), (4 * hidden,))
        )

    def forward(self, inputs: Tensor, state: LstmState) -> tuple[Tensor, LstmState]:
        """Outputs [B, T, H] and the state after the last token."""
        recurrent = functional.dropout(self.weight_hh, self.weight_dropout, self.training)
        parameters = [self.weight_ih, recurrent, self.bias_ih, self.bias_hh]
        with torch.autocast(inputs.device.type, enabled=False):
            outputs, hidden, cell = torch.lstm(
                inputs.to(recurrent.dtype),
                state,
                parameters,
                True,
                1,
                0.0,
                self.training,
                False,
                True,
            )
        return outputs, (hidden, cell)


class Encoder(nn.Module):
    """Word embedding and LSTM layers; the last has the size of the embedding."""

    def __init__(self, words: int, sizes: Sizes, dropouts: DropoutOptions) -> None:
        super().__init__()
        size, hidden, count = sizes["embedding"], sizes["hidden"], sizes["layers"]
        self.dropouts = dropouts
        self.embedding = nn.Embedding(words, size, padding_idx=PAD)
        nn.init.uniform_(self.embedding.weight, -EMBEDDING_RANGE, EMBEDDING_RANGE)
        widths = [size, *[hidden] * (count - 1), size]
        self.layers = nn.ModuleList(
            LstmLayer(before, after, dropouts.weight_dropout) for before, after in pairwise(widths)
        )

    def forward(self, ids: Tensor, states: Sequence[LstmState] | None = None) -> Outputs:
        """Read a window of tokens [B, T] after the states of the window before (None: the
        beginning).
        """
        drop = self.dropouts
        outputs = locked_dropout(self._embed(ids), drop.input_dropout, self.training)
        after: list[LstmState] = []
        for number, layer in enumerate(self.layers):
            if number:
                outputs = locked_dropout(outputs, drop.hidden_dropout, self.training)
            weight = layer.get_parameter("weight_hh")
            zero = weight.new_zeros(1, len(ids), weight.shape[1])
            outputs, state = layer(outputs, states[number] if states else (zero, zero))
            after.append(state)
        return Outputs(
            raw=outputs,
            dropped=locked_dropout(outputs, drop.output_dropout, self.training),
            states=after,
        )

    def _embed(self, ids: Tensor) -> Tensor:
        """Embeddings [B, T, E]; a dropped word is dropped everywhere in the window."""
        embedded: Tensor = self.embedding(ids)
        share = self.dropouts.embedding_dropout
        if not self.training or not share:
            return embedded
        kept = torch.rand(len(self.embedding.weight), device=ids.device) >= share
        return embedded * (kept.to(embedded.dtype) / (1 - share))[ids].unsqueeze(-1)


class LanguageModel(nn.Module):
    """The encoder and an output layer whose weights are the embedding's."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.output_bias = nn.Parameter(torch.zeros(len(encoder.embedding.weight)))

    def forward(
        self, ids: Tensor, states: Sequence[LstmState] | None = None
    ) -> tuple[Tensor, Outputs]:
        """Logits of the next token [B, T, V], and the encoder's outputs."""
        outputs: Outputs = self.encoder(ids, states)
        return functional.linear(
            outputs.dropped, self.encoder.embedding.weight, self.output_bias
        ), outputs


def locked_dropout(values: Tensor, share: float, training: bool) -> Tensor:
    """Zero a share of the last axis of [B, T, E], the same positions at every token, and scale
    up the rest.
    """
    if not training or not share:
        return values
    mask = values.new_empty(len(values), 1, values.shape[-1]).bernoulli_(1 - share).div_(1 - share)
    return values * mask


def detach(states: Sequence[LstmState]) -> list[LstmState]:
    """The same states without their history: gradients end at the window's beginning."""
    return [(hidden.detach(), cell.detach()) for hidden, cell in states]


def first_rows(states: Sequence[LstmState], count: int) -> list[LstmState]:
    """The states of the first documents of a batch."""
    return [
        (hidden[:, :count].contiguous(), cell[:, :count].contiguous()) for hidden, cell in states
    ]


Ids = npt.NDArray[np.int64]
IGNORED = -100  # target of a position that torch's cross-entropy ignores


@dataclass(frozen=True, kw_only=True)
class Window:
    """Tokens and the tokens that follow them."""

    inputs: Ids  # [B, T]
    targets: Ids  # [B, T], `IGNORED` where nothing is to be predicted


@dataclass(frozen=True, kw_only=True)
class Streams:
    """The training documents of an epoch as one text, cut into streams of equal length."""

    documents: Sequence[Int32Array]  # rows of each document's tokens
    direction: Direction
    batch: int  # streams; fewer where the text is too short for a full window in each
    window: int  # tokens of a stream in one step

    @property
    def tokens(self) -> int:
        """Tokens of the text; each document has a mark of its beginning."""
        return sum(len(document) + 1 for document in self.documents)

    @property
    def count(self) -> int:
        """Number of streams."""
        return min(self.batch, max(1, (self.tokens - 1) // self.window))

    @property
    def steps(self) -> int:
        """Windows of an epoch."""
        return -(-((self.tokens - 1) // self.count) // self.window)

    def windows(self, seed: int, epoch: int) -> Iterator[Window]:
        """The windows of an epoch, which has its own order of documents; window t of a stream
        follows on its window t − 1.

        The few tokens that do not fill all streams alike are left out: others in every epoch.
        """
        order = np.random.default_rng([seed, epoch]).permutation(len(self.documents))
        step = -1 if self.direction == "backward" else 1
        parts = [part for row in order for part in ([BEGIN], self.documents[row][::step])]
        text = np.concatenate(parts).astype(np.int64)
        length = (len(text) - 1) // self.count
        inputs = text[: self.count * length].reshape(self.count, length)
        targets = text[1 : self.count * length + 1].reshape(self.count, length)
        for start in range(0, length, self.window):
            part = slice(start, start + self.window)
            yield Window(inputs=inputs[:, part], targets=targets[:, part])


def document_batches(
    documents: Sequence[Int32Array], direction: Direction, batch: int
) -> Iterator[Window]:
    """All documents, the longest first, each from its beginning; the last target of a document
    is the mark of the next one's beginning.
    """
    step = -1 if direction == "backward" else 1
    order = np.argsort([-len(document) for document in documents], kind="stable")
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        width = 1 + len(documents[rows[0]])
        inputs = np.full((len(rows), width), PAD, dtype=np.int64)
        targets = np.full((len(rows), width), IGNORED, dtype=np.int64)
        for number, row in enumerate(rows):
            tokens = documents[row][::step]
            inputs[number, : len(tokens) + 1] = [BEGIN, *tokens]
            targets[number, : len(tokens) + 1] = [*tokens, BEGIN]
        yield Window(inputs=inputs, targets=targets)
