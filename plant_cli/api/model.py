"""The parts of a network. Shapes: B documents, T tokens, H hidden size, L labels, l selected
labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from plant_cli.api.read_only import protect

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch
    from scipy.sparse import csr_array
    from torch import Tensor, nn

    IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class TokenBatch:
    """Tokenised documents of different lengths, without special tokens."""

    ids: Sequence[IntArray]
    """Token ids of each document [n]."""
    spans: Sequence[IntArray]
    """Start and end of each token in its document [n, 2], in code points; the end is exclusive."""
    dropped: Sequence[int]
    """Number of tokens of each document that were cut off."""

    def __len__(self) -> int:
        return len(self.ids)

    def select(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> TokenBatch:
        """Some of the documents, in the order of `rows`."""
        return TokenBatch(
            ids=[self.ids[i] for i in rows],
            spans=[self.spans[i] for i in rows],
            dropped=[self.dropped[i] for i in rows],
        )


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A batch of documents as a decoder sees it."""

    hidden: Tensor
    """Hidden states [B, T, H]."""
    mask: Tensor
    """True for real tokens, false for padding: bool [B, T]."""
    words: Tensor
    """Row of each token's word in the relevance table, int64 [B, T]; -1 if it has none. All are
    -1 unless the decoder needs words (`WordDecoder`) and the run has a relevance table.
    """

    @classmethod
    def of(cls, hidden: Tensor, mask: Tensor, words: Tensor | None = None) -> Reading:
        """A reading; without `words` no token has a word."""
        return cls(
            hidden=hidden, mask=mask, words=mask.long().fill_(-1) if words is None else words
        )

    def __len__(self) -> int:
        return len(self.mask)

    def select(self, documents: slice | Tensor, tokens: slice = slice(None)) -> Reading:
        """Some of the documents, and some of their tokens."""
        return Reading(
            hidden=self.hidden[documents][:, tokens],
            mask=self.mask[documents][:, tokens],
            words=self.words[documents][:, tokens],
        )


@dataclass(frozen=True, kw_only=True)
class GroupedReading(Reading):
    """What a decoder of two levels makes of a reading: `hidden` [B, T, V] is what both levels
    attend to; see `GroupedDecoder`.
    """

    group_logits: Tensor
    """Logits of the groups of labels [B, G]."""

    def select(self, documents: slice | Tensor, tokens: slice = slice(None)) -> GroupedReading:
        """Some of the documents, and some of their tokens; logits of groups stay those of all
        tokens.
        """
        some = Reading.select(self, documents, tokens)
        return GroupedReading(
            hidden=some.hidden,
            mask=some.mask,
            words=some.words,
            group_logits=self.group_logits[documents],
        )


@runtime_checkable
class Backbone(Protocol):
    """A network that reads text. It gives hidden states of content tokens: special tokens are
    left out, padding is masked.
    """

    hidden_size: int
    """Size H of the hidden states."""
    max_length: int
    """Tokens of a document that are read; the others are cut off and counted."""
    tokenizer_hash: str
    """Equal for tokenizers that give the same tokens for every text."""

    def tokenize(self, texts: Sequence[str]) -> TokenBatch:
        """Split texts into tokens with character offsets."""

    def encode(self, batch: TokenBatch) -> tuple[Tensor, Tensor]:
        """Hidden states [B, T, H] and mask [B, T], true for real tokens. Long documents are
        read in windows that are joined.
        """

    def module(self) -> nn.Module:
        """The trainable network. `encode` calls this module, since the call gathers parameters
        that are spread over processes.
        """

    def layer_groups(self) -> Sequence[Sequence[nn.Parameter]]:
        """Trainable parameters by layer, from first to last, for gradual unfreezing."""

    def save(self, folder: Path) -> None:
        """Write what fine-tuning changed, as safetensors."""

    def restore(self, folder: Path) -> None:
        """Read back what `save` wrote."""


@runtime_checkable
class TracedBackbone(Protocol):
    """A backbone that names the weights that it loaded. Optional."""

    @property
    def origin(self) -> str:
        """Hub id and revision, folder, or package and version; also how exact a copy it is, if
        it is one.
        """


@runtime_checkable
class ExportableBackbone(Protocol):
    """A backbone that other programs can load after export. Optional."""

    def export(self, folder: Path, *, merge: bool) -> Mapping[str, Any]:
        """Write the trained backbone and describe what was written; the backbone must not be used
        afterwards.

        Args:
            folder: the folder to write to.
            merge: write complete weights with the trained adapter merged in, instead of the adapter
                alone.
        """


