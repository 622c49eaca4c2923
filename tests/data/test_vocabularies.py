"""Vocabularies: tables, ICD titles and SKOS, and what a corpus takes of them."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import polars as pl
import pytest
import rdflib
from effort import effort
from plant_formats.classifications import (
    SYSTEMS,
    System,
    add_dot,
    find_classification,
    read_icd_titles,
)
from plant_formats.concepts import find_rdf_syntax, read_skos

from plant_cli.api import DataError, DataSection, Dataset, Purpose, SilentReporter
from plant_cli.data.loading import load_dataset
from plant_cli.data.prepare import prepare
from plant_cli.data.store import open_corpus
from plant_cli.data.vocabularies import align, apply_vocabulary, read_vocabulary
from plant_cli.data.vocabulary_frames import VOCABULARY_SCHEMA, tidy_labels
from plant_cli.registry import installed
from plant_cli.testing.contexts import make_context

HEADING = "label,title,description,alternatives,parents,deprecated,replaced_by\n"

TABLE = HEADING + "E11,Diabetes,High sugar,NIDDM|T2D,E1,no,\nI10,Pressure,,,,yes,I11\n"


def dataset() -> Dataset:
    train = pl.LazyFrame(
        {
            "doc_id": ["1", "2"],
            "text": ["sugar in blood", "high pressure"],
            "labels": [["E11"], ["I10", "Z9"]],
        }
    )
    return Dataset(
        splits={"train": train},
        labels=pl.LazyFrame({"label": ["Z9", "E11"], "title": ["Own title", "Overruled"]}),
    )


def section(tmp_path: Path, text: str = TABLE) -> DataSection:
    (tmp_path / "v.csv").write_text(text)
    return DataSection(vocabulary=str(tmp_path / "v.csv"))


def test_the_vocabulary_rules_and_the_own_table_fills_its_gaps(tmp_path: Path) -> None:
    labels, remarks = apply_vocabulary(dataset(), section(tmp_path))
    assert labels.select("label", "title").collect().rows() == [
        ("E11", "Diabetes"),
        ("I10", "Pressure"),
        ("Z9", "Own title"),
    ]
    assert any("2 of 3 labels of the documents are in" in remark for remark in remarks)
    assert (
        "1 labels of the documents are deprecated in the vocabulary, such as 'I10', replaced by I11"
        in remarks
    )
    alone, _ = apply_vocabulary(Dataset(splits=dataset().splits), section(tmp_path))
    assert alone.select("label", "title", "parents").collect().rows() == [
        ("E11", "Diabetes", ["E1"]),
        ("I10", "Pressure", []),
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_the_encoding_of_the_documents_is_not_forced_on_the_vocabulary(
    tmp_path: Path, encoding: str
) -> None:
    """A catalogue in windows-1252 beside a thesaurus in UTF-8."""
    (tmp_path / "v.csv").write_text("label,title\nE11,Küchenmöbel\n", encoding=encoding)
    table, _ = read_vocabulary(tmp_path / "v.csv", encoding="cp1252")
    assert table.select("label", "title").rows() == [("E11", "Küchenmöbel")]


def test_labels_that_are_titles_keep_their_spelling(tmp_path: Path) -> None:
    labels, remarks = apply_vocabulary(
        dataset(), section(tmp_path, "label,title,synonyms\nu:1,E11,NIDDM\nu:2,I10,\n")
    )
    assert (
        "2 labels of the documents were found by their titles, such as 'E11' ('u:1' in the "
        "vocabulary)" in remarks
    )
    assert labels.select("label", "alternatives").collect().rows()[0] == ("E11", ["NIDDM"])


def test_all_that_the_own_table_knows_fills_gaps_not_titles_alone(tmp_path: Path) -> None:
    own = pl.LazyFrame(
        {
            "label": ["E11", "I10 ", "Z9"],
            "title": ["Overruled", "Overruled", "Own title"],
            "description": ["Overruled", "Own words", "Seen before"],
            "alternatives": [["overruled"], ["hypertension"], ["again"]],
            "parents": [["overruled"], ["I1"], ["Z"]],
        }
    )
    labels, _ = apply_vocabulary(Dataset(splits=dataset().splits, labels=own), section(tmp_path))
    assert labels.select(
        "label", "title", "description", "alternatives", "parents"
    ).collect().rows() == [
        ("E11", "Diabetes", "High sugar", ["NIDDM", "T2D"], ["E1"]),
        ("I10", "Pressure", "Own words", ["hypertension"], ["I1"]),
        ("Z9", "Own title", "Seen before", ["again"], ["Z"]),
    ]


def test_a_run_keeps_names_descriptions_and_parents(tmp_path: Path) -> None:
    labels, _ = apply_vocabulary(dataset(), section(tmp_path))
    given = Dataset(splits=dataset().splits, labels=labels)
    prepare(given, DataSection(), tmp_path / "corpus", SilentReporter())
    index = open_corpus(tmp_path / "corpus", lambda: given).labels
    assert index.ids == ["E11", "I10", "Z9"]
    assert index.titles == ["Diabetes", "Pressure", "Own title"]
    assert index.descriptions == ["High sugar", None, None]
    assert index.alternatives == [["NIDDM", "T2D"], [], []]
    assert index.parents == [["E1"], [], []]


YSO, OBO = "http://www.yso.fi/onto/yso/", "http://purl.obolibrary.org/obo/"


@pytest.mark.parametrize(
    ("written", "used", "said"),
    [
        (
            f"https{YSO[4:]}p1 https{YSO[4:]}p2",
            f"{YSO}p1 {YSO}p2/",
            "by leaving aside http, https and final slashes",
        ),
        (f"{YSO}p1 {YSO}p2", "p1 p2", "by the last part of an address"),
        ("p1 p2", f"{YSO}p1 {YSO}p2", "by the last part of an address"),
        (f"{OBO}HP_01 {OBO}HP_02", "HP:01 HP:02", "by the last part of an address"),
        ("4001-5 4002-X", "(DE-588)4001-5 gnd:4002-X", "by leaving aside a prefix"),
        ("00415 00012", "415 12", "by leaving aside leading zeros"),
        ("004.6 005", "4.6 5", "by leaving aside leading zeros"),
        ("A00.0 J20.9", "A000 j20.9", "by leaving aside dots and case"),
    ],
)
def test_labels_that_the_vocabulary_writes_in_another_way_are_found_and_told(
    written: str, used: str, said: str, tmp_path: Path
) -> None:
    first, second = written.split()
    train = pl.LazyFrame(
        {"doc_id": ["1", "2"], "text": ["a", "b"], "labels": [[label] for label in used.split()]}
    )
    text = f"label,title,parents\n{first},One,{second}\n{second},Two,\nx/9,Other,{first}\n"
    labels, remarks = apply_vocabulary(Dataset(splits={"train": train}), section(tmp_path, text))
    one, two = used.split()
    found = {
        label: (title, parents)
        for label, title, parents in labels.select("label", "title", "parents")
        .collect()
        .iter_rows()
    }
    assert found == {one: ("One", [two]), two: ("Two", []), "x/9": ("Other", [one])}
    assert (
        f"2 labels of the documents were found {said}, such as '{min(used.split())}'"
        in "\n".join(remarks)
    )


@pytest.mark.parametrize(
    ("labels", "used", "remark"),
    [
        (
            ["007", "b"],
            ["7", "b", "x", "y"],
            "would be found by leaving aside leading zeros, such as '7' ('007' in the vocabulary)",
        ),
        (["A.B", "AB"], ["ab"], "fit several of the vocabulary, such as 'ab' ('A.B', 'AB')"),
    ],
)
def test_what_explains_few_labels_or_fits_several_is_told_and_not_believed(
    labels: list[str], used: list[str], remark: str
) -> None:
    found, remarks = align(
        tidy_labels(pl.DataFrame({"label": labels, "title": ["One", "Two"]})), used
    )
    assert found.is_empty()
    assert [said.removesuffix(": too few to rely on") for said in remarks] == [
        f"1 labels of the documents {remark}"
    ]


def test_a_label_in_two_spellings_is_one_label(tmp_path: Path) -> None:
    train = pl.LazyFrame(
        {
            "doc_id": ["1", "2", "3"],
            "text": ["a", "b", "c"],
            "labels": [["E11"], ["i109", "I10.8"], ["i108"]],
        }
    )
    text = (
        HEADING + "e11,Diabetes,,,,,\nE11.9,Type "
        "2,,,e11,,\nI10.9,Pressure,,,,yes,e11\nI10.8,Low,,,,,\nZ9,New,,,I10.9,,\n"
    )
    table, remarks = apply_vocabulary(Dataset(splits={"train": train}), section(tmp_path, text))
    assert table.select("label", "title", "parents", "replaced_by").collect().rows() == [
        ("E11", "Diabetes", [], []),
        ("i108", "Low", [], []),
        ("i109", "Pressure", [], ["E11"]),
        ("E11.9", "Type 2", ["E11"], []),
        ("I10.8", "Low", [], []),  # the documents write this one, too
        ("Z9", "New", ["i109"], []),
    ]
    assert (
        "3 labels of the documents were found by leaving aside dots and case, such as 'E11' "
        "('e11' in the vocabulary)" in remarks
    )


def test_no_zero_shot_label_is_a_label_of_train_in_another_spelling(tmp_path: Path) -> None:
    given = section(
        tmp_path, HEADING + "E1.1,Diabetes,,,,,\nI1.0,Pressure,,,,,\nJ20,Bronchitis,,,,,\n"
    )
    labels, _ = apply_vocabulary(dataset(), given)
    prepared = prepare(
        Dataset(splits=dataset().splits, labels=labels),
        DataSection(zero_shot=True),
        tmp_path / "c",
        SilentReporter(),
    )
    assert list(prepared.labels.ids) == ["E11", "I10", "J20", "Z9"]


def test_a_new_edition_of_the_vocabulary_moves_no_label(tmp_path: Path) -> None:
    before, _ = apply_vocabulary(dataset(), section(tmp_path))
    lines = TABLE.splitlines()
    after, _ = apply_vocabulary(
        dataset(),
        section(
            tmp_path,
            "\n".join([lines[0], "A00,New,,,,,", lines[2], lines[1].replace("Diabetes", "Type 2")]),
        ),
    )
    for place, labels in (("a", before), ("b", after)):
        prepare(
            Dataset(splits=dataset().splits, labels=labels),
            DataSection(),
            tmp_path / place,
            SilentReporter(),
        )
    first, second = (open_corpus(tmp_path / place, dataset).labels for place in "ab")
    assert (first.ids, first.hash) == (second.ids, second.hash)
    assert second.titles[0] == "Type 2"


def test_load_dataset_uses_it_and_counts_it_among_the_files(tmp_path: Path) -> None:
    pl.DataFrame({"text": ["a"], "labels": [["E11"]], "split": ["train"]}).write_parquet(
        tmp_path / "x.parquet"
    )
    data = section(tmp_path).model_copy(update={"path": str(tmp_path / "x.parquet")})
    reporter = SilentReporter()
    loaded = load_dataset(make_context(components=installed(), reporter=reporter), data)
    assert data.vocabulary in loaded.files
    assert "a table of 2 labels" in reporter.notes[0]


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


def test_tidying_keeps_the_schema() -> None:
    assert tidy_labels(pl.DataFrame({"label": [" a "], "extra": [1]})).schema == pl.Schema(
        VOCABULARY_SCHEMA
    )


def test_only_a_pair_of_angle_brackets_is_taken_off() -> None:
    found = tidy_labels(pl.DataFrame({"label": ["<18", ">65", "<http://a/b>", "18"]}))
    assert found["label"].to_list() == ["<18", ">65", "http://a/b", "18"]


CODES: dict[System, dict[str, str]] = {
    "ICD-9-CM diagnoses": {
        "4019": "401.9",
        "401": "401",
        "E8859": "E885.9",
        "E885": "E885",
        "V3001": "V30.01",
        "486": "486",
    },
    "ICD-9-CM procedures": {"0066": "00.66", "66": "66", "9904": "99.04"},
    "ICD-10-CM": {"I10": "I10", "E119": "E11.9", "S52501A": "S52.501A"},
    "ICD-10-PCS": {"0DTJ4ZZ": "0DTJ4ZZ", "0DT": "0DT"},
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_dots(system: System) -> None:
    assert {code: add_dot(code, system) for code in CODES[system]} == CODES[system]


ORDER = "\n".join(
    f"{number:05d} {code:<7} {flag} {short:<60} {long}"
    for number, code, flag, short, long in [
        (1, "A00", 0, "Cholera", "Cholera"),
        (
            2,
            "A000",
            1,
            "Cholera due to Vibrio cholerae 01, biovar cholerae",
            "Cholera due to Vibrio cholerae 01, biovar cholerae",
        ),
        (
            3,
            "S52501A",
            1,
            "Unsp fracture of the lower end of right radius, init",
            "Unspecified fracture of the lower end of right radius",
        ),
    ]
)


def test_the_order_file_has_categories_and_short_titles() -> None:
    table, remarks = read_icd_titles(ORDER)  # type: ignore[misc]
    assert remarks == ["3 titles of ICD-10-CM (order file)"]
    assert table.select("label", "parents").rows() == [
        ("A00", []),
        ("A00.0", ["A00"]),
        ("S52.501A", []),
    ]
    assert table["alternatives"].to_list() == [
        [],
        [],
        ["Unsp fracture of the lower end of right radius, init"],
    ]


@pytest.mark.parametrize(
    ("text", "labels", "system"),
    [
        (
            "A000    Cholera due to Vibrio\nA0100   Typhoid fever\n",
            ["A00.0", "A01.00"],
            "ICD-10-CM",
        ),
        (
            "0016070 Bypass Cerebral Ventricle\n0DTJ4ZZ Resection of Appendix\n",
            ["0016070", "0DTJ4ZZ"],
            "ICD-10-PCS",
        ),
        (
            "0010  Cholera d/t vib cholerae\nE8859 Fall NOS\nV3001 Single liveborn\n",
            ["001.0", "E885.9", "V30.01"],
            "ICD-9-CM diagnoses",
        ),
        ("0001 Therapeutic ultrasound\n0066 PTCA\n", ["00.01", "00.66"], "ICD-9-CM procedures"),
    ],
)
def test_lists_of_four_classifications(text: str, labels: list[str], system: str) -> None:
    table, remarks = read_icd_titles(text)  # type: ignore[misc]
    assert table["label"].to_list() == labels
    assert system in remarks[0]


def test_lines_that_fit_no_layout_are_counted() -> None:
    _, remarks = read_icd_titles("A000    Cholera\n" * 100 + "* end\n")  # type: ignore[misc]
    assert remarks[1] == "1 lines are not a code and a title, and are left out: 101"


@pytest.mark.parametrize(
    "text", ["", "label,title\nA,b\n", "A000\n", "some prose\nand more\n", "HELLO world\nTHE end\n"]
)
def test_other_files_are_none(text: str) -> None:
    assert read_icd_titles(text) is None
    assert find_classification(["ABC-1"]) is None


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


SECTION = DataSection(analyser="none")


def titled(labels: list[str], titles: dict[str, str | None], folder: Path) -> SilentReporter:
    """What is said of a corpus with these labels and this table of titles."""
    rows = [f"document {i}" for i in range(len(labels))]
    train = pl.LazyFrame({"doc_id": rows, "text": rows, "labels": [[label] for label in labels]})
    table = pl.LazyFrame(
        {"label": list(titles), "title": list(titles.values())},
        schema={"label": pl.String, "title": pl.String},
    )
    reporter = SilentReporter()
    other = pl.LazyFrame({"doc_id": ["v"], "text": ["another document"], "labels": [labels[:1]]})
    prepare(
        Dataset(splits={"train": train, "validation": other}, labels=table),
        SECTION,
        folder,
        reporter,
    )
    return reporter


def test_titles_that_match_no_label(tmp_path: Path) -> None:
    reporter = titled(
        ["004.1", "004.2"], {"9": "Other", "4.1": "Computing", "4.2": "Programs"}, tmp_path
    )
    assert reporter.warnings == [
        "no label of train has a title in the table of titles (corpus '004.1', table '4.1'): "
        "are labels written alike in both? (--titles names another table)"
    ]


def test_titles_for_fewer_than_half_of_the_labels(tmp_path: Path) -> None:
    reporter = titled(["a", "b", "c"], {"a": "Alpha", "z": "Zeta", "b": None}, tmp_path)
    assert (
        "only 1 of the 3 labels of train have a title in the table of titles (corpus 'b', table "
        "'z')" in reporter.warnings[0]
    )
    assert "(corpus 'b'):" in titled(["a", "b", "c"], {"a": "Alpha"}, tmp_path).warnings[0]


@pytest.mark.parametrize("titles", [{"a": "Alpha", "z": "Zeta"}, {"x": None}, {}])
def test_enough_titles_or_none_at_all_are_fine(
    tmp_path: Path, titles: dict[str, str | None]
) -> None:
    reporter = titled(["a", "b"], titles, tmp_path)
    assert (reporter.warnings, reporter.notes) == ([], [])


def test_of_several_titles_the_first_counts(dataset: Dataset, tmp_path: Path) -> None:
    reporter = SilentReporter()
    prepare(dataset, SECTION, tmp_path, reporter)
    assert reporter.notes == [
        "1 labels have several titles in the table of titles, such as 'A9': the first counts"
    ]


def test_titles_that_are_objects_are_refused(tmp_path: Path) -> None:
    train = pl.LazyFrame({"doc_id": ["1"], "text": ["a"], "labels": [["x"]]})
    table = pl.LazyFrame({"label": ["x"], "title": [{"en": 1}]})
    with pytest.raises(DataError, match="the column 'title' of the table of titles holds Struct"):
        prepare(
            Dataset(splits={"train": train, "validation": train.clear()}, labels=table),
            SECTION,
            tmp_path,
            SilentReporter(),
        )


TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix dct: <http://purl.org/dc/terms/> .
<http://x/1> a skos:Concept ; skos:prefLabel "Oil"@en, "\u00d6l"@de ; skos:altLabel "Petroleum"@en, "Erd\u00f6l"@de ;
  skos:definition "What burns."@en ; skos:broader <http://x/2> .
<http://x/2> a skos:Concept ; skos:prefLabel "Energie"@de ; owl:deprecated true ; dct:isReplacedBy <http://x/1> .
"""

