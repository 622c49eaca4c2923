"""Vectors of labels, made of the mean states of their names and of some training documents, and
their cosines with a document's beginning.

All states of an encoder point much the same way. So the mean vector of all names is subtracted from
each name, and the mean vector of training documents from each document; what is left tells them
apart.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from plant_backbones import MiniLMOptions, MultilingualOptions
from plant_backbones.packaged import load_minilm, load_multilingual
from plant_network.hardware import find_device
from scipy.sparse import csr_array

from plant_cli.api import (
    Backbone,
    ComponentError,
    Documents,
    FittedScorer,
    MachineSection,
    Reason,
    Reporter,
    ScorerInput,
    SilentReporter,
)
from plant_cli.api.options import FIXED_SEED
from plant_cli.kit import (
    SparseScores,
    cut_rows,
    keep_best,
    pack_strings,
    stop_if_asked,
    unpack_strings,
)
from plant_dense import DenseOptions

Floats32 = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
NAME_WEIGHT = 10.0  # a name counts as so many training documents
WORDS_OF_A_TITLE = 4  # a first line that has fewer may be a heading of all texts
DOCUMENTS_OF_MEAN = 1000  # training documents that are read in any case, at most
READ_TOGETHER = 64  # read at a time
EMPTY = 1e-5  # length of a vector that is nothing but rounding


def fit(options: DenseOptions, given: ScorerInput) -> FittedScorer:
    """Vectors of the labels. For its left-out score a document is taken out of the vectors of its
    labels; the mean of documents, which knows no labels, keeps it.
    """
    encoder, rows = MeanStates(options), choose_examples(given, options.examples)
    texts = read_beginnings(given.documents.take(rows), options.words)
    states = encoder.read(texts, given.reporter, "dense: documents")
    names = encoder.read(given.names.texts or [], given.reporter, "dense: names")
    mean = states.mean(axis=0)
    documents, gold = normalise(states - mean), csr_array(given.gold[rows].astype(np.float32))
    if not options.examples:
        gold = csr_array(gold.shape, dtype=np.float32)
    keys = LabelKeys.make(names, given.label_of, np.asarray(gold.T @ documents))
    scorer = DenseScorer(
        options=options,
        names=[*(given.names.texts or []), ""],
        vectors=normalise(keys.vectors).astype(np.float16),
        name_of=keys.name_of,
        label_of=keys.label_of,
        labels=given.gold.shape[1],
        mean=mean,
        encoder=encoder,
    )
    left_out = np.arange(len(given.rows))  # the first of those that were read
    empty = np.diff(given.documents.ends)[rows[left_out]] == 0
    without = keys.leave_out(documents[left_out], csr_array(gold[left_out]))
    return FittedScorer(
        scorer=scorer, left_out=[scorer.compare(documents[left_out], empty, without)]
    )


def choose_examples(given: ScorerInput, examples: int) -> Integers:
    """Training documents that are read: those that need left-out scores, then others in an order
    drawn by lot: some in any case, and each that has a label of which fewer than so many were read.
    """
    others = np.setdiff1d(np.arange(len(given.documents)), given.rows)
    drawn = np.random.default_rng(FIXED_SEED).permutation(others)
    read, chosen = np.zeros(given.gold.shape[1], dtype=np.int64), list[int]()
    ends, least = given.gold.indptr, max(len(given.rows), DOCUMENTS_OF_MEAN)
    for row in [*given.rows.tolist(), *drawn.tolist()]:
        own = given.gold.indices[ends[row] : ends[row + 1]]
        if len(chosen) < least or (read[own] < examples).any():
            read[own] += 1
            chosen.append(row)
    return np.array(chosen, dtype=np.int64)


def read_beginnings(documents: Documents, words: int) -> list[str]:
    """The first line of each text as it is written, so many words at most; of a text whose first
    lines are very short, such as `FINAL REPORT`, also the next.
    """
    assert documents.texts is not None  # the spec asks for them
    beginnings = []
    for text in documents.texts:
        read: list[str] = []
        for line in io.StringIO(text):
            read += line.split(maxsplit=words)[:words]
            if len(read) >= WORDS_OF_A_TITLE:
                break
        beginnings.append(" ".join(read[:words]))
    return beginnings


def normalise(vectors: Floats32) -> Floats32:
    """Rows of length 1; a row of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats32 = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


