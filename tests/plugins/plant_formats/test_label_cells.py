"""Cells with labels: how a column of them is written, and what labels come out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import polars as pl
import pytest
from plant_formats.label_cells import CellFault
from plant_formats.label_forms import find_label_form

from plant_cli.api import DataError
from plant_cli.data.listed_values import read_list, read_structure

FIELDS = ("cardiology", "neurology", "oncology", "psychiatry")


def read(cells: Any, **known: Any) -> tuple[list[list[str] | None], str | None, list[CellFault]]:
    """Labels, the remark and the faults of a column."""
    column = cells if isinstance(cells, pl.Series) else pl.Series("labels", cells, strict=False)
    form = find_label_form({"x.csv": column}, **known)
    labels, faults = form.read(column, "x.csv")
    return labels.to_list(), form.remark, faults


def labels_of(cells: Any, **known: Any) -> list[list[str] | None]:
    return [
        None if row is None else [label.strip() for label in row if label.strip()]
        for row in read(cells, **known)[0]
    ]


SETS = [
    ("cardiology",),
    ("neurology", "oncology"),
    *permutations(FIELDS, 2),
    ("psychiatry",),
    ("oncology", "neurology", "cardiology"),
]
BITS = [[int(name in labels) for name in FIELDS] for labels in SETS]
OBJECTS = [[{"id": FIELDS.index(name), "name": name} for name in labels] for labels in SETS]


@pytest.mark.parametrize(
    "write",
    [
        json.dumps,
        str,
        lambda labels: str(list(labels)),
        lambda labels: "{" + ", ".join(map(repr, labels)) + "}",
        lambda labels: "frozenset({" + ", ".join(map(repr, labels)) + "})",
        lambda labels: "[" + " ".join(map(repr, labels)) + "]",
        lambda labels: f"array({list(labels)}, dtype=object)",
        lambda labels: "[" + ", ".join(f"np.str_({name!r})" for name in labels) + "]",
        lambda labels: "[" + ", ".join(labels) + "]",
        lambda labels: "{" + ",".join(labels) + "}",
        lambda labels: "(" + "; ".join(labels) + ")",
        lambda labels: ", ".join(map(repr, labels)),
        lambda labels: "".join(f"<{name}>" for name in labels),
        " ".join,
        "\t".join,
        " - ".join,
        " / ".join,
        lambda labels: json.dumps(json.dumps(labels)),
        "\n".join,
        "\r\n".join,
        " | ".join,
        "||".join,
        "、".join,
        "；".join,
        ";".join,
        lambda labels: ";".join(labels) + ";",
        lambda labels: json.dumps(dict.fromkeys(labels, True)),
        lambda labels: json.dumps({name: float(name in labels) for name in FIELDS}),
        lambda labels: str({name: name in labels for name in FIELDS}),
        lambda labels: json.dumps({f"/m/{FIELDS.index(name)}": name for name in labels}),
        lambda labels: str([{"id": FIELDS.index(name), "name": name} for name in labels]),
        lambda labels: json.dumps(
            {"id": [FIELDS.index(name) for name in labels], "label": list(labels)}
        ),
        lambda labels: str([{"term": name} for name in labels]),
    ],
)
def test_how_labels_are_written_in_text(write: Any) -> None:
    found = labels_of([write(labels) for labels in SETS * 2])
    assert [sorted(row or []) for row in found] == [sorted(labels) for labels in SETS * 2]


@pytest.mark.parametrize(
    "write",
    [
        str,
        lambda bits: str(tuple(bits)),
        lambda bits: "[" + " ".join(map(str, bits)) + "]",
        lambda bits: "[" + " ".join(f"{bit}." for bit in bits) + "]",
        lambda bits: str([float(bit) for bit in bits]),
        lambda bits: json.dumps([bool(bit) for bit in bits]),
        lambda bits: f"tensor({bits})",
        lambda bits: ",".join(map(str, bits)),
        lambda bits: " ".join(map(str, bits)),
        lambda bits: ";".join(f"{bit}.0" for bit in bits),
        lambda bits: "".join(map(str, bits)),
        list,
        lambda bits: [bool(bit) for bit in bits],
        lambda bits: [float(bit) for bit in bits],
        lambda bits: [str(bit) for bit in bits],
    ],
)
def test_vectors_of_zeros_and_ones_are_labels_by_position(write: Any) -> None:
    cells = [write(bits) for bits in BITS]
    assert labels_of(cells, titled=FIELDS) == [sorted(labels) for labels in SETS]
    assert labels_of(cells)[1] == ["LABEL_1", "LABEL_2"]
    assert "vectors of 4" in str(read(cells)[1])


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["a;b", "c"], [["a", "b"], ["c"]]),
        (["Smith, John;b", "c"], [["Smith, John", "b"], ["c"]]),
        (["a|b,c"], [["a", "b,c"]]),
        (["a,b", "c"], [["a", "b"], ["c"]]),
        (["Mann, Thomas", "Musil, Robert", "Zweig, Stefan;Exil"], [["Mann, Thomas"], ["Musil, Robert"], ["Zweig, Stefan", "Exil"]]),
        (["atrial fibrillation", "gout"], [["atrial fibrillation"], ["gout"]]),
        (['["a, b", "c"]', "[]", None], [["a, b", "c"], [], []]),
        (["['a', \"b's\"]", "[1, 2]"], [["a", "b's"], ["1", "2"]]),
        (["['heart failure' \"Crohn's\"\n 'E11.9']", "['x']"], [["heart failure", "Crohn's", "E11.9"], ["x"]]),
        (["[\"it's 'a' 'b'\", 'c']"], [["it's 'a' 'b'", "c"]]),
        ([12, 7], [["12"], ["7"]]),
        ([12.0, None], [["12"], []]),
        (["[draft] a;b"], [["[draft] a", "b"]]),
        (['["a", "b"]', "c d", '["e"]'], [["a", "b"], ["c d"], ["e"]]),
        (["a;", "b;", ";;"], [["a"], ["b"], []]),
        (["C#", "C++", "C"], [["C#"], ["C++"], ["C"]]),
        ([None, None], [[], []]),
        (["a;b", None], [["a", "b"], []]),
        ([["a,b"], []], [["a,b"], []]),
        (["Arts &amp; Crafts;Caf&#233;", "AT&T;R&D"], [["Arts &amp; Crafts", "Caf&#233;"], ["AT&T", "R&D"]]),
        (["Arts &amp; Crafts", "Law,Arts &amp; Crafts", "Law"], [["Arts &amp; Crafts"], ["Law", "Arts &amp; Crafts"], ["Law"]]),
        (["x|Law; Roman", "Law; Roman", "y|x", "y", "x"], [["x", "Law; Roman"], ["Law; Roman"], ["y", "x"], ["y"], ["x"]]),
        (["a;b", "b, c", "c,a", "a,b", "b;a", "c"], [["a", "b"], ["b", "c"], ["c", "a"], ["a", "b"], ["b", "a"], ["c"]]),
        (["E11.9 I10", "I10 J45.0", "J45.0 E11.9", "I10 E11.9", "Z00 I10", "I10 Z00", "Z00 J45.0", "J45.0 I10", "Z00"],
         [["E11.9", "I10"], ["I10", "J45.0"], ["J45.0", "E11.9"], ["I10", "E11.9"], ["Z00", "I10"], ["I10", "Z00"], ["Z00", "J45.0"],
          ["J45.0", "I10"], ["Z00"]]),
    ],
)  # fmt: skip
def test_how_cells_are_cut(cells: list[Any], expected: list[list[str]]) -> None:
    assert labels_of(cells) == expected


HEADINGS = [
    "Neoplasms, Plasma Cell",
    "Neoplasms, Basal Cell",
    "Fractures, Bone",
    "Anemia, Sickle Cell",
]


def test_commas_without_blanks_part_labels_that_always_stand_together() -> None:
    assert labels_of(["joy,love", "fear,anger", "grief,guilt"] * 9)[:2] == [
        ["joy", "love"],
        ["fear", "anger"],
    ]
    assert labels_of(["401,9", "250,0", "428,0"] * 9)[0] == ["401,9"]


@pytest.mark.parametrize(
    ("separator", "said"),
    [(None, "labels are not cut: ',' is in 8 of 12 cells"), (";", "cut at ';', in 12 of 12 cells")],
)
def test_commas_within_labels_that_recur_are_not_cut(separator: str | None, said: str) -> None:
    sets = [
        (HEADINGS[i % 4], HEADINGS[(i + 1) % 4])
        if separator
        else ((HEADINGS + ["Gout"] * 2)[i % 6],)
        for i in range(12)
    ]
    cells = [";".join(labels) for labels in sets]
    assert labels_of(cells) == [list(labels) for labels in sets]
    assert said in str(read(cells)[1])


def test_what_was_chosen_is_said_with_an_example_and_its_rival() -> None:
    remark = read(["x|Law; Roman", "Law; Roman", "y|x", "y", "x"])[1]
    assert remark == (
        "labels are cut at '|', in 2 of 5 cells: 'x|Law; Roman' gives 'x', 'Law; Roman'; at ';', "
        "in 2, 'x|Law; Roman' would give "
        "'x|Law', 'Roman' (--label-separator names another separator; '' for one label per cell)"
    )
    assert str(read(OBJECTS)[1]).endswith(
        "gives 'oncology', 'neurology', 'cardiology'; --labels-column COLUMN.id takes 'id'"
    )
    assert labels_of(OBJECTS, key="id")[1] == ["1", "2"]
    words = ["world news", "news", "world", "news world", "sport news", "sport"]
    assert (
        "made of the same parts with blanks between: 'world news' gives 'world', 'news' with "
        "--label-separator ' '" in str(read(words)[1])
    )


@pytest.mark.parametrize(
    "cells",
    [
        ["0", "1", "1"],
        [0, 1],
        [[0], [0, 1]],
        [True, False],
        ["true", "false"],
        ["[1]", "[0, 1]"],
        ["Yes", "no"],
    ],
)
def test_labels_0_and_1_alone_are_told(cells: list[Any]) -> None:
    assert "these say yes and no, and not to what" in str(read(cells)[1])


@pytest.mark.parametrize("gap", ["nan", "NaN", "None", "null", "NULL", "\\N", "<NA>", "NA", "N/A"])
@pytest.mark.parametrize(
    "write", [str, "['{}']".format, '["{}"]'.format, lambda gap: [gap], "('{}',)".format]
)
def test_a_missing_value_costs_its_row(gap: str, write: Any) -> None:
    cells = [write("neurology"), write("oncology"), write(gap)]
    labels, _, faults = read(cells)
    assert labels == [["neurology"], ["oncology"], None]
    assert [(fault.row, fault.why, fault.left_out) for fault in faults] == [
        (3, "its labels are missing", True)
    ]


@pytest.mark.parametrize(
    ("cells", "expected", "rows"),
    [
        ([["a"], [None], [""], ["b", None]], [["a"], None, None, ["b"]], [2, 3, 4]),
        (["['a', nan]", "[nan]", "[None, 'b']", "['']", "nan"], [["a"], None, ["b"], None, None], [1, 2, 3, 4, 5]),
        (["a;nan", "b;;a", "a;b;"], [["a"], ["b", "", "a"], ["a", "b", ""]], [1]),
        ([3.0, float("nan"), 5.0], [["3"], None, ["5"]], [2]),
        (["", "  ", "a"], [[""], ["  "], ["a"]], []),
        (["Na", "K", "NA"], [["Na"], ["K"], ["NA"]], []),
        (["[1, 0, 1]", "nan", "[0, 1, 0]"], [["LABEL_0", "LABEL_2"], None, ["LABEL_1"]], [2]),
    ],
)  # fmt: skip
def test_missing_values_among_labels(
    cells: list[Any], expected: list[Any], rows: Sequence[int]
) -> None:
    labels, _, faults = read(pl.Series("labels", cells, strict=False))
    assert (labels, [fault.row for fault in faults]) == (expected, list(rows))


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        (
            ["[0 0 1 ... 0 1 0]", "[0 1 0 ... 0 0 0]"],
            "a list was cut when it was printed: [0 0 1 ... 0 1 0]",
        ),
        (["['a' 'b' ... 'z']", "['a']"], "a list was cut when it was printed: ['a' 'b' ... 'z']"),
        (
            ["[('a', 0.9), ('b', 0.1)]", "[]"],
            "the labels are pairs of a name and a number: [('a', 0.9), ('b', 0.1)]",
        ),
    ],
)
def test_lists_that_say_less_or_more_than_labels_are_refused(cells: list[str], what: str) -> None:
    with pytest.raises(DataError) as caught:
        read(cells)
    assert (caught.value.what, caught.value.where) == (what, "x.csv, column labels")


def test_a_missing_value_that_the_table_of_titles_names_is_a_label() -> None:
    assert labels_of(["None", "mild"], titled=["None", "mild"]) == [["None"], ["mild"]]


@pytest.mark.parametrize(
    ("dtype", "cells"),
    [
        (pl.Categorical(), ["a;b", "c", None]),
        (pl.Enum(["a;b", "c"]), ["a;b", "c", None]),
        (pl.List(pl.Categorical()), [["a", "b"], ["c"], None]),
        (pl.List(pl.Enum(["a", "b", "c"])), [["a", "b"], ["c"], []]),
        (pl.Binary(), [b"a;b", b"c", None]),
        (pl.List(pl.Binary), [[b"a", b"b"], [b"c"], []]),
        (pl.List(pl.List(pl.String)), [[["a"], ["b"]], [["c"]], []]),
    ],
)
def test_categories_and_enums_are_text(dtype: Any, cells: list[Any]) -> None:
    assert labels_of(pl.Series("labels", cells, dtype=dtype)) == [["a", "b"], ["c"], []]


def test_numbers_of_classes_become_their_names() -> None:
    assert labels_of([[0, 3], [2], [-1], []], names=FIELDS) == [
        ["cardiology", "psychiatry"],
        ["oncology"],
        [],
        [],
    ]
    assert labels_of(["0, 3", "2", "-1", "other"], names=FIELDS) == [
        ["cardiology", "psychiatry"],
        ["oncology"],
        [],
        ["other"],
    ]
    assert labels_of(["[0, 3]", "[2]"], names=FIELDS) == [
        ["cardiology", "psychiatry"],
        ["oncology"],
    ]
    assert labels_of([1, 0], names=FIELDS[:2]) == [["neurology"], ["cardiology"]]
    assert labels_of(BITS, names=FIELDS)[1] == ["neurology", "oncology"]
    assert [fault.why for fault in read([[0], [9]], names=FIELDS)[2]] == [
        "there is no class 9: the names of the classes are those of 0 to 3"
    ]


def test_a_cell_that_has_not_the_form_of_nearly_all_others_costs_its_row() -> None:
    cells = ["['a', 'b']"] * 7 + [f"['{name}']" for name in "cdefghijk"] + ["['b"]
    assert [(fault.row, fault.why) for fault in read(cells)[2]] == [
        (17, "its labels are no list, as those of other rows are")
    ]
    vectors = [f"[{i % 2}, {i // 2 % 2}, {i // 4 % 2}, {i // 8}]" for i in range(16)] + ["[1, 0]"]
    assert [(fault.row, fault.why) for fault in read(vectors)[2]] == [
        (17, "its labels have 2 zeros and ones, those of other rows have 4")
    ]


def test_the_separator_is_found_over_all_splits() -> None:
    train, test = pl.Series("labels", ["a;b"]), pl.Series("labels", ["Smith, John"])
    form = find_label_form({"train": train, "test": test})
    assert form.read(test, "test")[0].to_list() == [["Smith, John"]]


def test_an_empty_table_has_a_label_column_too() -> None:
    empty = pl.Series("labels", [], dtype=pl.String)
    assert find_label_form({"x": empty}).read(empty, "x")[0].dtype == pl.List(pl.String)


@pytest.mark.parametrize(
    ("cells", "row", "shown"),
    [(['["a"]', '["b"', '["c"]'], 2, '["b"'), (['["a"]', "plain, text"], 2, "plain, text")],
)
def test_cells_that_are_no_lists_among_lists(cells: list[str], row: int, shown: str) -> None:
    with pytest.raises(DataError, match="not a list") as caught:
        read(cells)
    assert shown in caught.value.what
    assert caught.value.where == f"x.csv, column labels, row {row}"


@pytest.mark.parametrize("cells", [[{"x": {"y": 1}}], [{"x": 0.5, "y": 2}], [[{"a": 1}, {"b": 2}]]])
def test_objects_that_hold_no_labels_are_asked_about(cells: list[Any]) -> None:
    with pytest.raises(DataError, match="the labels are objects with the keys") as caught:
        read(cells)
    assert "--labels-column COLUMN.KEY" in caught.value.todo


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32, pl.Decimal(5, 1)])
def test_numbers_with_a_fraction_are_no_labels(dtype: pl.DataType) -> None:
    with pytest.raises(DataError, match=r"of type (Float|Decimal).*: 4\.5") as caught:
        read(pl.Series("labels", [None, 4.5]).cast(dtype))
    assert "004.60 and 4.6 are the same" in caught.value.expected
    assert "write these labels as strings" in caught.value.todo


def test_with_an_empty_separator_each_cell_is_one_label() -> None:
    cells = ["shock; septic, severe", '["a"]', "x"]
    assert labels_of(cells, separator="") == [[cell] for cell in cells]


def test_a_named_separator_is_taken() -> None:
    assert labels_of(["a b;c", "d"], separator=" ") == [["a", "b;c"], ["d"]]
    assert labels_of(["a\tb", "d"], separator="\\t") == [["a", "b"], ["d"]]


def test_a_separator_for_cells_that_are_all_lists_is_refused() -> None:
    with pytest.raises(DataError, match="lists already") as caught:
        read(['["a", "b"]', None], separator=";")
    assert caught.value.todo == "leave --label-separator out"


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('["a", "b c"]', ["a", "b c"]),
        (" ['a', 'b']\n", ["a", "b"]),
        ("['a' 'it\\'s'\n 'b']", ["a", "it's", "b"]),
        ("['a, b' \"c\"]", ["a, b", "c"]),
        ("[]", []),
        ("[1, 2]", [1, 2]),
        ("['a', None]", ["a", None]),
    ],
)
def test_lists_are_read_as_they_are_printed(cell: str, expected: list[object]) -> None:
    assert read_list(cell) == expected


@pytest.mark.parametrize(
    "cell",
    ["", "a", "[Old] history", "['a'", "{'a': 1}", "[f()]", "[" * 100_000, "['a' 'b'" + "[" * 3000],
)
def test_what_is_no_list_is_none(cell: str) -> None:
    assert read_list(cell) is None


@pytest.mark.parametrize(
    "cell",
    [
        "__import__('os')",
        "open('x')",
        "(lambda: 1)()",
        "{**a}",
        "['a' ... 'z']",
        "1",
        "x",
        "f(['a'])",
    ],
)
def test_text_that_is_no_structure_is_not_run(cell: str) -> None:
    assert read_structure(cell) is None


def test_headings_with_commas_stay_whole_among_labels_that_commas_part() -> None:
    cells = ["Neoplasms, Breast, Stroke", "Stroke, Fractures, Bone", "Neoplasms, Breast", "Asthma"]
    cells += ["Asthma, Stroke", "Fractures, Bone, Asthma", "Stroke, Asthma, Neoplasms, Breast"]
    column = pl.Series("keywords", cells * 2 + ["Fractures, Bone, Neoplasms, Breast"])
    form = find_label_form({"x.bib": column})
    assert set(form.read(column, "x.bib")[0].explode()) == {
        "Neoplasms, Breast", "Fractures, Bone", "Stroke", "Asthma",
    }  # fmt: skip
    assert "'Fractures, Bone', 'Neoplasms, Breast' stay whole" in str(form.remark)
    free = pl.Series("keywords", [cell.replace("Bone", "Stroke") for cell in column])
    assert find_label_form({"x.bib": free}).bound == frozenset()  # one pair may be chance


def test_headings_with_commas_of_the_table_of_titles_stay_whole() -> None:
    column = pl.Series("labels", ["Heart, Artificial, Stroke", "Stroke, Heart", "Heart"] * 3)
    form = find_label_form({"x.csv": column}, titled=["Heart", "Stroke", "Heart, Artificial"])
    found = form.read(column, "x.csv")[0].to_list()[:3]
    assert found == [["Heart, Artificial", "Stroke"], ["Stroke", "Heart"], ["Heart"]]
