"""Sizes of matrix products are padded to multiples.

For every new shape of a product in bf16 a processor's library compiles code and keeps it. With texts and samples of labels of all
lengths this grows to a GB and more, and costs more time than the padding.
"""

from __future__ import annotations

TOKEN_MULTIPLE = 16
"""The number of positions of a batch of texts is a multiple of this."""

LABEL_MULTIPLE = 64
"""The numbers of labels and of positions in a product of both are multiples of this."""


def round_up(size: int, multiple: int) -> int:
    """The smallest multiple that is not below a size.

    Args:
        size: 0 or more.
        multiple: 1 or more.
    """
    return -(-size // multiple) * multiple
