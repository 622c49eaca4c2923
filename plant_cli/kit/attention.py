"""Label attention for authors of decoders."""

from plant_cli.attention import LiteralHead, gather_sharpened, gather_states, label_attention, literal_logits, log_attention, pooling_matrix

__all__ = ["LiteralHead", "gather_sharpened", "gather_states", "label_attention", "literal_logits", "log_attention", "pooling_matrix"]
