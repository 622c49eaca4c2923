"""Files of ICD titles as CMS and NCHS hand them out: code and title in columns of fixed width, codes without their dot."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from plant_cli.corpus.vocabulary_tables import is_heading, tidy_labels
from plant_cli.kit.icd import System, add_dot

_ORDER = re.compile(r"(\d{5}) ([0-9A-Z]{3,7}) +([01]) (.{60}) (\S.*)")
_LIST = re.compile(r"([0-9A-Z]{2,7})(?: {1,7}|\t)([^\s\t][^\t]*)")
_SAMPLE = 200
_MOST = 0.98
_ICD9_DIAGNOSIS = re.compile(r"\d{3,5}|[EV]\d{2,5}")
_ICD9_PROCEDURE = re.compile(r"\d{2,4}")
_ICD10_CM = re.compile(r"[A-Z]\d[0-9A-Z][0-9A-Z]{0,4}")
_ICD10_PCS = re.compile(r"[0-9A-HJ-NP-Z]{3,7}")


def read_icd_titles(text: str) -> tuple[pl.DataFrame, list[str]] | None:
    """Codes with their dot and titles, of an order file (`00001 A00     0 …`) or a list (`A000    Cholera …`); None if it is neither.

    Parents are the longest codes of the file that a code begins with; an order file has the categories, too.
    """
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    if lines and is_heading(lines[0].split("\t")):
        return None  # the header of a table, whose ids may look like codes
    for pattern, kind in ((_ORDER, "order file"), (_LIST, "list")):
        sample = lines[:_SAMPLE]
        if len(sample) > 1 and sum(bool(pattern.fullmatch(line)) for line in sample) >= _MOST * len(sample):
            return _read(lines, pattern, kind)
    return None


def find_system(codes: Sequence[str]) -> System | None:
    """Which classification some codes without dots are of; None if of none."""
    if all(_ICD10_CM.fullmatch(code) for code in codes) and not all(re.fullmatch(r"[EV]\d+", code) for code in codes):
        return "ICD-10-CM"
    if all(_ICD9_PROCEDURE.fullmatch(code) for code in codes) and any(len(code) == 4 for code in codes):
        return "ICD-9-CM procedures"
    if all(_ICD9_DIAGNOSIS.fullmatch(code) for code in codes):
        return "ICD-9-CM diagnoses"
    return "ICD-10-PCS" if all(_ICD10_PCS.fullmatch(code) for code in codes) and any(len(code) == 7 for code in codes) else None


def _read(lines: list[str], pattern: re.Pattern[str], kind: str) -> tuple[pl.DataFrame, list[str]] | None:
    found = [(number, pattern.fullmatch(line)) for number, line in enumerate(lines, start=1)]
    rows = [match.groups() for _, match in found if match is not None]
    bad = [number for number, match in found if match is None]
    codes = [row[1] if pattern is _ORDER else row[0] for row in rows]
    system = find_system(codes)
    if system is None:
        return None
    known = set(codes)
    parents = [next((code[:end] for end in range(len(code) - 1, 1, -1) if code[:end] in known), None) for code in codes]
    table = pl.DataFrame(
        {
            "label": [add_dot(code, system) for code in codes],
            "title": [row[-1].strip() for row in rows],
            "alternatives": [[short] if pattern is _ORDER and (short := row[3].strip()) != row[-1].strip() else [] for row in rows],
            "parents": [[] if parent is None else [add_dot(parent, system)] for parent in parents],
        },
        schema={"label": pl.String, "title": pl.String, "alternatives": pl.List(pl.String), "parents": pl.List(pl.String)},
    )
    remarks = [f"{len(rows):,} titles of {system} ({kind})"]
    if bad:
        remarks.append(f"{len(bad):,} lines are no code and title, and are left out: {', '.join(map(str, bad[:10]))}")
    return tidy_labels(table), remarks
