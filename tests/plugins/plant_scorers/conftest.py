"""Fixtures of the scorers' engines."""

from drawn_counts import drawn  # noqa: F401