REGIONS = TURTLE.replace("@en", "@en-GB").replace("@de", "@de-AT")
PATH = Path("v.ttl")


@pytest.mark.parametrize("syntax", ["turtle", "xml", "json-ld", "nt"])
def test_every_syntax_is_known_by_content_and_says_the_same(syntax: str) -> None:
    text = rdflib.Graph().parse(data=TURTLE, format="turtle").serialize(format=syntax)
    assert find_rdf_syntax(text) == syntax
    table, remarks = read_skos(text, syntax, Purpose(), PATH)
    assert table.rows() == [
        ("http://x/1", "Oil", "What burns.", ["Petroleum"], ["http://x/2"], False, [], None),
        ("http://x/2", "Energie", None, [], [], True, ["http://x/1"], None),
    ]
    assert "1 concepts have no title in 'en' and take one in another language" in remarks[1]


@pytest.mark.parametrize(
    ("text", "language", "rows"),
    [
        (TURTLE, "de", [("\u00d6l", ["Erd\u00f6l"]), ("Energie", [])]),
        *(
            (REGIONS, language, [("Oil", ["Petroleum"]), ("Energie", [])])
            for language in (None, "en", "en-GB", "en-gb")
        ),
    ],
)
def test_another_language_and_titles_with_a_region_alone(
    text: str, language: str | None, rows: list[tuple[object, ...]]
) -> None:
    table, remarks = read_skos(text, "turtle", Purpose(language), PATH)
    assert table.select("title", "alternatives").rows() == rows
    assert language == "de" or "1 concepts have no title" in remarks[1]


