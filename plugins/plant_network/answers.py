"""What backbone and decoder answer, checked: they may come from any plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plant_cli.api import (
    Backbone,
    Decoder,
    LeaveOutDecoder,
    PairDecoder,
    Reading,
    TokenBatch,
    promises,
)

if TYPE_CHECKING:
    from torch import Tensor, nn


def encode(backbone: Backbone, batch: TokenBatch) -> tuple[Tensor, Tensor]:
    """Hidden states [B, T, H] and mask [B, T]."""
    states = backbone.encode(batch)
    promises.HIDDEN_STATES.require(
        states, len(batch), backbone.hidden_size, who=_name("backbone", backbone), what="encode"
    )
    return states


def score_labels(decoder: nn.Module, reading: Reading, labels: Tensor | int) -> Tensor:
    """Logits [B, l], fp32, of some labels (indices [l]) or of all, whose number is given."""
    logits: Tensor = decoder(reading) if isinstance(labels, int) else decoder(reading, labels)
    count = labels if isinstance(labels, int) else len(labels)
    promises.LOGITS.require(
        logits, len(reading), count, who=_name("decoder", decoder), what="forward"
    )
    return logits.float()


def score_wanted(decoder: PairDecoder, reading: Reading, labels: Tensor, wanted: Tensor) -> Tensor:
    """Logits [B, l], fp32, of some labels (indices [l]) where they are wanted [B, l]."""
    logits = decoder.score_pairs(reading, labels, wanted)
    promises.LOGITS.require(
        logits, len(reading), len(labels), who=_name("decoder", decoder), what="score_pairs"
    )
    return logits.float()


def rank_tokens(
    decoder: Decoder, reading: Reading, labels: Tensor, wanted: Tensor | None = None
) -> Tensor:
    """Log attention [B, l, T] of some labels (indices [l]) on the tokens, perhaps only where it
    is wanted [B, l].
    """
    pairs = wanted is not None and isinstance(decoder, PairDecoder)
    scores = decoder.rank_pairs(reading, labels, wanted) if pairs else decoder.rank(reading, labels)  # type: ignore[attr-defined]
    promises.TOKEN_WEIGHTS.require(
        scores,
        reading.mask,
        labels,
        who=_name("decoder", decoder),
        what="rank_pairs" if pairs else "rank",
    )
    return scores


def rank_by_attention(
    decoder: Decoder, reading: Reading, labels: Tensor, wanted: Tensor | None = None
) -> Tensor:
    """The same by attention as it is when documents are scored, with relevance that is kept in
    it; of all documents and labels.
    """
    return read_attention(decoder, reading, labels).log()


def read_attention(decoder: Decoder, reading: Reading, labels: Tensor) -> Tensor:
    """Attention weights [B, l, T] of some labels (indices [l]) on the tokens."""
    weights = decoder.attention(reading, labels)
    promises.TOKEN_WEIGHTS.require(
        weights, reading.mask, labels, who=_name("decoder", decoder), what="attention"
    )
    return weights


def leave_out_tokens(decoder: LeaveOutDecoder, reading: Reading, labels: Tensor) -> Tensor:
    """What the logits of some labels (indices [l]) lose without each of the tokens [B, l, T]."""
    losses = decoder.leave_out_tokens(reading, labels)
    promises.TOKEN_WEIGHTS.require(
        losses, reading.mask, labels, who=_name("decoder", decoder), what="leave_out_tokens"
    )
    return losses


def _name(kind: str, component: object) -> str:
    return f"{kind} '{type(component).__module__}.{type(component).__qualname__}'"
