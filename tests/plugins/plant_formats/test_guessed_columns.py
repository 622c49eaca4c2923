"""Guessed columns: by their names, else by what is in them; where two may be meant, both are
named.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from plant_formats import table_corpora
from plant_formats.column_words import read_meaning

from plant_cli.api import ColumnQuestion, DataError, DataSection

ABSTRACTS = [
    "Liability of the debtor in contracts",
    "The torque of the shaft in the gear",
    "Money, policy and inflation",
    "Both of them at once",
]
TITLES = ["On law", "Waves", "Interest", "Law and interest"]
CUT = ["law", "technology|machines", "economy", "law|economy"]
CASES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "usual names": ({"text": ABSTRACTS, "labels": CUT}, {}),
    "title and abstract": (
        {"PPN": ["1", "2", "3", "4"], "Titel": TITLES, "Abstract": ABSTRACTS, "Schlagwort": CUT},
        {"id_column": "PPN", "labels_column": "Schlagwort", "text_column": "Titel,Abstract"},
    ),
    "a text of no known name": ({"was": ABSTRACTS, "labels": CUT}, {"text_column": "was"}),
    "labels of no known name": (
        {"text": ABSTRACTS, "about": CUT, "year": ["1", "1", "2", "2"]},
        {"labels_column": "about"},
    ),
    "labels in lists": (
        {"text": ABSTRACTS, "about": [["a"], ["b"], ["a"], []]},
        {"labels_column": "about"},
    ),
    "titles alone": ({"title": TITLES, "labels": CUT}, {"text_column": "title"}),
    "ids that repeat": ({"id": ["1", "1", "2", "3"], "text": ABSTRACTS, "labels": CUT}, {}),
    "an id that counts already": (
        {
            "doc_id": ["1", "2", "3", "4"],
            "id": ["5", "6", "7", "8"],
            "text": ABSTRACTS,
            "labels": CUT,
        },
        {},
    ),
    "splits": (
        {"text": ABSTRACTS, "labels": CUT, "part": ["train", "dev", "train", "test"]},
        {"split_column": "part"},
    ),
    "a column for each label": (
        {"text": ABSTRACTS, "law": ["1", "0", "0", "1"], "gears": ["0", "1", "0", "0"]},
        {},
    ),
}


def guess(folder: Path, columns: dict[str, Any], **named: str) -> dict[str, str]:
    pl.DataFrame(columns).write_parquet(folder / "data.parquet")
    return table_corpora.guess(DataSection(path=str(folder / "data.parquet"), **named))


@pytest.mark.parametrize("name", CASES)
def test_columns_are_found(tmp_path: Path, name: str) -> None:
    columns, found = CASES[name]
    assert guess(tmp_path, columns) == found


def test_what_the_user_names_is_not_guessed(tmp_path: Path) -> None:
    columns = CASES["title and abstract"][0]
    assert (
        guess(tmp_path, columns, text_column="Titel", labels_column="Schlagwort", id_column="PPN")
        == {}
    )


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"text": ABSTRACTS, "tags": CUT, "codes": CUT},
            "2 columns may hold the labels: tags ('law', 'technology', 'machines'); codes "
            "('law', 'technology', 'machines')",
        ),
        (
            {"first": ABSTRACTS, "second": ABSTRACTS, "labels": CUT},
            "2 columns may hold the text: first; second",
        ),
        (
            {"text": ABSTRACTS, "a": [["x"]] * 4, "b": [["y"]] * 4},
            "2 columns may hold the labels: a ('x'); b ('y')",
        ),
    ],
)
def test_two_columns_that_fit_equally_are_both_named(
    tmp_path: Path, columns: dict[str, Any], said: str
) -> None:
    with pytest.raises(DataError) as caught:
        guess(tmp_path, columns)
    assert caught.value.what == said
    assert isinstance(caught.value, ColumnQuestion)
    assert len(caught.value.choices) == 2
    assert all(f"-column {name}" in caught.value.todo for name in caught.value.choices)


def test_the_first_training_table_of_a_folder_is_looked_at(tmp_path: Path) -> None:
    pl.DataFrame(CASES["title and abstract"][0]).write_csv(tmp_path / "train.csv")
    assert table_corpora.guess(DataSection(path=str(tmp_path)))["text_column"] == "Titel,Abstract"
    assert table_corpora.guess(DataSection(path=str(tmp_path / "gone"))) == {}


@pytest.mark.parametrize("name", ["labels.csv", "titles.csv", "vocabulary.csv", "data.titles.csv"])
def test_a_table_of_titles_beside_the_corpus_is_found(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("id,name\nlaw,Law\neconomy,Economy\n")
    assert guess(tmp_path, CASES["usual names"][0]) == {"titles": str(tmp_path / name)}
    assert guess(tmp_path, CASES["usual names"][0], vocabulary="other.csv") == {}


def test_a_table_of_another_kind_is_no_table_of_titles(tmp_path: Path) -> None:
    (tmp_path / "titles.csv").write_text("one\n")
    assert guess(tmp_path, CASES["usual names"][0]) == {}


PEOPLE = ["Silva, E.", "Meyer, F.; Rossi, B.", "Silva, E.", "Meyer, F."]
RECORDS: dict[str, Any] = {
    "Title": TITLES,
    "Abstract Note": ABSTRACTS,
    "Author": PEOPLE,
    "Editor": [None] * 4,
    "Verlag": ["Springer", "Wiley", "Springer", "Wiley"],
    "Language": ["en", "de", "en", "de"],
    "ISBN": ["978-3-16-148410-0", "978-3-16-148410-1"] * 2,
    "Status": ["draft", "published"] * 2,
    "Tags": [None] * 4,
}


NAMES = """
Manual Tags, Subject headings, Schlagwörter, Mots-clés, Palabras clave, Asiasanat, Author Keywords, MeSH Terms,
Descriptors, was
"""


@pytest.mark.parametrize("name", map(str.strip, NAMES.split(",")))
def test_no_other_column_of_a_catalogue_wins_over_labels(tmp_path: Path, name: str) -> None:
    columns = {**RECORDS, "Automatic Tags": ["law|court", "gear", "law", "gear"], name: CUT}
    assert guess(tmp_path, columns) == {
        "labels_column": name,
        "text_column": "Title,Abstract Note",
    }


def test_a_column_is_known_by_its_values_where_no_name_says_what_it_is(tmp_path: Path) -> None:
    columns = {f"c{number}": cells for number, cells in enumerate(RECORDS.values())}
    found = guess(tmp_path, {**columns, "about": CUT}, text_column="c1")
    assert found["labels_column"] == "about"


def test_web_of_science_names_keywords_by_two_letters(tmp_path: Path) -> None:
    columns = {"AU": PEOPLE, "TI": TITLES, "AB": ABSTRACTS, "ID": CUT[::-1], "DE": CUT, "UT": CUT}
    cut = {name: [cell.replace("|", "; ") for cell in cells] for name, cells in columns.items()}
    pl.DataFrame(cut).write_parquet(tmp_path / "data.parquet")
    data = DataSection(path=str(tmp_path / "data.parquet"))
    dataset = table_corpora.load(data)
    rows = pl.concat(dataset.splits.values()).collect().sort("text")
    assert rows["labels"].to_list()[-1] == ["technology", " machines"]
    assert any("a table of Web of Science" in remark for remark in dataset.remarks)


def test_a_vocabulary_says_which_of_two_columns_holds_labels(tmp_path: Path) -> None:
    (tmp_path / "known.csv").write_text("label,title\na,Law\nb,technology\nc,economy\nd,law\n")
    columns = {"text": ABSTRACTS, "tags": ["x|y", "y", "x", "y"], "keywords": CUT}
    found = guess(tmp_path, columns, vocabulary=str(tmp_path / "known.csv"))
    assert found["labels_column"] == "keywords"


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("topics.responses", "labels"),
        ("topics.responses.users", "other"),
        ("topics.suggestion", "suggested"),
        ("subject_id", "other"),
        ("keyword_count", "other"),
        ("WoS Categories", "classes"),
        ("mots-clés auteur", "labels"),
        ("icd9Code", "labels"),
        ("about", None),
    ],
)
def test_what_a_name_says_is_said_by_its_last_word(name: str, meaning: str | None) -> None:
    assert read_meaning(name) == meaning
