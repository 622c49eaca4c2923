"""Tables of labels: Annif's, those of classifications, and what people have."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from plant_formats.classifications import (
    read_icd_titles,
)

from plant_cli.api import DataError, Purpose
from plant_cli.data.vocabularies import read_vocabulary


def read(tmp_path: Path, text: str, language: str | None = None) -> tuple[pl.DataFrame, list[str]]:
    (tmp_path / "v.csv").write_text(text, encoding="utf-8")
    return read_vocabulary(tmp_path / "v.csv", Purpose(language))


def test_bad_lines_of_annifs_tsv_are_counted(tmp_path: Path) -> None:
    table, remarks = read(tmp_path, "".join(f"<http://a/{i}>\tOil\n" for i in range(30)) + "lost\n")
    assert table.height == 30
    assert any(
        "1 lines are not a URI, tab, title, and are left out: 31" in remark for remark in remarks
    )


@pytest.mark.parametrize("uri", ["<{}>", "{}", " <{}> ", "{} "])
def test_annifs_tsv(uri: str, tmp_path: Path) -> None:
    text = "".join(
        f"{uri.format(f'http://a/{i}')}\t{title}\n"
        for i, title in enumerate(("Oil\t12", "Gas", "", '"Coal" (solid'))
    )
    table, remarks = read(tmp_path, text)
    assert table.select("label", "title", "notation").rows() == [
        ("http://a/0", "Oil", "12"),
        ("http://a/1", "Gas", None),
        ("http://a/2", None, None),
        ("http://a/3", '"Coal" (solid', None),
    ]
    assert [remark.partition(": ")[2] for remark in remarks] == [
        "Annif's TSV vocabulary of 4 labels",
        "1 labels have no title",
    ]


def test_annifs_csv_has_titles_in_languages(tmp_path: Path) -> None:
    text = "uri,label_de,label_en,notation\n<u1>,Öl,Oil,1\nu2,Gas,,2\n"
    assert read(tmp_path, text)[0].select("label", "title").rows() == [("u1", "Oil"), ("u2", "Gas")]
    assert read(tmp_path, text, "de")[0]["title"].to_list() == ["Öl", "Gas"]


def test_lists_in_cells(tmp_path: Path) -> None:
    text = "code,name,synonyms,parent,deprecated,replaced_by\nE11,Diabetes,NIDDM|T2D,E1,no,\n"
    text += """E12,Old,"[""x; y""]","['E1' 'E2']",TRUE,E11\nE13,Older,,,,E11\n"""
    assert read(tmp_path, text)[0].rows() == [
        ("E11", "Diabetes", None, ["NIDDM", "T2D"], ["E1"], False, [], None),
        ("E12", "Old", None, ["x; y"], ["E1", "E2"], True, ["E11"], None),
        ("E13", "Older", None, [], [], True, ["E11"], None),
    ]


@pytest.mark.parametrize("rows", ["{0}\tT {0}", "{0}\tT {0}\t100"])
def test_a_table_with_a_heading_is_no_list_of_codes_whatever_its_ids(
    rows: str, tmp_path: Path
) -> None:
    numbered = "\n".join(rows.format(number) for number in range(1000, 1060))
    assert read(tmp_path, "label\ttitle\tparents\n" + numbered)[0]["label"][0] == "1000"
    assert (read_icd_titles(numbered) is None) == rows.endswith(
        "100"
    )  # a third column is no part of a title


MIMIC3 = (
    '"ROW_ID","ICD9_CODE","SHORT_TITLE","LONG_TITLE"\n4019,"01166","TB '
    'pneumonia","Tuberculous pneumonia"\n2,"4019","HT","Hypertension"\n'
)
MIMIC4 = (
    "icd_code,icd_version,long_title\nE8500,9,Poisoning by "
    "heroin\nE8500,10,Amyloidosis\n0010,9,Cholera\nI10,10,Hypertension\n"
)
ORDERED = (
    "CODE,SHORT DESCRIPTION (VALID ICD-10 FY2024),LONG DESCRIPTION (VALID ICD-10 FY2024),NF "
    "EXCL\nA000,Short,Cholera,\n"
)


@pytest.mark.parametrize(
    ("text", "used", "rows"),
    [
        (
            MIMIC3,
            ["401.9"],
            [
                ("01166", "Tuberculous pneumonia", ["TB pneumonia"]),
                ("4019", "Hypertension", ["HT"]),
            ],
        ),
        (
            MIMIC4,
            ["E85.00", "I10"],
            [("E85.00", "Amyloidosis", []), ("I10", "Hypertension", []), ("001.0", "Cholera", [])],
        ),
        (
            MIMIC4,
            ["E850.0"],
            [
                ("E850.0", "Poisoning by heroin", []),
                ("001.0", "Cholera", []),
                ("I10", "Hypertension", []),
            ],
        ),
        (ORDERED, [], [("A000", "Cholera", ["Short"])]),
        ("Code,Description\nA00,Cholera\n", [], [("A00", "Cholera", [])]),
        ("code,short_title\nA00,Cholera\n", [], [("A00", "Cholera", [])]),
        ("id,label\n0,Law\n1,Art\n", ["0"], [("0", "Law", []), ("1", "Art", [])]),
        ("id,label\n0,Law\n1,Art\n", [], [("0", "Law", []), ("1", "Art", [])]),
        ("id,label\n0,Law\n1,Art\n", ["Law", "Art"], [("0", "Law", []), ("1", "Art", [])]),
        (
            "id,code,title\n4019,7,Law\n7,4019,Art\n8,5,Oil\n",
            ["4019", "5"],
            [("7", "Law", []), ("4019", "Art", []), ("5", "Oil", [])],
        ),
        ('{"0": "Law", "1": "Art"}', [], [("0", "Law", []), ("1", "Art", [])]),
        ('{"Law": 0, "Art": 1}', [], [("0", "Law", []), ("1", "Art", [])]),
        ('{"model": "bert", "id2label": {"0": "Law"}, "x": [1]}', [], [("0", "Law", [])]),
        (
            "3;A00;A00.-;A00;Cholera\n4;A00;A00.0;A000;Cholera El Tor\n",
            ["A00.0"],
            [("A00.-", "Cholera", []), ("A00.0", "Cholera El Tor", [])],
        ),
        (
            "E11\tDiabetes\tDiabetes\nI10\tHypertension\tHT\n",
            ["I10"],
            [("E11", "Diabetes", []), ("I10", "Hypertension", [])],
        ),
        (
            "id,title,title_en\n1,Droit,Law\n2,Art brut,\n",
            [],
            [("1", "Law", []), ("2", "Art brut", [])],
        ),
        (
            "PPN;Bezeichnung;Stand\n41;Law of debts;2001\n42;Art;2002\n",
            ["42"],
            [("41", "Law of debts", []), ("42", "Art", [])],
        ),
        (
            "A00.0,Cholera\nI10,Hypertension\n",
            ["I10"],
            [("A00.0", "Cholera", []), ("I10", "Hypertension", [])],
        ),
        (
            "ICD10,Titel\nA00.0,Cholera\nI10,Hypertension\n",
            ["I10"],
            [("A00.0", "Cholera", []), ("I10", "Hypertension", [])],
        ),
        ("7;Law\n12;Art\n", ["12"], [("7", "Law", []), ("12", "Art", [])]),
        (
            "004.6\tNetworks\n005\tPrograms\n",
            ["005"],
            [("004.6", "Networks", []), ("005", "Programs", [])],
        ),
        (
            "1001\tNetworks\n1002\tPrograms\n",
            ["1002"],
            [("1001", "Networks", []), ("1002", "Programs", [])],
        ),
        (
            "A00.0 Cholera due to it\nA00.1 Cholera\n",
            [],
            [("A00.0", "Cholera due to it", []), ("A00.1", "Cholera", [])],
        ),
        (
            '{"id": 5, "name": "Five"}\n{"id": 6, "name": "Six"}\n',
            [],
            [("5", "Five", []), ("6", "Six", [])],
        ),
        (
            'conceptUri,preferredLabel,altLabels\nhttp://e/1,engineer,"maker\ntech"\n',
            [],
            [("http://e/1", "engineer", ["maker", "tech"])],
        ),
        (
            "label,title\na,Aspirin\na,Acid\nb,Ibu\nb,Ibu\nc,\n",
            [],
            [("a", "Aspirin", ["Acid"]), ("b", "Ibu", []), ("c", None, [])],
        ),
    ],
)
def test_tables_that_people_have(
    text: str, used: list[str], rows: list[tuple[object, ...]], tmp_path: Path
) -> None:
    (tmp_path / "v.csv").write_text(text)
    table, _ = read_vocabulary(tmp_path / "v.csv", Purpose(used=pl.Series(used, dtype=pl.String)))
    assert sorted(table.select("label", "title", "alternatives").rows()) == sorted(rows)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MIMIC4, "1 codes are also in another version of ICD: those of version 10 count"),
        (MIMIC3, "ids from the column ICD9_CODE, titles from the column LONG_TITLE"),
        (
            "I10,Hypertension\nA00,Cholera\n",
            "a table of 2 labels without a header: ids in column 1, titles in column 2",
        ),
        (
            "label,title\na,Aspirin\na,Acid\n",
            "1 labels have several titles, such as 'a': the first ('Aspirin') counts, others "
            "('Acid') are other names",
        ),
        ("label,title\na,Aspirin\nb,\n", "1 labels have no title"),
    ],
)
def test_what_is_taken_from_a_table_is_said(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text(text)
    assert said in "\n".join(
        read_vocabulary(tmp_path / "v.csv", Purpose(used=pl.Series(["I10", "E85.00"])))[1]
    )


def test_a_table_that_has_nothing_of_the_documents_names_one_of_their_labels(
    tmp_path: Path,
) -> None:
    (tmp_path / "v.tsv").write_text("x1\tOne\nx2\tTwo\n")
    with pytest.raises(DataError) as caught:
        read_vocabulary(tmp_path / "v.tsv", Purpose(used=pl.Series(["a"])))
    assert (
        caught.value.todo
        == "rename the columns, or write the ids as the labels of the documents are, such as 'a'"
    )
