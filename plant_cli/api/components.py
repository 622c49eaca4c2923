"""What every component has: the base of all specs, and the type variable by which look-ups return the spec that was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from plant_cli.api.options import NoOptions, Options


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What every component has.

    Args:
        name: kebab-case, unique within its kind.
        summary: one sentence for lists and help.
        options: the model of its options.
        source: where it comes from (paper and equation, or empty).
    """

    name: str
    summary: str
    options: type[Options] = NoOptions
    source: str = ""


SpecT = TypeVar("SpecT", bound=Spec)
