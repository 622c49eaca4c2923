"""Softmax over real tokens, and inattention: all but the k largest scores of a row are left out before it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from plant_cli.api import ComponentError, DecoderShape, Reading
from plant_decoders import PlantedL2ROptions
from plant_decoders.label_tables import label_bias

Literally = Literal["mask", "zero"]


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis where the mask is true, in fp32 or better; zero elsewhere and in rows that are all masked."""
    exact = _fill(scores, mask)
    return torch.softmax(exact, -1) * mask.to(exact.dtype)


def masked_log_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Its logarithm; −inf where the mask is false."""
    return torch.log_softmax(_fill(scores, mask), -1).masked_fill(~mask, -torch.inf)


def _fill(scores: Tensor, mask: Tensor) -> Tensor:
    exact = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return exact.masked_fill(~mask, torch.finfo(exact.dtype).min)  # not −inf: a row that is all −inf would be NaN


def k_largest(scores: Tensor, mask: Tensor, k: int | None) -> Tensor:
    """Which real positions hold one of the k largest scores of their row; equal to the k-th: all of them. Without k: all real ones.

    Args:
        scores: [..., T].
        mask: true for real positions, of a shape that broadcasts to that of the scores.
        k: positions of a row.
    """
    there = mask.expand(scores.shape)
    if k is None or k >= scores.shape[-1]:
        return there
    filled = scores.detach().masked_fill(~there, -torch.inf)
    return (filled >= filled.topk(k, dim=-1).values[..., -1:]) & there


def inattention(scores: Tensor, mask: Tensor, k: int | None, dropped: Literally) -> Tensor:
    """Attention [..., T] whose scores are those of the k largest positions.

    Args:
        scores: [..., T].
        mask: true for real positions.
        k: positions that are attended to (None: all).
        dropped: `mask`: the others get no attention, their score is −inf. `zero`: their score becomes 0, as the paper's words and the
            authors' code have it, and they keep a weight of e⁰.

    Source: PLANT v1, inattention.
    """
    kept = k_largest(scores, mask, k)
    if dropped == "mask":
        return masked_softmax(scores, kept)
    return masked_softmax(scores.masked_fill(~kept, 0.0), mask.expand(scores.shape))


EMBEDDING_SCALE = 0.1


class WordTables(nn.Module, ABC):
    """A module with tensors that have a place for each word of the relevance table.

    Built without a relevance table, it takes their sizes over from the weights that it reads.
    """

    sized: tuple[str, ...] = ()

    @property
    @abstractmethod
    def words(self) -> int:
        """Words V of the relevance table."""

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        adopted = self.sized if not self.words else ()
        for name in adopted:
            saved = state_dict.get(prefix + name)
            if saved is None:
                continue
            own = getattr(self, name)
            fresh = own.detach().new_empty(saved.shape)
            setattr(self, name, nn.Parameter(fresh) if isinstance(own, nn.Parameter) else fresh)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class DotProduct(WordTables):
    """f(l, w) = ⟨e_w, e_l⟩ + b_w + b_l; the last row of words stands for all words outside the table."""

    sized = ("word", "word_bias")

    def __init__(self, words: int, labels: int, size: int) -> None:
        super().__init__()
        self.word = nn.Parameter(torch.randn(words + 1, size) * EMBEDDING_SCALE)
        self.label = nn.Parameter(torch.randn(labels, size) * EMBEDDING_SCALE)
        self.word_bias = nn.Parameter(torch.zeros(words + 1))
        self.label_bias = nn.Parameter(torch.zeros(labels))

    @property
    def words(self) -> int:
        """See `WordTables.words`."""
        return len(self.word) - 1

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        """Scores [l, U] of words [U] for labels [l]."""
        product = functional.embedding(labels, self.label) @ functional.embedding(words, self.word).T
        return product + self.label_bias[labels, None] + self.word_bias[words]


class TwoLayers(WordTables):
    """f(l, w) = v · relu(W [e_w; e_l] + b) + c; the last row of words stands for all words outside the table.

    The first layer is computed for words and for labels by themselves, and only added up for the pairs.
    """

    sized = ("word",)

    def __init__(self, words: int, labels: int, size: int, hidden: int) -> None:
        super().__init__()
        self.size, self.hidden = size, hidden
        self.word = nn.Parameter(torch.randn(words + 1, size) * EMBEDDING_SCALE)
        self.label = nn.Parameter(torch.randn(labels, size) * EMBEDDING_SCALE)
        self.first = nn.Linear(2 * size, hidden)
        self.second = nn.Linear(hidden, 1)

    @property
    def words(self) -> int:
        """See `WordTables.words`."""
        return len(self.word) - 1

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        """Scores [l, U] of words [U] for labels [l]."""
        of_word, of_label = torch.split(self.first.weight, self.size, dim=1)
        from_words = functional.embedding(words, self.word) @ of_word.T
        from_labels = functional.embedding(labels, self.label) @ of_label.T + self.first.bias
        scores: Tensor = self.second(torch.relu(from_labels[:, None] + from_words)).squeeze(-1)
        return scores


class StaticRelevance(WordTables):
    """Relevance of words for labels, by word: label numbers and values of each word one after the other.

    Args:
        relevance: csr [L, V] (None: nothing is relevant, or it is read from saved weights).
    """

    sized = ("starts", "labels", "values")
    starts: Tensor
    labels: Tensor
    values: Tensor

    def __init__(self, relevance: csr_array | None) -> None:
        super().__init__()
        by_word = None if relevance is None else relevance.tocsc()
        pointers = np.zeros(1) if by_word is None else by_word.indptr
        self.register_buffer("starts", torch.from_numpy(np.append(pointers, pointers[-1]).astype(np.int64)))
        self.register_buffer("labels", torch.from_numpy((np.zeros(0) if by_word is None else by_word.indices).astype(np.int64)))
        self.register_buffer("values", torch.from_numpy((np.zeros(0) if by_word is None else by_word.data).astype(np.float32)))

    @property
    def words(self) -> int:
        """See `WordTables.words`."""
        return len(self.starts) - 2

    def forward(self, words: Tensor, labels: Tensor, total: int) -> Tensor:
        """Relevance [l, U] of words [U] for labels [l], of `total` labels."""
        begins = self.starts[words]
        counts = self.starts[words + 1] - begins
        column = torch.repeat_interleave(torch.arange(len(words), device=words.device), counts)
        flat = torch.arange(len(column), device=words.device) + torch.repeat_interleave(begins - counts.cumsum(0) + counts, counts)
        place = torch.full((total,), -1, device=words.device).scatter_(0, labels, torch.arange(len(labels), device=words.device))
        row = place[self.labels[flat]]
        wanted = row >= 0
        found = self.values.new_zeros(len(labels), len(words))
        found[row[wanted], column[wanted]] = self.values[flat[wanted]]
        return found


ELEMENTS = {"cpu": 1 << 24, "cuda": 1 << 28}
"""Numbers that are held at a time for a block of labels."""

PARTS = ("learned", "static", "differentiable")


@dataclass(frozen=True, kw_only=True)
class Places:
    """The documents of a batch, cut into n windows of w tokens.

    Args:
        hidden: hidden states [B, T, H].
        mask: true for real tokens [B, 1, n, w].
        distinct: the distinct words of the batch [U], as rows of the relevance table; its number of rows for those outside.
        word: of each token, as a position in `distinct` [B, T].
        window: w.
    """

    hidden: Tensor
    mask: Tensor
    distinct: Tensor
    word: Tensor
    window: int

    def fold(self, values: Tensor) -> Tensor:
        """Values [B, l, T] as [B, l, n, w]."""
        return functional.pad(values, (0, -values.shape[-1] % self.window)).reshape(*values.shape[:-1], -1, self.window)

    def spread(self, of_words: Tensor) -> Tensor:
        """What each label has for a word [l, U], at each of its tokens [B, l, n, w]."""
        return self.fold(of_words[:, self.word].transpose(0, 1))


class PlantedL2R(nn.Module):
    """logit_l = Σ D_n + b_l over the windows of a document, D_n = φ(D_n−1, V_n), V = (A + S + P)ᵀ H ⊙ W.

    A = softmax(H Uᵀ) is learned; S is the relevance of each token's word; P = softmax of the L2R model f(label, word), which stage 1
    trains. S and P look at their k best tokens alone (inattention). W weighs what a label gathers, and its sum is the window's
    evidence q_n. The state is the mean of the windows so far, weighed by exp(a q_n): D_n = D_n−1 + z_n (V_n − D_n−1) with
    z_n = exp(a q_n) / Σ_m≤n exp(a q_m), so that a window that fits the label counts more than one that does not. (The sum over
    dimensions is linear, so one number for each label carries all of the vector's state that a logit can see, and the last state is
    a softmax over windows.) Without state a document is one window, and D_1 = V_1.

    Args:
        options: see `PlantedL2ROptions`.
        shape: the sizes, relevance, and what initialises bias and queries.

    Raises:
        ComponentError: no part of the attention is left.

    Source: PLANT v1; what it leaves open is settled in docs/decisions.md.
    """

    def __init__(self, options: PlantedL2ROptions, shape: DecoderShape) -> None:
        super().__init__()
        self.options = options
        self.parts = tuple(part for part in PARTS if getattr(options, part))
        if not self.parts:
            raise ComponentError(
                "no part of the attention is left",
                where="decoder 'planted-l2r': learned, static and differentiable are all false",
                expected="one part or more",
                todo="--set model.decoder.learned=true",
            )
        labels, hidden = shape.labels, shape.hidden
        words = 0 if shape.relevance is None else shape.relevance.shape[1]
        size = options.ranker_size
        self.ranker = (
            DotProduct(words, labels, size) if options.ranker == "dot-product" else TwoLayers(words, labels, size, options.ranker_hidden)
        )
        self.relevance = StaticRelevance(shape.relevance)
        random = torch.randn(labels, hidden) * options.init_scale
        self.queries = nn.Parameter(random if shape.queries is None else shape.queries.detach().float().clone())
        self.boost = nn.Parameter(torch.randn(labels, hidden) * options.init_scale)
        self.bias = label_bias(shape, prior=options.prior_bias)
        self.shares = nn.Parameter(torch.zeros(len(PARTS)))
        self.window_sharpness = nn.Parameter(torch.ones(()))

    @property
    def needs_words(self) -> bool:
        """See `plant_cli.api.WordDecoder`."""
        return self.options.static or self.options.differentiable

    def forward(self, reading: Reading, labels: Tensor | None = None) -> Tensor:
        """Logits [B, L], or [B, l] of the given labels [l], in blocks of labels; several blocks are computed again in the backward pass."""
        places = self._places(reading, self._window(reading))
        chosen = torch.arange(len(self.bias), device=reading.mask.device) if labels is None else labels
        blocks = torch.split(chosen, self._block(places))
        if len(blocks) == 1 or not torch.is_grad_enabled():
            return torch.cat([self._score(places, block) for block in blocks], dim=1)
        return torch.cat([checkpoint(self._score, places, block, use_reentrant=False) for block in blocks], dim=1)

    def rank(self, reading: Reading, labels: Tensor) -> Tensor:
        """Log attention [B, l, T] of the L2R model over whole documents, all words counted: what stage 1 trains.

        Its difference between two tokens is that of f. Without differentiable attention, that of the learned part.
        """
        places = self._places(reading, reading.mask.shape[1])
        scores = self._ranked(places, labels) if self.options.differentiable else self._learned(places, labels)
        return masked_log_softmax(scores, places.mask).flatten(2)

    def attention(self, reading: Reading, labels: Tensor) -> Tensor:
        """What each token's hidden state counts in the logit [B, l, T]: all parts, and how much of each window the state keeps."""
        places = self._places(reading, self._window(reading))
        mixed = self._mix(places, labels)
        weights = (mixed * self._kept(self._evidence(places, mixed, labels), places).unsqueeze(-1)).flatten(2)
        weights = weights[..., : reading.mask.shape[1]]
        total, mask = weights.sum(-1, keepdim=True), reading.mask[:, None]
        even = mask / mask.sum(-1, keepdim=True).clamp(min=1)  # where no part looks at anything
        return torch.where(total > 0, weights / total.clamp_min(torch.finfo(total.dtype).tiny), even)

    def parameter_roles(self) -> Mapping[str, Sequence[nn.Parameter]]:
        """`attention`: the L2R model, which stage 1 trains; `boost`: the tables of each label; `head`: what is left.

        Without differentiable attention the learned part is the attention.
        """
        ranker, head = list(self.ranker.parameters()), [self.bias, self.shares, self.window_sharpness]
        if self.options.differentiable:
            return {"attention": ranker, "boost": [self.queries, self.boost], "head": head}
        return {"attention": [self.queries], "boost": [self.boost], "head": [*head, *ranker]}

    def _window(self, reading: Reading) -> int:
        return self.options.window if self.options.state else reading.mask.shape[1]

    def _places(self, reading: Reading, window: int) -> Places:
        words = torch.where(reading.words >= 0, reading.words, self.ranker.words)
        distinct, word = torch.unique(words, return_inverse=True)
        mask = functional.pad(reading.mask, (0, -reading.mask.shape[1] % window)).reshape(len(reading), 1, -1, window)
        return Places(hidden=reading.hidden.to(self.boost.dtype), mask=mask, distinct=distinct, word=word, window=window)

    def _block(self, places: Places) -> int:
        """Labels at a time."""
        held = self.options.elements or ELEMENTS.get(places.hidden.device.type, ELEMENTS["cpu"])
        ranked = len(places.distinct) * getattr(self.ranker, "hidden", 1) if self.options.differentiable else 0
        return max(1, held // max(1, 4 * places.word.numel(), ranked))

    def _score(self, places: Places, labels: Tensor) -> Tensor:
        evidence = self._evidence(places, self._mix(places, labels), labels)
        return (evidence * self._kept(evidence, places)).sum(-1) + self.bias[labels]

    def _learned(self, places: Places, labels: Tensor) -> Tensor:
        """Scores H Uᵀ of the learned part [B, l, n, w]."""
        return places.fold(functional.embedding(labels, self.queries) @ places.hidden.mT)

    def _ranked(self, places: Places, labels: Tensor) -> Tensor:
        """Scores f(label, word) at each token [B, l, n, w]."""
        return places.spread(self.ranker(places.distinct, labels))

    def _static(self, places: Places, labels: Tensor) -> Tensor:
        """Static attention [B, l, n, w]: the relevance of the k most relevant tokens of each window."""
        found = places.spread(self.relevance(places.distinct, labels, len(self.bias)).to(self.boost.dtype))
        kept = found * k_largest(found, places.mask, self.options.static_k)
        if self.options.static_rows == "raw":
            return kept
        total = kept.sum(-1, keepdim=True)
        return kept / torch.where(total > 0, total, 1)

    def _mix(self, places: Places, labels: Tensor) -> Tensor:
        """The sum of all parts [B, l, n, w]; with learned weights, which add up to the number of parts."""
        found = []
        for part in self.parts:
            if part == "learned":
                found.append(masked_softmax(self._learned(places, labels), places.mask))
            elif part == "static":
                found.append(self._static(places, labels))
            else:
                scores = self._ranked(places, labels)
                found.append(inattention(scores, places.mask, self.options.differentiable_k, self.options.inattention))
        if self.options.combine == "sum":
            return torch.stack(found).sum(0)
        weights = torch.softmax(self.shares[[PARTS.index(part) for part in self.parts]], 0) * len(found)
        return sum((part * weight for part, weight in zip(found, weights, strict=True)), torch.zeros_like(found[0]))

    def _evidence(self, places: Places, mixed: Tensor, labels: Tensor) -> Tensor:
        """Evidence q [B, l, n], the sum over dimensions of what a label gathers in a window, weighed by W."""
        weights = functional.embedding(labels, self.boost) if self.options.boost else torch.ones_like(self.boost[:1])
        values = weights @ places.hidden.mT
        return (mixed * places.fold(values).to(mixed.dtype)).sum(-1)

    def _kept(self, evidence: Tensor, places: Places) -> Tensor:
        """How much of each window's evidence is left in the last state [B, l, n]: the weight of its window among all of them."""
        if not self.options.state:
            return torch.ones_like(evidence)
        return masked_softmax(self.window_sharpness * evidence, places.mask.any(-1))
