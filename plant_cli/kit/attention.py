"""Label attention for authors of decoders."""

from plant_cli.attention import (
    LiteralHead,
    gather_sharpened,
    gather_states,
    label_attention,
    literal_logits,
    log_attention,
    normed_attention,
    pooling_matrix,
    single_head_attention,
    single_head_log_attention,
    single_head_sharpened,
    single_head_states,
)

__all__ = [
    "LiteralHead",
    "gather_sharpened",
    "gather_states",
    "label_attention",
    "literal_logits",
    "log_attention",
    "normed_attention",
    "pooling_matrix",
    "single_head_attention",
    "single_head_log_attention",
    "single_head_sharpened",
    "single_head_states",
]
