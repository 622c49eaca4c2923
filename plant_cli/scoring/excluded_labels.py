"""Labels that a user names by id or title, or in a file, such as those that are never suggested."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from plant_cli.api import DataError, LabelIndex, near_names
from plant_cli.data.lines import decode_text, read_bytes


def find_excluded(names: Sequence[str], labels: LabelIndex) -> list[int]:
    """Rows of the labels that are named, rising, as by `find_named`; some labels must be left."""
    found = find_named(names, labels, "--exclude")
    if found and len(found) == len(labels):
        raise DataError(
            "all labels are excluded",
            where="--exclude",
            expected="labels that are left to suggest",
            todo="exclude fewer",
        )
    return found


def find_named(names: Sequence[str], labels: LabelIndex, flag: str) -> list[int]:
    """Rows of the labels that a flag names, rising.

    A name is a label's id, else its id or title in any case; all labels that have it are meant. It
    may be a file with such a name on each line (the first cell, where tabs follow). A label of a
    file that train does not have is left out: it is never suggested anyway.
    """
    if not names:
        return []
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, (label, title) in enumerate(zip(labels.ids, labels.titles, strict=True)):
        for name in {label.lower(), (title or label).lower()}:
            rows[name].append(row)
    exact, found = labels.positions, set[int]()
    for name in names:
        path = Path(name)
        given = _read_names(path) if name not in exact and path.is_file() else [name]
        known = [
            row
            for one in given
            for row in ([exact[one]] if one in exact else rows.get(one.lower(), []))
        ]
        if not known:
            near = [
                near_names(one, [*labels.ids, *filter(None, labels.titles)]) for one in given[:1]
            ]
            raise DataError(
                f"no label is named '{name}'"
                if given == [name]
                else f"none of the {len(given)} names in the file is a label of train",
                where=f"{flag} {name}",
                expected="; ".join(["ids or titles of labels", *near]),
                todo="give ids as the corpus has them; `plant labels apply` and --zero-shot add "
                "labels that no training document has",
            )
        found.update(known)
    return sorted(found)


def _read_names(path: Path) -> list[str]:
    lines = decode_text(
        read_bytes(path, "the names of labels"), None, "the names of labels", str(path)
    ).splitlines()
    return [name for line in lines if (name := line.partition("\t")[0].strip())]
