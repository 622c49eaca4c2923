"""The decoder `planted-l2r`: learned, static and differentiable planted attention, with
inattention and a state over windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from plant_cli.api import ComponentError, DecoderShape, Reading
from plant_decoders import PlantedL2ROptions
from plant_decoders.label_tables import label_bias
from plant_decoders.word_tables import RelevanceByWord, WordTables

EMBEDDING_SCALE = 0.1
DECODER_NUMBERS = {"cpu": 1 << 24, "cuda": 1 << 28}  # numbers held at a time for a block of labels
ATTENTION_PARTS = ("learned", "static", "differentiable")


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis where the mask is true, in fp32 or better; zero elsewhere and
    in rows that are all masked.
    """
    exact = _fill(scores, mask)
    return torch.softmax(exact, -1) * mask.to(exact.dtype)


def masked_log_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """The logarithm of `masked_softmax`; −inf where the mask is false."""
    return torch.log_softmax(_fill(scores, mask), -1).masked_fill(~mask, -torch.inf)


def _fill(scores: Tensor, mask: Tensor) -> Tensor:
    exact = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return exact.masked_fill(
        ~mask, torch.finfo(exact.dtype).min
    )  # not −inf: a row that is all −inf would be NaN


def k_largest(scores: Tensor, mask: Tensor, k: int | None) -> Tensor:
    """Which real positions have one of the k largest scores [..., T] of their row, all that
    equal the k-th included (None: all).
    """
    real = mask.expand(scores.shape)
    if k is None or k >= scores.shape[-1]:
        return real
    filled = scores.detach().masked_fill(~real, -torch.inf)
    return (filled >= filled.topk(k, dim=-1).values[..., -1:]) & real


def inattention(
    scores: Tensor, mask: Tensor, k: int | None, dropped: Literal["mask", "zero"]
) -> Tensor:
    """Attention [..., T] by the k largest scores of each row (PLANT v1, inattention).

    The others get no attention (`mask`), or their score becomes 0, so that they keep a weight of e⁰
    (`zero`: the paper's words and the authors' code).
    """
    kept = k_largest(scores, mask, k)
    if dropped == "mask":
        return masked_softmax(scores, kept)
    return masked_softmax(scores.masked_fill(~kept, 0.0), mask.expand(scores.shape))


class DotProduct(WordTables):
    """f(l, w) = ⟨e_w, e_l⟩ + b_w + b_l; the last row of words stands for all words outside the
    table.
    """

    sized = ("word", "word_bias")

    def __init__(self, words: int, labels: int, size: int) -> None:
        super().__init__()
        self.word = nn.Parameter(torch.randn(words + 1, size) * EMBEDDING_SCALE)
        self.label = nn.Parameter(torch.randn(labels, size) * EMBEDDING_SCALE)
        self.word_bias = nn.Parameter(torch.zeros(words + 1))
        self.label_bias = nn.Parameter(torch.zeros(labels))

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        """Scores [l, U] of words [U] for labels [l]."""
        product = (
            functional.embedding(labels, self.label) @ functional.embedding(words, self.word).T
        )
        return product + self.label_bias[labels, None] + self.word_bias[words]


class TwoLayers(WordTables):
    """f(l, w) = v · relu(W [e_w; e_l] + b) + c; the last row of words stands for all words outside
    the table.

    The first layer is computed for words and for labels by themselves, and only added up for the
    pairs.
    """

    sized = ("word",)

    def __init__(self, words: int, labels: int, size: int, hidden: int) -> None:
        super().__init__()
        self.size, self.hidden = size, hidden
        self.word = nn.Parameter(torch.randn(words + 1, size) * EMBEDDING_SCALE)
        self.label = nn.Parameter(torch.randn(labels, size) * EMBEDDING_SCALE)
        self.first = nn.Linear(2 * size, hidden)
        self.second = nn.Linear(hidden, 1)

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        """Scores [l, U] of words [U] for labels [l]."""
        of_word, of_label = torch.split(self.first.weight, self.size, dim=1)
        from_words = functional.embedding(words, self.word) @ of_word.T
        from_labels = functional.embedding(labels, self.label) @ of_label.T + self.first.bias
        scores: Tensor = self.second(torch.relu(from_labels[:, None] + from_words)).squeeze(-1)
        return scores


