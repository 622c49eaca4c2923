"""Codes of the International Classification of Diseases as they are printed: with their dot. Files often leave it out."""

from __future__ import annotations

from typing import Literal, get_args

System = Literal["ICD-9-CM diagnoses", "ICD-9-CM procedures", "ICD-10-CM", "ICD-10-PCS"]
SYSTEMS: tuple[System, ...] = get_args(System)


def add_dot(code: str, system: System) -> str:
    """A code with its dot: 4019 is 401.9, E8859 is E885.9, the procedure 0066 is 00.66, E119 of ICD-10 is E11.9; ICD-10-PCS has none.

    Args:
        code: without it.
        system: what it is a code of.
    """
    if system == "ICD-10-PCS":
        return code
    place = 2 if system == "ICD-9-CM procedures" else 4 if system == "ICD-9-CM diagnoses" and code.startswith("E") else 3
    return code if len(code) <= place else f"{code[:place]}.{code[place:]}"
