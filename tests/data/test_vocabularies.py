"""Vocabularies: what a corpus takes of them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from plant_cli.api import DataError, DataSection, Dataset, SilentReporter
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


def test_tidying_keeps_the_schema() -> None:
    assert tidy_labels(pl.DataFrame({"label": [" a "], "extra": [1]})).schema == pl.Schema(
        VOCABULARY_SCHEMA
    )


def test_only_a_pair_of_angle_brackets_is_taken_off() -> None:
    found = tidy_labels(pl.DataFrame({"label": ["<18", ">65", "<http://a/b>", "18"]}))
    assert found["label"].to_list() == ["<18", ">65", "http://a/b", "18"]


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
