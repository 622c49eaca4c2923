"""Roles of the network's parts. B documents, T tokens, H hidden size, L labels, l selected labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch
    from scipy.sparse import csr_array
    from torch import Tensor, nn

    IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class TokenBatch:
    """Tokenised documents, ragged: one entry a document, special tokens not included."""

    ids: Sequence[IntArray]
    """Token ids [n] of each document."""
    spans: Sequence[IntArray]
    """Character offsets [n, 2] of each token in its document (code points, end exclusive)."""
    dropped: Sequence[int]
    """Tokens beyond the backbone's limit, per document; counted and reported, never silent."""

    def __len__(self) -> int:
        return len(self.ids)

    def select(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> TokenBatch:
        """The given documents, in that order."""
        return TokenBatch(ids=[self.ids[i] for i in rows], spans=[self.spans[i] for i in rows], dropped=[self.dropped[i] for i in rows])


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a decoder is given of a batch of documents."""

    hidden: Tensor
    """Hidden states [B, T, H]."""
    mask: Tensor
    """Bool [B, T], true for real tokens."""
    words: Tensor
    """Row of each token's word in the relevance table [B, T], int64; -1 for none. All are -1 unless the decoder asks for words
    (`WordDecoder`) and the run has a relevance table.
    """

    @classmethod
    def of(cls, hidden: Tensor, mask: Tensor, words: Tensor | None = None) -> Reading:
        """A reading; without `words` no token has one."""
        return cls(hidden=hidden, mask=mask, words=mask.long().fill_(-1) if words is None else words)

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.mask)

    def select(self, documents: slice | Tensor, tokens: slice = slice(None)) -> Reading:
        """Some of the documents, and of each some of the tokens."""
        return Reading(
            hidden=self.hidden[documents][:, tokens], mask=self.mask[documents][:, tokens], words=self.words[documents][:, tokens]
        )


@dataclass(frozen=True, kw_only=True)
class GroupedReading(Reading):
    """A reading that a decoder of two levels has read on, and what it scored there; see `GroupedDecoder`.

    Args:
        hidden: the states that both levels attend to [B, T, V].
        mask: as in the reading.
        words: as in the reading.
        group_logits: of the groups of labels [B, G].
    """

    group_logits: Tensor

    def select(self, documents: slice | Tensor, tokens: slice = slice(None)) -> GroupedReading:
        """Some of the documents, and of each some of the tokens; the groups were scored on all of them."""
        some = Reading.select(self, documents, tokens)
        return GroupedReading(hidden=some.hidden, mask=some.mask, words=some.words, group_logits=self.group_logits[documents])


@runtime_checkable
class Backbone(Protocol):
    """Reads text. Hidden states are those of content tokens only: special tokens and padding are left out or masked.

    Attributes:
        hidden_size: size H of the hidden states.
        max_length: tokens of a document that are read; what lies beyond is cut off and counted.
        tokenizer_hash: equal for tokenizers that cut every text alike.
    """

    hidden_size: int
    max_length: int
    tokenizer_hash: str

    def tokenize(self, texts: Sequence[str]) -> TokenBatch:
        """Cut texts into tokens with character offsets."""
        ...

    def encode(self, batch: TokenBatch) -> tuple[Tensor, Tensor]:
        """Hidden states [B, T, H] and mask [B, T] (true = a real token). Long documents: windows, joined."""
        ...

    def module(self) -> nn.Module:
        """The trainable network; `encode` calls it as a whole (where it is spread over processes, calling gathers its parameters)."""
        ...

    def layer_groups(self) -> Sequence[Sequence[nn.Parameter]]:
        """Trainable parameters from the first layers to the last, for gradual unfreezing."""
        ...

    def save(self, folder: Path) -> None:
        """Write what fine-tuning changed (safetensors)."""
        ...

    def restore(self, folder: Path) -> None:
        """Read back what `save` wrote."""
        ...


@runtime_checkable
class TracedBackbone(Protocol):
    """A backbone that says which weights it read, for people and for the record. Optional."""

    @property
    def origin(self) -> str:
        """Hub id and revision, folder, or package and version; and how exact a copy it is, if it is one."""
        ...


@runtime_checkable
class ExportableBackbone(Protocol):
    """A backbone that can be left in a layout which its own library reads without `plant`. Optional."""

    def export(self, folder: Path, *, merge: bool) -> Mapping[str, Any]:
        """Write the trained backbone, and say what was written; the backbone may not be used afterwards.

        Args:
            folder: where to; subfolders are the backbone's affair.
            merge: whole weights, with what was trained beside them merged in; else only what was trained.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class DecoderShape:
    """What a decoder is built for."""

    hidden: int
    """The backbone's hidden size H."""
    labels: int
    """Number of labels L."""
    prior: Tensor | None = None
    """Share of training documents that carry each label [L], for the bias (None: no prior bias)."""
    queries: Tensor | None = None
    """Initial label queries [L, H], such as encoded titles (None: random)."""
    label_ids: Sequence[str] = ()
    """Ids of the labels [L], sorted; empty if they are not known."""
    parents: Sequence[str | None] = ()
    """The parent of each label [L], None where it has none; empty if none has."""
    relevance: csr_array | None = None
    """Of the words that `Reading.words` counts for the labels, csr [L, V] float32 in [0, 1] (None: the run has no relevance table, or the
    weights, and with them what was made of it, are read from a file).
    """


@runtime_checkable
class Decoder(Protocol):
    """Two faces over the same weights: ranking words for a label (stage 1) and scoring labels (stage 2). An `nn.Module`."""

    def rank(self, reading: Reading, labels: Tensor) -> Tensor:
        """Log attention [B, l, T] of the labels (indices [l]) on every position; −inf where masked.

        It is what stage 1 trains: all of the attention, or the part of it that is planted.
        """
        ...

    def forward(self, reading: Reading, labels: Tensor | None = None) -> Tensor:
        """Logits [B, L], or [B, l] for the given label indices [l]."""
        ...

    def attention(self, reading: Reading, labels: Tensor) -> Tensor:
        """Attention weights [B, l, T]; rows sum to 1 over real tokens."""
        ...

    def parameter_roles(self) -> Mapping[str, Sequence[nn.Parameter]]:
        """Every parameter once, by role: `attention` (what stage 1 trains), `value`, `boost` (tables of each label), `head`."""
        ...


@runtime_checkable
class WordDecoder(Protocol):
    """A decoder that looks at the words of a document. Optional.

    Where `needs_words` is true, `Reading.words` says which row of the relevance table each token's word has.

    Attributes:
        needs_words: true if `Reading.words` is to be filled.
    """

    needs_words: bool


@runtime_checkable
class PlantableDecoder(Protocol):
    """A decoder whose label tables can start from what its attention gathers on each label's training documents. Optional.

    Attributes:
        gathered_size: size V of what is gathered: H, or that of the states that the decoder makes of them.
    """

    gathered_size: int

    def gather(self, reading: Reading, labels: Tensor) -> Tensor:
        """What each label's attention gathers [B, l, V]."""
        ...

    def sharpen(self, factor: float) -> None:
        """Multiply the attention's scores by a factor (its inverse temperature)."""
        ...

    def plant_tables(self, prototypes: Tensor, background: Tensor, scale: float) -> None:
        """Start the tables of the labels: `prototypes` [L, V] from their own documents, `background` [L, V] from any.

        The logit is to be about +scale/2 where what is gathered equals the prototype and −scale/2 where it equals the background.
        """
        ...


@runtime_checkable
class GroupedDecoder(Protocol):
    """A decoder that scores groups of labels too; stage 2 adds their loss to that of the labels. Optional.

    Stage 2 reads a batch once: what `read_groups` gives, all other methods take in place of the reading, and do not read again. So both
    losses see the same states, with the same values dropped.

    Attributes:
        groups: the group of each label, int64 [L]. A property: `isinstance` sees no buffers from Python 3.12 on.
    """

    groups: Tensor

    def read_groups(self, reading: Reading) -> GroupedReading:
        """The documents with logits [B, G] of the groups; a document has the groups of its labels."""
        ...


@runtime_checkable
class GradedDecoder(Protocol):
    """A plantable decoder that gathers under several sharpnesses at once: tables of all of them take one pass over train. Optional."""

    def gather_sharpened(self, reading: Reading, labels: Tensor, factors: Sequence[float]) -> Tensor:
        """What `PlantableDecoder.gather` would give after `sharpen` by each factor [F, B, l, V]; the decoder stays as it is."""
        ...


@runtime_checkable
class QueryDecoder(Protocol):
    """A decoder whose label queries can be set, so that stage 1 may start from a regression of relevance on its keys. Optional.

    Attributes:
        heads: attention heads.
    """

    heads: int

    def keys(self, reading: Reading) -> Tensor:
        """What queries are multiplied with [B, T, H], heads side by side."""
        ...

    def plant_queries(self, queries: Tensor) -> None:
        """Set the queries [L, H], heads side by side: in each head a label scores a position by the plain product of query and key."""
        ...


@runtime_checkable
class SparseDecoder(Protocol):
    """A decoder whose label tables can be trained row by row. Optional.

    While `sparse` is true, `forward` and `rank` with given labels hand on the gradients of `label_tables` as sparse tensors that
    hold the rows of these labels alone.

    Attributes:
        sparse: whether gradients of the tables are sparse; set by training.
    """

    sparse: bool

    def label_tables(self) -> Sequence[nn.Parameter]:
        """The parameters with a row for each label [L, …]."""
        ...


@runtime_checkable
class PairDecoder(Protocol):
    """A decoder that scores and ranks chosen pairs of document and label in one pass. Optional.

    Others score document by document, and rank all labels of a batch for each of its documents.
    """

    def score_pairs(self, reading: Reading, labels: Tensor, wanted: Tensor) -> Tensor:
        """Logits [B, l] of distinct labels (indices [l]) where `wanted` [B, l] is true; elsewhere any number, which has no use."""
        ...

    def rank_pairs(self, reading: Reading, labels: Tensor, wanted: Tensor) -> Tensor:
        """Log attention [B, l, T] as by `Decoder.rank` where `wanted` [B, l] is true; elsewhere anything."""
        ...


@runtime_checkable
class FoldableDecoder(Protocol):
    """A decoder that scores faster, or from less memory, once its weights no longer change. Optional."""

    def fold(self) -> nn.Module:
        """A module whose `forward(reading, labels)` gives the same logits; it takes the place of the decoder, which is then dropped."""
        ...


class RankLoss(Protocol):
    """Stage 1 loss over ragged lists."""

    def __call__(self, scores: Tensor, relevance: Tensor, offsets: Tensor) -> Tensor:
        """Mean loss over lists.

        Args:
            scores: item scores [n], differentiable.
            relevance: item relevances [n] ≥ 0.
            offsets: list boundaries [lists + 1], int64: list i is `offsets[i]:offsets[i+1]`.
        """
        ...


class LabelLoss(Protocol):
    """Stage 2 loss. `hard_negatives` > 0: only positives, that many hardest negatives and the random ones count.

    Attributes:
        hard_negatives: negatives of a document with the highest scores that count, 0: all labels count.
        random_negatives: negatives drawn at random that count beside them.
    """

    hard_negatives: int
    random_negatives: int

    def __call__(self, logits: Tensor, targets: Tensor, selected: Tensor | None = None) -> Tensor:
        """Mean loss over documents.

        Args:
            logits: [B, l].
            targets: 0/1 [B, l].
            selected: bool [B, l], the (document, label) pairs that count (None: the loss selects by itself).
        """
        ...

    def select(self, logits: Tensor, targets: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The pairs that count: positives, the hardest negatives, random negatives. bool [B, l]."""
        ...
