"""Arrays that several components read: they are handed out through views that cannot be written
to, without a copy.
"""

from __future__ import annotations

from copy import copy
from dataclasses import fields
from typing import Any

SPARSE_PARTS = ("data", "indices", "indptr")


def read_only(value: Any) -> Any:
    """An array or a compressed sparse matrix through a view that cannot be written to, also
    within a tuple; anything else as it is.
    """
    if hasattr(value, "setflags"):
        view = value.view()
        view.setflags(write=False)
        return view
    if all(hasattr(value, part) for part in SPARSE_PARTS):
        seen = copy(value)
        for part in SPARSE_PARTS:
            setattr(seen, part, read_only(getattr(value, part)))
        return seen
    return (
        tuple(map(read_only, value))
        if type(value) is tuple and value and hasattr(value[0], "setflags")
        else value
    )


def protect(given: Any) -> None:
    """Make all arrays of a frozen dataclass read-only: what one component is given, others
    read, too.
    """
    for field in fields(given):
        value = getattr(given, field.name)
        if (seen := read_only(value)) is not value:
            object.__setattr__(given, field.name, seen)