@dataclass(frozen=True, kw_only=True)
class LabelKeys:
    """What documents are compared with: each name of a label, added to the label's documents; of
    a label without a name these alone.
    """

    vectors: Floats32  # not normalised [K, H]
    name_of: Integers  # the name of each, −1 for a label that has none [K]
    label_of: Integers  # the label of each, rising [K]

    @classmethod
    def make(cls, names: Floats32, label_of: Integers, sums: Floats32) -> LabelKeys:
        """Of the states of names [M, H], the label of each, rising [M], and the sum of each
        label's documents [L, H].
        """
        centred = normalise(names - names.mean(axis=0) if len(names) > 1 else names)
        unnamed = np.setdiff1d(np.flatnonzero(sums.any(axis=1)), label_of)
        labels = np.concatenate([label_of, unnamed])
        order = np.argsort(labels, kind="stable")
        numbers = np.concatenate([np.arange(len(names)), np.full(len(unnamed), -1)])
        own = np.concatenate([NAME_WEIGHT * centred, np.zeros((len(unnamed), sums.shape[1]))])
        return cls(
            vectors=(own + sums[labels])[order].astype(np.float32),
            name_of=numbers[order],
            label_of=labels[order],
        )

    def find(self, label: int) -> slice:
        """Those of one label."""
        return slice(*np.searchsorted(self.label_of, [label, label + 1]).tolist())

    def leave_out(self, documents: Floats32, gold: csr_array) -> csr_array:
        """Cosines of documents [b, H] with the keys of their labels, csr [b, L], without
        themselves, csr [b, K]; −1 for a key that is nothing else.
        """
        columns, values, ends = list[Integers](), list[Floats32](), [0]
        for row, (first, last) in enumerate(pairwise(gold.indptr.tolist())):
            for label in gold.indices[first:last].tolist():
                inside = self.find(label)
                others = self.vectors[inside] - documents[row]
                alone = np.linalg.norm(others, axis=1) < EMPTY
                columns.append(np.arange(inside.start, inside.stop))
                values.append(np.where(alone, -1, normalise(others) @ documents[row]))
            ends.append(ends[-1] + sum(map(len, columns[first:])))
        cells = np.concatenate([*values, []]), np.concatenate([*columns, []]).astype(np.int32)
        return csr_array((*cells, ends), shape=(len(documents), len(self.vectors)))


class MeanStates:
    """The mean of the states that an encoder gives to the tokens of a text; it is loaded when it
    is first asked.
    """

    def __init__(self, options: DenseOptions) -> None:
        self._options = options

    @cached_property
    def _backbone(self) -> Backbone:
        name, machine = self._options.backbone, MachineSection()
        try:
            backbone = (
                load_minilm(MiniLMOptions(), machine)
                if name == "minilm"
                else load_multilingual(MultilingualOptions(), machine)
            )
        except ComponentError as error:
            raise ComponentError(
                error.what,
                where="scorer 'dense'",
                expected=error.expected,
                todo=f"pip install 'plant-cli[{name}]', or leave the scorer out",
            ) from error
        backbone.module().to(find_device(machine.device)).eval()
        return backbone

    def read(self, texts: Sequence[str], reporter: Reporter, what: str) -> Floats32:
        """Mean states [n, H], zeros for a text without tokens; texts of like length are read
        together.
        """
        backbone, order = self._backbone, np.argsort([len(text) for text in texts], kind="stable")
        means = np.zeros((len(texts), backbone.hidden_size), dtype=np.float32)
        with reporter.progress(what, len(texts), "texts") as task, torch.inference_mode():
            for block in cut_rows(len(texts), 1, READ_TOGETHER):
                stop_if_asked()
                some = order[block]
                states, mask = backbone.encode(backbone.tokenize([texts[row] for row in some]))
                weights = mask[..., None].to(states.dtype)
                sums, tokens = (states * weights).sum(dim=1), weights.sum(dim=1)
                means[some] = (sums / tokens.clamp(min=1)).cpu().numpy()
                task.advance(len(some))
        return means