@pytest.mark.parametrize("node", ['[ <http://x/value> "text"@en ]', "<http://x/note>"])
def test_notes_and_names_that_are_nodes_are_left_out(node: str) -> None:
    more = (
        f"<http://x/1> skos:definition {node} ; skos:altLabel {node} . <http://x/2> "
        f"skos:prefLabel {node} ."
    )
    table, _ = read_skos(TURTLE + more, "turtle", Purpose(), PATH)
    assert table.select("title", "description", "alternatives").rows() == [
        ("Oil", "What burns.", ["Petroleum"]),
        ("Energie", None, []),
    ]


CONCEPT = '"@id": "http://x/1", "http://www.w3.org/2004/02/skos/core#prefLabel": "Oil"'


@pytest.fixture
def address() -> Iterator[tuple[str, list[str]]]:
    """A server of contexts on this machine, and what was asked of it."""
    asked: list[str] = []

    class Contexts(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "application/ld+json")
            self.end_headers()
            self.wfile.write(b'{"@context": {}}')

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Contexts) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/c", asked
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "document",
    [
        '{"@context": "ADDRESS", %s}',
        '{"@context": ["ADDRESS"], %s}',
        '{"@context": [[{"a": "http://x/[a]"}, ["ADDRESS"]]], %s}',
        '{"@context": {"@import": "ADDRESS"}, %s}',
        '{"@context": {"@context": "ADDRESS"}, %s}',
        '{"@context": {}, "@context": "ADDRESS", %s}',
        '[[{"@graph": [{"@context": "ADDRESS", %s}]}]]',
        '{"@context": {"of": {"@id": "http://x/of", "@context": "ADDRESS"}}, "of": {%s}}',
        '{"@graph": [{"\\u0040context": "\\u0068ADDRESS", %s}]}',
    ],
)
def test_no_context_is_asked_for(address: tuple[str, list[str]], document: str) -> None:
    place, asked = address
    text = (
        (document % CONCEPT)
        .replace("\\u0068ADDRESS", "\\u0068" + place[1:])
        .replace("ADDRESS", place)
    )
    with pytest.raises(DataError, match="nothing is fetched"):
        read_skos(text, "json-ld", Purpose(), PATH)
    assert asked == []