@dataclass(frozen=True, kw_only=True)
class WindowedBatch:
    """The documents of a batch, cut into n windows of w tokens."""

    hidden: Tensor  # hidden states [B, T, H]
    mask: Tensor  # true for real tokens [B, 1, n, w]
    # the distinct words of the batch [U], as rows of the relevance table; its number of rows for
    # those outside
    distinct: Tensor
    word: Tensor  # of each token, as a position in `distinct` [B, T]
    window: int  # w

    def fold(self, values: Tensor) -> Tensor:
        """Values [B, l, T] as [B, l, n, w]."""
        return functional.pad(values, (0, -values.shape[-1] % self.window)).reshape(
            *values.shape[:-1], -1, self.window
        )

    def spread(self, of_words: Tensor) -> Tensor:
        """Numbers of each label for the words [l, U], at the tokens of these words [B, l, n, w]."""
        return self.fold(of_words[:, self.word].transpose(0, 1))


class PlantedL2R(nn.Module):
    """logit_l = Σ D_n + b_l over the windows of a document, D_n = φ(D_n−1, V_n), V = (A + S + P)ᵀ H
    ⊙ W.

    A = softmax(H Uᵀ) is learned; S is the relevance of each token's word; P = softmax of the L2R
    model f(label, word), which stage 1 trains. S and P look only at their k best tokens
    (inattention). W weighs what a label gathers, and its sum is the window's evidence q_n. The
    state is the mean of the windows so far, weighed by exp(a q_n): D_n = D_n−1 + z_n (V_n − D_n−1)
    with z_n = exp(a q_n) / Σ_m≤n exp(a q_m), so that a window that fits the label counts more than
    one that does not. (The sum over dimensions is linear, so one number for each label carries all
    of the vector's state that a logit can see, and the last state is a softmax over windows.)
    Without state a document is one window, and D_1 = V_1.

    Source: PLANT v1; what it leaves open is settled in docs/decisions.md.
    """

    def __init__(self, options: PlantedL2ROptions, shape: DecoderShape) -> None:
        super().__init__()
        self.options = options
        self.parts = tuple(part for part in ATTENTION_PARTS if getattr(options, part))
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
            DotProduct(words, labels, size)
            if options.ranker == "dot-product"
            else TwoLayers(words, labels, size, options.ranker_hidden)
        )
        self.relevance = RelevanceByWord(shape.relevance)
        random = torch.randn(labels, hidden) * options.init_scale
        self.queries = nn.Parameter(
            random if shape.queries is None else shape.queries.detach().float().clone()
        )
        self.boost = nn.Parameter(torch.randn(labels, hidden) * options.init_scale)
        self.bias = label_bias(shape, prior=options.prior_bias)
        self.shares = nn.Parameter(torch.zeros(len(ATTENTION_PARTS)))
        self.window_sharpness = nn.Parameter(torch.ones(()))

    @property
    def needs_words(self) -> bool:
        """Whether any part looks at the words of tokens."""
        return self.options.static or self.options.differentiable

    def forward(self, reading: Reading, labels: Tensor | None = None) -> Tensor:
        """Logits [B, L], or [B, l] of the given labels [l], in blocks of labels; several blocks
        are computed again in the backward pass.
        """
        batch = self._cut(reading, self._window(reading))
        chosen = (
            torch.arange(len(self.bias), device=reading.mask.device) if labels is None else labels
        )
        held = self.options.elements or DECODER_NUMBERS.get(
            batch.hidden.device.type, DECODER_NUMBERS["cpu"]
        )
        ranked = (
            len(batch.distinct) * getattr(self.ranker, "hidden", 1)
            if self.options.differentiable
            else 0
        )
        blocks = torch.split(chosen, max(1, held // max(1, 4 * batch.word.numel(), ranked)))
        if len(blocks) == 1 or not torch.is_grad_enabled():
            return torch.cat([self._score(batch, block) for block in blocks], dim=1)
        return torch.cat(
            [checkpoint(self._score, batch, block, use_reentrant=False) for block in blocks], dim=1
        )

    def rank(self, reading: Reading, labels: Tensor) -> Tensor:
        """Log attention [B, l, T] of the L2R model over whole documents and all words, as stage 1
        trains it.

        Its difference between two tokens is that of f. Without differentiable attention, that of
        the learned part.
        """
        batch = self._cut(reading, reading.mask.shape[1])
        scores = (
            self._ranked(batch, labels)
            if self.options.differentiable
            else self._learned(batch, labels)
        )
        return masked_log_softmax(scores, batch.mask).flatten(2)

    def attention(self, reading: Reading, labels: Tensor) -> Tensor:
        """The weight of each token's hidden state in the logit [B, l, T]: all parts, times the
        share of its window in the state.
        """
        batch = self._cut(reading, self._window(reading))
        mixed = self._mix(batch, labels)
        weights = (
            mixed * self._kept(self._evidence(batch, mixed, labels), batch).unsqueeze(-1)
        ).flatten(2)
        weights = weights[..., : reading.mask.shape[1]]
        total, mask = weights.sum(-1, keepdim=True), reading.mask[:, None]
        even = mask / mask.sum(-1, keepdim=True).clamp(min=1)  # where no part looks at anything
        return torch.where(
            total > 0, weights / total.clamp_min(torch.finfo(total.dtype).tiny), even
        )

    def parameter_roles(self) -> Mapping[str, Sequence[nn.Parameter]]:
        """`attention`: the L2R model, which stage 1 trains; `boost`: the tables of each label;
        `head`: the rest.

        Without differentiable attention the learned part is the attention.
        """
        ranker, head = (
            list(self.ranker.parameters()),
            [self.bias, self.shares, self.window_sharpness],
        )
        if self.options.differentiable:
            return {"attention": ranker, "boost": [self.queries, self.boost], "head": head}
        return {"attention": [self.queries], "boost": [self.boost], "head": [*head, *ranker]}

    def _window(self, reading: Reading) -> int:
        return self.options.window if self.options.state else reading.mask.shape[1]

    def _cut(self, reading: Reading, window: int) -> WindowedBatch:
        words = torch.where(reading.words >= 0, reading.words, self.ranker.words)
        distinct, word = torch.unique(words, return_inverse=True)
        mask = functional.pad(reading.mask, (0, -reading.mask.shape[1] % window)).reshape(
            len(reading), 1, -1, window
        )
        return WindowedBatch(
            hidden=reading.hidden.to(self.boost.dtype),
            mask=mask,
            distinct=distinct,
            word=word,
            window=window,
        )

    def _score(self, batch: WindowedBatch, labels: Tensor) -> Tensor:
        evidence = self._evidence(batch, self._mix(batch, labels), labels)
        return (evidence * self._kept(evidence, batch)).sum(-1) + self.bias[labels]

    def _learned(self, batch: WindowedBatch, labels: Tensor) -> Tensor:
        """Scores H Uᵀ of the learned part [B, l, n, w]."""
        return batch.fold(functional.embedding(labels, self.queries) @ batch.hidden.mT)

    def _ranked(self, batch: WindowedBatch, labels: Tensor) -> Tensor:
        """Scores f(label, word) at each token [B, l, n, w]."""
        return batch.spread(self.ranker(batch.distinct, labels))

    def _static(self, batch: WindowedBatch, labels: Tensor) -> Tensor:
        """Static attention [B, l, n, w]: the relevance of the k most relevant tokens of each
        window.
        """
        found = batch.spread(
            self.relevance(batch.distinct, labels, len(self.bias)).to(self.boost.dtype)
        )
        kept = found * k_largest(found, batch.mask, self.options.static_k)
        if self.options.static_rows == "raw":
            return kept
        total = kept.sum(-1, keepdim=True)
        return kept / torch.where(total > 0, total, 1)

    def _mix(self, batch: WindowedBatch, labels: Tensor) -> Tensor:
        """The sum of all parts [B, l, n, w]; with learned weights, which add up to the number
        of parts.
        """
        found = []
        for part in self.parts:
            if part == "learned":
                found.append(masked_softmax(self._learned(batch, labels), batch.mask))
            elif part == "static":
                found.append(self._static(batch, labels))
            else:
                scores = self._ranked(batch, labels)
                found.append(
                    inattention(
                        scores, batch.mask, self.options.differentiable_k, self.options.inattention
                    )
                )
        if self.options.combine == "sum":
            return torch.stack(found).sum(0)
        weights = torch.softmax(
            self.shares[[ATTENTION_PARTS.index(part) for part in self.parts]], 0
        ) * len(found)
        return sum(
            (part * weight for part, weight in zip(found, weights, strict=True)),
            torch.zeros_like(found[0]),
        )

    def _evidence(self, batch: WindowedBatch, mixed: Tensor, labels: Tensor) -> Tensor:
        """Evidence q [B, l, n], the sum over dimensions of what a label gathers in a window,
        weighed by W.
        """
        weights = (
            functional.embedding(labels, self.boost)
            if self.options.boost
            else torch.ones_like(self.boost[:1])
        )
        values = weights @ batch.hidden.mT
        return (mixed * batch.fold(values).to(mixed.dtype)).sum(-1)

    def _kept(self, evidence: Tensor, batch: WindowedBatch) -> Tensor:
        """The weight of each window's evidence in the last state [B, l, n]."""
        if not self.options.state:
            return torch.ones_like(evidence)
        return masked_softmax(self.window_sharpness * evidence, batch.mask.any(-1))
