"""Sizes of matrix products come in whole tiles.

For every new shape of a product in bf16 a processor's library compiles code and keeps it: with texts and samples of labels of all
lengths this grows to a GB and more, and costs more time than the places that fill up the tiles.
"""

from __future__ import annotations

TOKEN_MULTIPLE = 16
"""Of a batch of texts."""

LABEL_MULTIPLE = 64
"""On either side of a product of labels and places."""


def round_up(size: int, tile: int) -> int:
    """A size, in whole tiles."""
    return -(-size // tile) * tile