@dataclass(frozen=True, kw_only=True)
class DecoderShape:
    """The sizes and initial values that a decoder is built from."""

    hidden: int
    """The backbone's hidden size H."""
    labels: int
    """Number of labels L."""
    prior: Tensor | None = None
    """Share of training documents with each label [L], for the bias; None for no prior bias."""
    queries: Tensor | None = None
    """Initial label queries [L, H], such as encoded titles; None for random ones."""
    label_ids: Sequence[str] = ()
    """Ids of the labels [L], sorted; empty if they are unknown."""
    parents: Sequence[str | None] = ()
    """The parent of each label [L], None if it has none; empty if no label has a parent."""
    relevance: csr_array | None = None
    """Relevance of the words for the labels, csr [L, V] float32 in [0, 1]; `Reading.words`
    numbers its columns. None if the run has no relevance table, or if weights are loaded
    afterwards.
    """

    planted: bool = True
    """Whether training starts from what is planted; else attention starts from nothing."""

    def __post_init__(self) -> None:
        protect(self)


@runtime_checkable
class Decoder(Protocol):
    """An `nn.Module` with two uses of the same weights: rank words for a label (stage 1) and
    score labels (stage 2).
    """

    def rank(self, reading: Reading, labels: Tensor) -> Tensor:
        """Log attention [B, l, T] of the labels (indices [l]) on every position, −inf if
        masked: the attention that stage 1 trains.
        """

    def forward(self, reading: Reading, labels: Tensor | None = None) -> Tensor:
        """Logits [B, L], or [B, l] of some labels (indices [l])."""

    def attention(self, reading: Reading, labels: Tensor) -> Tensor:
        """Attention weights [B, l, T]; they sum to 1 over real tokens."""

    def parameter_roles(self) -> Mapping[str, Sequence[nn.Parameter]]:
        """Every parameter once, by role: `attention` (trained by stage 1), `value`, `boost` (a
        row for each label) or `head`.
        """


@runtime_checkable
class WordDecoder(Protocol):
    """A decoder that reads the words of a document. Optional."""

    needs_words: bool
    """Whether `Reading.words` must be filled."""


@runtime_checkable
class PlantableDecoder(Protocol):
    """A decoder whose label tables can start from prototypes: what attention gathers on each
    label's training documents. Optional.
    """

    gathered_size: int
    """Size V of what attention gathers."""

    def gather(self, reading: Reading, labels: Tensor) -> Tensor:
        """What each label's attention gathers [B, l, V]."""

    def sharpen(self, factor: float) -> None:
        """Multiply the attention scores by a factor, the inverse temperature; 0 makes attention
        uniform.
        """

    def plant_tables(self, prototypes: Tensor, background: Tensor, scale: float) -> None:
        """Initialise the label tables so that the logit is about +scale/2 at the prototype and
        −scale/2 at the background.

        Args:
            prototypes: what attention gathers on the documents of each label [L, V].
            background: what it gathers on any documents [L, V].
            scale: the difference of the two logits.
        """


@runtime_checkable
class GroupedDecoder(Protocol):
    """A decoder that also scores groups of labels; stage 2 adds their loss to that of the labels.
    Optional.

    Stage 2 calls `read_groups` once for a batch and passes the result to all other methods in place
    of the reading, so that both losses see the same states after dropout.
    """

    groups: Tensor
    """The group of each label, int64 [L]. A property, since `isinstance` sees no buffers from
    Python 3.12 on.
    """

    def read_groups(self, reading: Reading) -> GroupedReading:
        """The documents with logits of the groups [B, G]; a document has the groups of its
        labels.
        """


@runtime_checkable
class GradedDecoder(Protocol):
    """A plantable decoder that gathers with several sharpnesses in one pass over train.
    Optional.
    """

    def gather_sharpened(
        self, reading: Reading, labels: Tensor, factors: Sequence[float]
    ) -> Tensor:
        """What `gather` would give after `sharpen` by each factor [F, B, l, V]; the decoder
        does not change.
        """


class Gathered(NamedTuple):
    """What attention gathers from documents, as it differs from their means: mean + change.

    Where the attention of a label is even, as without words that are relevant for it, its change
    is exactly 0: a regression then shares what labels have in common.
    """

    mean: Tensor  # of each document [B, V]
    change: Tensor  # of each label [B, l, V]
    strength: Tensor  # how strongly the best tokens speak for a label [B, l]; zeros if unknown


