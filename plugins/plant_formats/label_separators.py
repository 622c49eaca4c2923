"""Which separators part the labels of a column of texts: by what comes out, and whether it
recurs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from plant_cli.api.errors import first_names
from plant_formats.label_cells import LabelForm, cut_cell, join_bound

_SURE, _LIKELY = tuple("\n\t;|；"), tuple(",，、،")  # separators
_DOUBTFUL = (" - ", *" /#+&~^$")  # these must show that they part labels
_WORDS = {"\n": "line ends", "\t": "tabs", " ": "blanks"}
_SOME = 0.3  # of what follows a separator is known from elsewhere: it parts labels
_CLEARLY = 0.8  # the same for a doubtful separator
_FEW = 8  # distinct cells, too few for a doubtful separator
_BOUND, _OFTEN = 0.1, 3  # share of labels with the separator in them, and occurrences of each
_SHOWN, LONG = 4, 60  # labels and characters of an example
_OTHERWISE = "(--label-separator names another separator; '' for one label per cell)"
Cells = Mapping[str, int]  # distinct cells, and how often each occurs


class _Cut(NamedTuple):
    """What a separator does to the distinct cells of a column."""

    sign: str
    cells: int  # that have it
    distinct: int  # of these
    parts: int  # that follow another part
    # share of these that begin another cell, or are one: what a comma within a name parts off does
    # not
    known: float
    recurring: float  # share of all parts that another distinct cell has
    whole: float  # how often a distinct cell that has it occurs
    inside: bool  # it may stand within names: a blank follows it, or digits alone
    example: str

    @property
    def denied(self) -> bool:
        """Whether the cells recur as they are, and their parts do not."""
        often = self.distinct >= 3 and self.whole >= 1.5
        return often and (
            self.inside
            if self.sign in _LIKELY
            else self.sign not in "\n\t" and self.recurring < 0.1
        )

    def __str__(self) -> str:
        return _WORDS.get(self.sign, f"'{self.sign}'")


def find_cut(cells: Cells, titled: Sequence[str] = ()) -> LabelForm:
    """The separators, by evidence: what follows a separator of labels is elsewhere the first or
    only label of a cell. `titled`: labels of the table of titles.
    """
    clear = _weigh_all(cells, _SURE + _LIKELY)
    doubtful = [] if clear else [cut for cut in _weigh_all(cells, _DOUBTFUL) if cut.distinct >= 2]
    chosen = _choose(clear) or _choose_doubtful(doubtful, cells)
    if chosen is None:
        return LabelForm(remark=_tell_uncut(clear, doubtful, sum(cells.values())))
    signs = [chosen.sign, *_find_further(cells, chosen.sign)]
    bound = _find_bound(cells, titled) if signs == [","] else frozenset()
    said = [_tell_cut(chosen, signs, bound, sum(cells.values()))]
    if bound:
        said.append(_tell_bound(bound))
    if others := [cut for cut in clear if cut.sign not in signs]:
        said.append(_tell_rival(max(others, key=lambda cut: cut.cells)))
    remark = f"{'; '.join(said)} {_OTHERWISE}"
    return LabelForm(kind="cut", signs=tuple(signs), bound=bound, remark=remark)


def _weigh_all(cells: Cells, signs: Sequence[str]) -> list[_Cut]:
    return [cut for sign in signs if (cut := _weigh(cells, sign))]


def _weigh(cells: Cells, sign: str) -> _Cut | None:
    """The evidence for a separator; None if it cuts no cell."""
    cut = _cut_cells(cells, sign)
    if not cut:
        return None
    heads, owners = set[str](), Counter[str]()
    for cell in cells:
        parts = cut.get(cell, [cell])
        heads.update(parts[:1])
        owners.update(set(parts))
    tails = [part for parts in cut.values() for part in parts[1:]]
    every = [part for parts in cut.values() for part in parts]
    total = sum(cells[cell] for cell in cut)
    return _Cut(
        sign=sign,
        cells=total,
        distinct=len(cut),
        parts=len(tails),
        known=sum(part in heads for part in tails) / len(tails) if tails else 1.0,
        recurring=sum(owners[part] > 1 for part in every) / max(1, len(every)),
        whole=total / len(cut),
        inside=all(map(str.isdigit, tails)) or any(f"{sign} " in cell for cell in cut),
        example=max(cut, key=lambda cell: (len(cell) <= LONG, len(cut[cell]))),
    )


def _cut_cells(cells: Cells, sign: str) -> dict[str, list[str]]:
    """The parts of the cells that a separator cuts: `a;` is cut, `C#` is not."""
    least = 2 if sign in _DOUBTFUL else 0
    parted = {cell: cut_cell(cell, sign) for cell in cells if sign in cell}
    return {
        cell: parts for cell, parts in parted.items() if len(parts) >= least and parts != [cell]
    }


def _choose(clear: Sequence[_Cut]) -> _Cut | None:
    """The separator with most evidence; without any, the first that nothing denies."""
    if supported := [cut for cut in clear if cut.known >= _SOME]:
        return max(supported, key=lambda cut: cut.known * cut.parts)
    return next((cut for cut in clear if not cut.denied), None)


def _choose_doubtful(doubtful: Sequence[_Cut], cells: Cells) -> _Cut | None:
    least = _SOME if doubtful and _are_codes(cells) else _CLEARLY
    return next((cut for cut in doubtful if cut.distinct >= _FEW and cut.known >= least), None)


def _find_further(cells: Cells, sign: str) -> list[str]:
    """The separators of labels that one separator leaves together."""
    labels = Counter[str]()
    for cell, count in cells.items():
        for part in cut_cell(cell, sign):
            labels[part] += count
    further = [] if sign in _DOUBTFUL else _weigh_all(labels, _SURE + _LIKELY)
    return [
        cut.sign for cut in further if cut.known >= 0.5 and (cut.sign in _SURE or cut.distinct >= 3)
    ]


def _tell_uncut(clear: Sequence[_Cut], doubtful: Sequence[_Cut], total: int) -> str | None:
    """Why labels are not cut, where a separator is in the cells."""
    if clear:
        rival = max(clear, key=lambda cut: cut.cells)
        return (
            f"labels are not cut: {rival} is in {rival.cells:,} of {total:,} cells, but these "
            "recur "
            f"as they are, and their parts do not: {show(rival.example)} is one label "
            f"(--label-separator '{rival.sign}' cuts there)"
        )
    likely = [cut for cut in doubtful if cut.known >= (_SOME + _CLEARLY) / 2]
    if not likely:
        return None
    rival = max(likely, key=lambda cut: cut.known)
    would = give(rival.example, cut_cell(rival.example, rival.sign))
    return (
        f"labels are not cut, but they are made of the same parts with {rival} between: {would} "
        f"with --label-separator '{rival.sign}'"
    )


def _tell_cut(
    chosen: _Cut, signs: Sequence[str], bound: frozenset[tuple[str, str]], total: int
) -> str:
    where = " and ".join(_WORDS.get(sign, f"'{sign}'") for sign in signs)
    example = cut_by(chosen.example, signs)
    shown = join_bound(example, bound, signs[0]) if bound else example
    return (
        f"labels are cut at {where}, in {chosen.cells:,} of {total:,} cells: "
        f"{give(chosen.example, shown)}"
    )


def _tell_bound(bound: frozenset[tuple[str, str]]) -> str:
    whole = first_names(sorted(f"'{', '.join(pair)}'" for pair in bound), _SHOWN)
    return (
        f"{whole} stay whole: neither part stands without the other, or the table of titles "
        "has them"
    )


def _tell_rival(rival: _Cut) -> str:
    would = quote_labels(cut_cell(rival.example, rival.sign))
    return f"at {rival}, in {rival.cells:,}, {show(rival.example)} would give {would}"


def _find_bound(cells: Cells, titled: Sequence[str]) -> frozenset[tuple[str, str]]:
    """Headings with a comma within, such as `Neoplasms, Breast`, where commas also part labels:
    those of the table of titles; without any there, those that the cells themselves show.
    """
    parted = {cell: cut_cell(cell, ",") for cell in cells}
    if named := {pair for label in titled for pair in pairwise(cut_cell(label, ","))}:
        return frozenset(named & {pair for parts in parted.values() for pair in pairwise(parts)})
    spaced = all(cell.count(",") == cell.count(", ") for cell in cells)
    return _find_inseparable([(parts, cells[cell]) for cell, parts in parted.items()], spaced)


def _find_inseparable(
    parted: Sequence[tuple[Sequence[str], int]], spaced: bool
) -> frozenset[tuple[str, str]]:
    """Pairs of parts of which neither stands without something of the kind.

    What follows stands nowhere but after what precedes, which stands nowhere without something of
    the kind. A tenth of all labels are of that kind: where they are fewer, two labels may go
    together by chance.
    """
    before: dict[str, set[str]] = {}
    after: dict[str, set[str]] = {}
    counts = Counter[str]()
    for parts, count in parted:
        for left, part, right in zip(["", *parts], parts, [*parts[1:], ""], strict=False):
            before.setdefault(part, set()).add(left)
            after.setdefault(part, set()).add(right)
            counts[part] += count
    bound = frozenset(
        (part, follower)
        for part, followers in after.items()
        if counts[part] >= _OFTEN and all(before.get(one) == {part} for one in followers)
        for follower in followers
    )
    enough = len(bound) >= max(2, _BOUND * (len(counts) - len(bound)))
    return bound if enough and spaced else frozenset()


def _are_codes(cells: Iterable[str]) -> bool:
    """Whether the words of all cells hold digits, as codes and numbers do."""
    return all(re.search(r"\d", word) for cell in cells for word in cell.split())


def cut_by(cell: str, signs: Sequence[str]) -> list[str]:
    """The labels of a cell that is cut at several separators."""
    parts = [cell]
    for sign in signs:
        parts = [inner for part in parts for inner in cut_cell(part, sign)]
    return parts


def show(cell: object) -> str:
    """A cell for a message."""
    text = " ".join(str(cell).split())
    return f"'{text}'" if len(text) <= LONG else f"'{text[: LONG - 1]}…'"


def quote_labels(labels: Sequence[str]) -> str:
    """The first labels for a message."""
    return first_names([*map(show, labels)], _SHOWN) if labels else "none"


def give(cell: object, labels: Sequence[str]) -> str:
    """What a cell gives, for a message."""
    return f"{show(cell)} gives {quote_labels(labels)}"
