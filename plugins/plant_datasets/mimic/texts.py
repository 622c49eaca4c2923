"""How the literature prepares the texts of notes."""

from __future__ import annotations

import re
from typing import Literal

Cleaning = Literal["e23", "caml", "none", "alpha"]
_OTHER = re.compile(r"[^A-Za-z0-9]+")
_NUMBERS = re.compile(r"(\s\d+)+\s")
_BLANKS = re.compile(r"\s+")
_WORD = re.compile(r"\w+")
_DEIDENTIFIED = re.compile(r"\[\*\*.*?\*\*\]|_{3,}", re.DOTALL)


def clean(text: str, how: Cleaning, *, mask: bool = False) -> str:
    """A note as it is prepared.

    Args:
        text: as MIMIC has it.
        how: `e23`: lower case, letters and digits, without runs of numbers between blanks (Edin et al. 2023); `caml`: lower-cased words
            without those that are numbers (Mullenbach et al. 2018); `alpha`: words of letters alone; `none`: as it is.
        mask: what was de-identified (`[**…**]`, `___`) becomes one blank first.
    """
    text = _DEIDENTIFIED.sub(" ", text) if mask else text
    if how == "e23":
        return _BLANKS.sub(" ", _NUMBERS.sub(" ", _OTHER.sub(" ", text.lower()))).strip()
    if how == "none":
        return text
    words = _WORD.findall(text.lower()) if how == "caml" else text.lower().split()
    return " ".join(word for word in words if (not word.isnumeric() if how == "caml" else word.isalpha()))