@runtime_checkable
class ClosedFormDecoder(Protocol):
    """A decoder with a linear classifier for each label, on what its attention gathers, which
    can be set. Optional.
    """

    gathered_size: int
    """Size V of what attention gathers."""
    sees_mean: bool
    """Whether classifiers also see the mean of a document, beside what attention gathers."""

    def gather_with_strength(self, reading: Reading, labels: Tensor) -> Gathered:
        """What attention gathers for each label, and how strongly."""

    def plant_head(
        self, weights: Tensor, of_mean: Tensor, constant: Tensor, strength: Tensor
    ) -> None:
        """Set the classifiers: the logit becomes weights · gathered + of_mean · mean + constant +
        strength · that of the label's attention.

        Args:
            weights: of each label [L, V].
            of_mean: of each label [L, V]; zero where classifiers do not see the mean.
            constant: of each label [L].
            strength: of each label [L].
        """


@runtime_checkable
class QueryDecoder(Protocol):
    """A decoder whose label queries can be set, so that stage 1 can start from a regression of
    relevance on its keys. Optional.
    """

    heads: int
    """Number of attention heads."""

    def keys(self, reading: Reading) -> Tensor:
        """The keys that queries are multiplied with [B, T, H], heads concatenated."""

    def plant_queries(self, queries: Tensor) -> None:
        """Set the queries [L, H], heads concatenated; a score is the product of query and key,
        unscaled.
        """


@runtime_checkable
class SparseDecoder(Protocol):
    """A decoder whose label tables can be trained row by row. Optional."""

    sparse: bool
    """Set by training. If true, `forward` and `rank` with `labels` give sparse gradients of
    `label_tables`, only rows of these labels.
    """

    def label_tables(self) -> Sequence[nn.Parameter]:
        """Parameters with a row for each label [L, …]."""


@runtime_checkable
class PairDecoder(Protocol):
    """A decoder that scores and ranks chosen pairs of document and label in one pass. Optional.

    Without it documents are scored one by one, and all labels of a batch are ranked for each of its
    documents.
    """

    def score_pairs(self, reading: Reading, labels: Tensor, wanted: Tensor) -> Tensor:
        """Logits [B, l] of distinct labels (indices [l]) where `wanted` [B, l] is true; other
        values are ignored.
        """

    def rank_pairs(self, reading: Reading, labels: Tensor, wanted: Tensor) -> Tensor:
        """Log attention [B, l, T] as by `Decoder.rank` where `wanted` [B, l] is true; other
        values are ignored.
        """


@runtime_checkable
class LeaveOutDecoder(Protocol):
    """A decoder, or what it folds into, that says what each token is worth. Optional: without
    it `plant explain` takes its attention.
    """

    def leave_out_tokens(self, reading: Reading, labels: Tensor) -> Tensor:
        """What the logit of each label (indices [l]) loses without each token [B, l, T]:
        attention is then shared among the others.
        """


@runtime_checkable
class FoldableDecoder(Protocol):
    """A decoder that scores faster, or in less memory, once its weights are final. Optional."""

    def fold(self) -> nn.Module:
        """A module whose `forward(reading, labels)` gives the same logits; it replaces the
        decoder.
        """


class RankLoss(Protocol):
    """A loss of stage 1 over ranked lists of different lengths."""

    def __call__(self, scores: Tensor, relevance: Tensor, offsets: Tensor) -> Tensor:
        """Mean loss over lists.

        Args:
            scores: scores of the items of all lists [n].
            relevance: their relevance [n], 0 or more.
            offsets: int64 [lists + 1]; list i has the items `offsets[i]:offsets[i + 1]`.
        """


class LabelLoss(Protocol):
    """A loss of stage 2."""

    hard_negatives: int
    """How many negatives of a document count, those with the highest scores; 0: all labels
    count.
    """
    random_negatives: int
    """How many negatives drawn at random count in addition."""

    def __call__(self, logits: Tensor, targets: Tensor, selected: Tensor | None = None) -> Tensor:
        """Mean loss over documents.

        Args:
            logits: logits of the labels [B, l].
            targets: 1 for labels that the document has, else 0 [B, l].
            selected: pairs that count, bool [B, l]; None if the loss selects them.
        """

    def select(
        self, logits: Tensor, targets: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """The pairs that count, bool [B, l]: positives, the hardest negatives and random
        negatives.
        """
