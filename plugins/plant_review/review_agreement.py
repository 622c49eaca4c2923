"""`plant review agreement`: how far people agree who reviewed the same documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from plant_cli.api import Column, Reporter, Result, StageContext, Table, UsageError
from plant_cli.api.errors import first_names
from plant_cli.data.printed_tables import show_count
from plant_review import ReviewAgreementOptions
from plant_review.agreement import Agreement, measure_agreement
from plant_review.reviewed_rows import ReviewedRow, find_conflicts, read_sheet, take_latest

SHOWN = 10  # pairs of people, and conflicts, in the tables
PEOPLE_NAMED = 6  # people in a message

Decisions = dict[str, str]  # by person


def measure(context: StageContext, options: ReviewAgreementOptions) -> Result:
    """Compare what people decided on the same label of the same document."""
    decided, units = _read_decisions(options.sheets, context.reporter)
    shared = {unit: found for unit, found in units.items() if len(found) > 1}
    people = list(dict.fromkeys(row.who for row in decided))
    if not shared:
        raise _nothing_shared(options.sheets, people)
    whole = measure_agreement([list(found.values()) for found in shared.values()])
    compared = [(pair, _compare(shared, *pair)) for pair in combinations(people, 2)]
    pairs = sorted((one for one in compared if one[1].units), key=lambda one: -one[1].units)
    conflicts = find_conflicts(decided)
    documents = len({doc_id for doc_id, _ in shared})
    tables = [
        Table(
            title=f"{show_count(documents, 'document')} on which two or more people decided",
            columns=_columns("people", "labels decided on", "pairs"),
            rows=[[len(people), whole.units, whole.pairs, *_show(whole)]],
            notes=[
                "alpha: Krippendorff's, for accept or reject; 1: all agree, 0: as by chance",
                "a label that only one person decided on does not count",
            ],
        )
    ]
    tables += [_list_pairs(pairs)] if len(pairs) > 1 else []
    tables += [_list_conflicts(conflicts)] if conflicts else []
    return Result(
        tables=tables,
        data={
            "people": people,
            "documents": documents,
            **_data(whole),
            "by_people": [{"people": list(pair), **_data(found)} for pair, found in pairs],
            "conflicts": [_tell(*pair, found) for pair, found in conflicts.items()],
        },
    )


def _nothing_shared(sheets: Sequence[str], people: Sequence[str]) -> UsageError:
    return UsageError(
        "no label of a document was decided on by two people",
        where=", ".join(sheets),
        expected="decisions of several people on the same documents, such as those of `plant "
        f"serve --queue FILE --people 2`; who decided here: {first_names(people, PEOPLE_NAMED)}"
        if people
        else "decisions in the column decision",
        todo="let another person decide on the same documents, under a name of their own",
    )


def _read_decisions(
    sheets: Sequence[str], reporter: Reporter
) -> tuple[list[ReviewedRow], dict[tuple[str, str], Decisions]]:
    """The last decisions in some sheets, and those on each label of each document."""
    rows = [row for sheet in sheets for row in read_sheet(Path(sheet), reporter)]
    decided = [row for row in take_latest(rows) if row.decision]
    units = defaultdict[tuple[str, str], Decisions](dict)
    for row in decided:
        units[row.doc_id, row.label or row.title][row.who] = row.decision
    return decided, units


def _tell(doc_id: str, label: str, found: Sequence[ReviewedRow]) -> dict[str, Any]:
    decisions = {row.who: row.decision for row in found}
    return {"doc_id": doc_id, "label": label, "title": found[0].title, "decisions": decisions}


def _list_pairs(pairs: Sequence[tuple[tuple[str, str], Agreement]]) -> Table:
    return Table(
        title="By pairs of people",
        columns=[Column(name="people"), *_columns("labels decided on")],
        rows=[[" and ".join(pair), found.units, *_show(found)] for pair, found in pairs[:SHOWN]],
        notes=_more(len(pairs)),
    )


def _compare(shared: Mapping[Any, Decisions], one: str, other: str) -> Agreement:
    return measure_agreement(
        [[found[one], found[other]] for found in shared.values() if {one, other} <= found.keys()]
    )


def _columns(*counts: str) -> list[Column]:
    return [
        *(Column(name=name, kind="count") for name in counts),
        Column(name="agree %", kind="exact"),
        Column(name="alpha", kind="exact"),
    ]


def _show(found: Agreement) -> list[float | None]:
    alpha = None if found.alpha is None else round(found.alpha, 3)
    return [round(100 * found.agreeing / found.pairs, 1), alpha]


def _data(found: Agreement) -> dict[str, Any]:
    return {
        "labels": found.units,
        "pairs": found.pairs,
        "agreeing": found.agreeing,
        "alpha": found.alpha,
    }


def _list_conflicts(conflicts: Mapping[tuple[str, str], Sequence[ReviewedRow]]) -> Table:
    return Table(
        title="Conflicts",
        columns=[Column(name=name) for name in ("document", "label", "title", "decisions")],
        rows=[
            [
                doc_id,
                label,
                found[0].title,
                "; ".join(f"{row.who}: {row.decision}" for row in found),
            ]
            for (doc_id, label), found in list(conflicts.items())[:SHOWN]
        ],
        notes=_more(len(conflicts)),
    )


def _more(count: int) -> list[str]:
    return [f"{count - SHOWN} more: --format json lists all"] if count > SHOWN else []
