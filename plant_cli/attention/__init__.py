"""Numerics of label attention: the fused form that is trained, and the literal form it must equal."""

from plant_cli.attention.fused import label_attention
from plant_cli.attention.gather import gather_sharpened, gather_states
from plant_cli.attention.literal import LiteralHead, literal_logits
from plant_cli.attention.log import log_attention
from plant_cli.attention.normed import normed_attention
from plant_cli.attention.pooling import pooling_matrix
from plant_cli.attention.single import single_head_attention, single_head_log_attention, single_head_sharpened, single_head_states

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
