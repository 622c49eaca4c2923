"""Sizes as people write them: `500MB`."""

from __future__ import annotations

SIZE_PATTERN = r"^\d{1,9}(\.\d{1,9})?(KB|MB|GB|TB)$"
UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def read_size(text: str) -> int:
    """Bytes of `500MB` (of what `SIZE_PATTERN` matches)."""
    return int(float(text[:-2]) * UNITS[text[-2:]])


def show_size(count: int) -> str:
    """`0.64 GB` of bytes: the largest unit of which there is one."""
    unit = next((u for u in reversed(UNITS) if count >= UNITS[u]), "KB")
    return f"{count / UNITS[unit]:.3g} {unit}"