def test_a_context_within_the_file_is_read() -> None:
    context = (
        '{"@vocab": "http://www.w3.org/2004/02/skos/core#", "id": "@id", "of": {"@id": '
        '"http://x/of", "@context": {"b": "http://x/b"}}}'
    )
    table, _ = read_skos(
        f'{{"@context": [null, {context}], "id": "http://x/1", "prefLabel": "Oil"}}',
        "json-ld",
        Purpose(),
        PATH,
    )
    assert table.select("label", "title").rows() == [("http://x/1", "Oil")]


@pytest.mark.parametrize(
    "text", ["", "label,title\n", '{"text": "a"}', "<html><body/></html>", "a\tb\n"]
)
def test_what_is_no_rdf(text: str) -> None:
    assert find_rdf_syntax(text) is None


def test_effort_grows_as_the_comments_before_the_root_do() -> None:
    def effort_of(comments: int) -> float:
        text = "<!-- a -->\n" * comments + "<html/>"
        return effort(lambda: [find_rdf_syntax(text) for _ in range(100)])

    assert effort_of(16) < 32 * effort_of(8)  # it doubled with each comment: 256 times
    assert find_rdf_syntax("<!-- a -->\n" * 5000 + "<html/>") is None
    assert find_rdf_syntax("<?xml version='1.0'?>\n" + "<!-- a -->\n" * 50 + "<rdf:RDF/>") == "xml"