@dataclass(frozen=True, kw_only=True, eq=False)
class DenseScorer:
    """Scores by the cosine of a document's beginning with the vectors of labels."""

    options: DenseOptions  # which encoder reads, and how many words
    names: Sequence[str]  # and an empty one for labels without names [M + 1]
    vectors: npt.NDArray[np.float16]  # of labels, of length 1 [K, H]
    name_of: Integers  # the name of each, −1: none [K]
    label_of: Integers  # the label of each, rising [K]
    labels: int  # L
    mean: Floats32  # of training documents [H]
    encoder: MeanStates

    @cached_property
    def _transposed(self) -> Floats32:
        return np.ascontiguousarray(self.vectors.astype(np.float32).T)

    @cached_property
    def _firsts(self) -> npt.NDArray[np.intp]:
        """The first vector of each label that has one [n]."""
        return np.flatnonzero(np.diff(self.label_of, prepend=-1))

    def score(self, documents: Documents) -> list[csr_array]:
        """One view."""
        return [self.compare(self._read(documents), np.diff(documents.ends) == 0)]

    def _read(self, documents: Documents) -> Floats32:
        """Vectors of documents, of length 1 [B, H]; read once."""

        def read() -> Floats32:
            texts = read_beginnings(documents, self.options.words)
            return normalise(self.encoder.read(texts, SilentReporter(), "dense") - self.mean)

        return documents.remember(("plant_dense.vectors", self), read)

    def compare(
        self,
        documents: Floats32,
        empty: npt.NDArray[np.bool_],
        without: csr_array | None = None,
    ) -> csr_array:
        """The best labels of documents [B, H]; one that is empty has none. `without` has cosines
        that stand in for others, csr [B, K].
        """
        named, parts = self.label_of[self._firsts], []
        if not len(named):
            return SparseScores.none(len(documents), self.labels).matrix
        for block in cut_rows(len(documents), len(self.label_of)):
            cosines = documents[block] @ self._transposed
            if without is not None:
                own = without[block].tocoo()
                cosines[own.row, own.col] = own.data
            best = np.maximum.reduceat(cosines, self._firsts, axis=1)[~empty[block]]
            ends = np.append(0, np.cumsum(np.where(empty[block], 0, len(named))))
            cells = best.ravel(), np.tile(named, len(best)), ends
            parts.append(keep_best(csr_array(cells, shape=(len(ends) - 1, self.labels))))
        return SparseScores.join(parts, self.labels).matrix

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        """The name that is nearest, with its cosine."""
        cosines = self._read(document)[0] @ self._transposed
        return [self._explain(cosines, label) for label in labels]

    def _explain(self, cosines: Floats32, label: int) -> Reason:
        first, last = np.searchsorted(self.label_of, [label, label + 1])
        if first == last:
            return Reason()
        best = first + int(cosines[first:last].argmax())
        name = self.names[self.name_of[best]]
        return Reason(text=f"near {f'“{name}”' if name else 'its documents'} ({cosines[best]:.2f})")

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays."""
        return {
            "names": pack_strings(self.names),
            "vectors": self.vectors,
            "name_of": self.name_of,
            "label_of": self.label_of,
            "labels": np.array([self.labels]),
            "mean": self.mean,
        }

    @classmethod
    def load(cls, options: DenseOptions, tensors: Mapping[str, npt.NDArray[Any]]) -> DenseScorer:
        """From arrays."""
        return cls(
            options=options,
            names=unpack_strings(tensors["names"]),
            vectors=tensors["vectors"],
            name_of=tensors["name_of"],
            label_of=tensors["label_of"],
            labels=int(tensors["labels"][0]),
            mean=tensors["mean"],
            encoder=MeanStates(options),
        )
