"""Every format of other tools: what it reads, how it is recognised, what it says of lines that
it cannot read.
"""

from __future__ import annotations

import random
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from builders import explained, read_cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plant_formats import plant_register_datasets
from plant_formats.corpus_reader import CorpusReader
from plant_formats.line_formats import LIBSVM, Fault, Line, NumberedLabels, read_names
from round_trips import ANY_LABEL, PLAIN, SPECS, corpora, one_line, read, write_files, write_format
from scipy.sparse import csr_array, save_npz

from plant_cli.api import DataError, DataSection, Dataset, SplitName
from plant_cli.data.loading import find_formats
from plant_cli.data.vocabularies import resolve_titles

IDS_KEPT = {
    "annotations",
    "annif-csv",
    "annif-jsonl",
    "annif-folder",
    "libmultilabel",
    "xmlrepository",
    "huggingface-dataset",
}
TEXTS_KEPT = {"annif-csv", "annif-jsonl", "annif-folder"}  # with line breaks
TITLES_KEPT = {"annif-jsonl", "annif-folder"}
NUMBERED = {
    "pecos",
    "text2text",
    "libsvm",
    "xmlrepository-features",
}  # a label comes back as its number
ANY_LABELS = NUMBERED | {"annotations", "annif-jsonl", "xmlrepository", "huggingface-dataset"}
NOT_AS_WRITTEN = {
    "references",
    "stackexchange",
}  # blanks and markup are taken off; `formats.yaml` has their cases
FORMATS, MESSAGES = (
    read_cases(Path(__file__).parent / f"{name}.yaml") for name in ("formats", "messages")
)
SUFFIXES = st.sampled_from(["", ".gz", ".zst"])


@pytest.mark.parametrize("name", sorted(SPECS.keys() - NOT_AS_WRITTEN))
def test_what_is_written_is_read_again(name: str) -> None:
    """Every split, text and label, and what else the format holds."""

    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(corpora(ANY_LABEL if name in ANY_LABELS else PLAIN), SUFFIXES)
    def check(dataset: Dataset, suffix: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            labels = write_format(name, dataset, Path(folder), suffix)
            found = read(name, Path(folder))
            compare(name, dataset, found, labels)

    check()


def compare(name: str, dataset: Dataset, found: Dataset, labels: list[str]) -> None:
    assert set(found.splits) == set(dataset.splits)
    for split, frame in dataset.splits.items():
        before, after = frame.collect(), found.splits[split].collect()
        if name == "fasttext":  # which has no line for a document without text and labels
            before = before.filter(
                pl.col("text").str.contains(r"\S") | (pl.col("labels").list.len() > 0)
            )
        if name in IDS_KEPT:  # a format may put documents in the order of their ids
            before, after = before.sort("doc_id"), after.sort("doc_id")
            assert after["doc_id"].to_list() == before["doc_id"].to_list()
        assert after["text"].to_list() == [
            text if name in TEXTS_KEPT else one_line(text) for text in before["text"]
        ]
        numbers = {label: str(number) for number, label in enumerate(labels)}
        expected = [
            {numbers[label] if name in NUMBERED else label for label in row}
            for row in before["labels"]
        ]
        assert [set(row) for row in after["labels"]] == expected
    if name in TITLES_KEPT and dataset.labels is not None:
        used = {
            label
            for frame in dataset.splits.values()
            for row in frame.collect()["labels"]
            for label in row
        }
        before = {
            label: title
            for label, title in dataset.labels.collect().iter_rows()
            if label in used and title
        }
        assert titles(found) | before == titles(found)


def titles(dataset: Dataset) -> dict[str, str | None]:
    return (
        {}
        if dataset.labels is None
        else dict(dataset.labels.collect().select("label", "title").iter_rows())
    )


@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize("name", sorted(SPECS))
def test_a_format_is_recognised_as_itself_alone(name: str, labels: int, tmp_path: Path) -> None:
    """Forty documents, some with one label alone, as most corpora have."""
    draw = random.Random(0)
    splits: dict[SplitName, pl.LazyFrame] = {}
    kinds: list[tuple[SplitName, int]] = [("train", 40), ("test", 20)]
    for split, count in kinds:
        texts = [
            " ".join(draw.choices(["fever", "cough", "rash", "fall"], k=6)) + f" {split} {row}"
            for row in range(count)
        ]
        own = [
            sorted(draw.sample(["L1", "L2", "L3", "L4", "L5"], draw.randint(1, labels)))
            for _ in range(count)
        ]
        splits[split] = pl.LazyFrame(
            {"doc_id": [f"{split}{row}" for row in range(count)], "text": texts, "labels": own}
        )
    write_format(name, Dataset(splits=splits), tmp_path)
    data = DataSection(path=str(tmp_path))
    assert [
        other
        for other, spec in SPECS.items()
        if spec.recognise is not None and spec.recognise(data) is not None
    ] == [name]


J = (
    '{"uid": "B01", "title": "A lamp", "content": "bright", "target_ind": [1, 0], "target_rel": '
    "[1.0, 1.0]}\n"
)
L = '{"uid": "L0", "title": "a desk"}\n{"uid": "L1", "title": ""}\n'


@pytest.mark.parametrize("case", FORMATS, ids=lambda case: case["case"])
def test_what_is_read(case: dict[str, Any], tmp_path: Path) -> None:
    files = {
        name: content.encode(case.get("encoding", "utf-8"))
        for name, content in case["files"].items()
    }
    dataset = read(case["format"], write_files(tmp_path, files))
    assert dataset.splits["train"].collect().rows() == list(map(tuple, case["rows"]))
    assert titles(dataset) == case.get("titles", {})
    said = "\n".join(dataset.remarks)
    assert [part for part in case.get("remarks", []) if part not in said] == []
    assert case.get("remarks") or not said
    assert dataset.names == ("each document is the list of" in said)


LAYOUTS = ("fasttext", "annotations", "references", "arff", "stackexchange")


@pytest.mark.parametrize(
    "case",
    [case for case in FORMATS if case["format"] in LAYOUTS and case["rows"]],
    ids=lambda case: case["case"],
)
def test_layouts_are_recognised_alone_with_labels_of_an_example(
    case: dict[str, Any], tmp_path: Path
) -> None:
    data = DataSection(path=str(write_files(tmp_path, case["files"])))
    [(name, said)] = [
        (name, said)
        for name, spec in SPECS.items()
        if spec.recognise is not None and (said := spec.recognise(data))
    ]
    shown = [
        case.get("titles", {}).get(label) or label
        for label in next(labels for *_, labels in case["rows"] if labels)
    ]
    assert name == case["format"]
    assert (
        said.endswith(f"(labels of the first document: {', '.join(shown[:3])})") or name == "arff"
    )


def test_a_format_in_another_encoding_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes("__label__a Möbel\n".encode("latin-1") * 30)
    recognise = SPECS["fasttext"].recognise
    assert recognise is not None
    assert (
        recognise(DataSection(path=str(tmp_path / "x.txt")))
        == "fastText's lines (labels of the first document: a)"
    )


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "annotations"),
        ({"labels_column": "label"}, "annotations"),
        ({"labels_column": "tags"}, "files"),
        ({"labels_column": "label", "text_column": "title"}, "files"),
        ({"labels_column": "label", "id_column": "key"}, "files"),
    ],
)
def test_a_table_of_columns_that_the_user_names_is_no_layout(
    options: dict[str, str], name: str, tmp_path: Path
) -> None:
    (tmp_path / "x.jsonl").write_text(
        '{"key": 1, "title": "t", "text": "a", "label": [[0, 1, "X"]], "tags": ["Y"]}\n'
    )
    data = DataSection(path=str(tmp_path / "x.jsonl"), **options)
    assert list(find_formats(plant_register_datasets(), data)) == [name]


@pytest.mark.parametrize("case", MESSAGES, ids=lambda case: case["says"][0][:60])
def test_what_is_refused(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, case.get("files", {}))
    spec = next(spec for spec in plant_register_datasets() if spec.name == case["dataset"])
    with explained({"error": "DataError", **case}, tmp_path):
        spec.load(
            DataSection(path=case.get("path", "."), **case.get("options", {})), spec.options()
        )


def test_options_of_the_section_and_of_the_format(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "train_texts.txt": "lamp bright\n",
            "train_raw_texts.txt": "A Lamp\n",
            "train_labels.txt": "l1\n",
        },
    )
    assert read("attentionxml", tmp_path, {"texts": "prepared"}).splits["train"].collect()[
        "text"
    ].to_list() == ["lamp bright"]
    write_files(tmp_path / "svm", {"train.svm": "1 2:1\n", "names": "a\nb\n"})
    named = read("libsvm", tmp_path / "svm", {"features": str(tmp_path / "svm/names")})
    assert named.splits["train"].collect()["text"].to_list() == ["b"]
    write_files(tmp_path / "tsv", {"train.tsv": "oil\t<a>\ncafé\t<a>\n".encode("latin-1")})
    assert read("annif-tsv", tmp_path / "tsv", encoding="latin-1").splits["train"].collect()[
        "text"
    ].to_list() == ["oil", "café"]
    with pytest.raises(DataError, match="a row cannot be read: byte 0xe9"):
        read("annif-tsv", tmp_path / "tsv", strict=True)


def test_headings_of_one_vocabulary(tmp_path: Path) -> None:
    case = next(case for case in FORMATS if case["case"].startswith("MARC"))
    write_files(tmp_path, case["files"])
    dataset = read("references", tmp_path, {"thesaurus": "gnd"})
    assert dataset.splits["train"].collect()["labels"].to_list() == [["4024632-4"], []]


def test_a_comment_of_bibtex_that_is_never_closed_is_told(tmp_path: Path) -> None:
    write_files(tmp_path, {"train.bib": "@book{a, title={b}}\n@comment{old\n@book{c, title={d}}\n"})
    dataset = read("references", tmp_path)
    assert dataset.splits["train"].collect()["doc_id"].to_list() == ["a"]
    assert any("line 2: a comment that is never closed" in said for said in dataset.remarks)


def test_bad_rows_are_kept_as_they_are(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "train.txt": "0,1\tone\nno tab\n2\ttwo\nx\tthree\n",
            "train.csv": b"text,subject_uris\none\rtwo,<a>,x\n",
        },
    )
    read("text2text", tmp_path / "train.txt", rejects=str(tmp_path / "rejects.tsv"))
    rejects = (tmp_path / "rejects.tsv").read_text().splitlines()
    assert rejects[0] == "file\tline\tcolumn\treason\tcontent"
    assert [line.split("\t")[1:4] for line in rejects[1:]] == [
        ["2", "1", "there is no tab"],
        ["4", "1", "'x' are no label numbers"],
    ]
    read("annif-csv", tmp_path / "train.csv", rejects=str(tmp_path / "bad.tsv"))
    assert "one\rtwo,<a>,x" in (tmp_path / "bad.tsv").read_bytes().decode()


@pytest.mark.parametrize(
    ("line", "parsed"),
    [
        ("1,3 1:0.5 9:2", Line([1, 3], features=[(1, 0.5), (9, 2.0)])),
        (" 1:0.5", Line([], features=[(1, 0.5)])),
        ("1:0.5", Line([], features=[(1, 0.5)])),
        ("4", Line([4], features=[])),
        ("", Line([], features=[])),
    ],
)
def test_sparse_lines(line: str, parsed: Line) -> None:
    assert LIBSVM.parse(line, "") == parsed


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("1,x 1:1", 3),
        ("1 1:1 2", 7),
        ("1 1:y", 3),
        ("1 -1:2", 3),
        pytest.param("1 " + "9" * 5_000 + ":1", 3, id="a feature of 5,000 digits"),
        pytest.param("9" * 5_000 + " 1:1", 1, id="a label of 5,000 digits"),
    ],
)
def test_faults_have_a_column(line: str, column: int) -> None:
    with pytest.raises(Fault) as caught:
        LIBSVM.parse(line, "")
    assert caught.value.column == column


@pytest.mark.parametrize(
    ("numbers", "names", "ids"),
    [
        ("1,2,3", 3, ["0", "1", "2"]), ("0,2", 3, ["0", "2"]), ("1,2", 3, ["1", "2"]), ("1,2", 0, ["1", "2"]), ("", 2, []),
    ],
)  # fmt: skip
def test_labels_count_from_one_if_none_is_zero_and_one_is_the_last(
    numbers: str, names: int, ids: list[str], tmp_path: Path
) -> None:
    write_files(
        tmp_path,
        {"train.svm": f"{numbers} 1:1\n", **({"labels.txt": "x\n" * names} if names else {})},
    )
    assert read("libsvm", tmp_path).splits["train"].collect()["labels"].to_list() == [ids]


def test_names_of_numbers(tmp_path: Path) -> None:
    labels = NumberedLabels(["a", "b"], {}, 1)
    assert (labels.name(1), labels.name(2), NumberedLabels(None, {}).name(7)) == ("a", "b", "7")
    for number in (0, 3):
        with pytest.raises(Fault, match="numbered from 1 to 2"):
            labels.name(number)
    (tmp_path / "Y.txt").write_text("x\n\n")
    assert read_names(
        CorpusReader.of(DataSection(path=str(tmp_path))), tmp_path, ["Y.txt"]
    ).ids == ["0"]


def test_which_files_hold_sparse_lines(tmp_path: Path) -> None:
    names = [
        "train.txt",
        "train.svm.gz",
        "train_raw_texts.txt",
        "X.trn.txt",
        "train.npz",
        "eurlex_train",
    ]
    assert [LIBSVM.accepts(tmp_path / name) for name in names] == [
        True,
        True,
        False,
        False,
        False,
        True,
    ]


def test_tables_are_not_recognised_as_libmultilabel(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("codes\tnote\nE11\tfever and a cough that is long\n")
    assert SPECS["libmultilabel"].recognise(DataSection(path=str(tmp_path / "x.tsv"))) is None  # type: ignore[misc]
    for heads in (("0::0.1,1::0.2", "2::1"), ("0,1", "", "2")):
        (tmp_path / "x.tsv").write_text(
            "".join(f"{head}\ta text that is much longer than its labels\n" for head in heads)
        )
        assert SPECS["libmultilabel"].recognise(DataSection(path=str(tmp_path / "x.tsv"))) is None  # type: ignore[misc]


@pytest.mark.parametrize(
    ("texts", "names", "what"),
    [("one\n", "a\nb\nc\n", "1 texts, and more"), ("one\ntwo\n", "a\n", "1 names of labels")],
)
def test_files_of_two_corpora_in_pecos_format(
    tmp_path: Path, texts: str, names: str, what: str
) -> None:
    write_files(tmp_path, {"X.trn.txt": texts, "output-items.txt": names})
    save_npz(tmp_path / "Y.trn.npz", csr_array(np.ones((2, 3), dtype=np.float32)))
    with pytest.raises(DataError, match=what):
        read("pecos", tmp_path)


def test_zeros_of_a_matrix_are_no_labels_and_objects_are_not_unpickled(tmp_path: Path) -> None:
    write_files(tmp_path, {"X.trn.txt": "one\ntwo\n", "output-items.txt": "desk\nlamp\nchair\n"})
    matrix = csr_array(np.array([[1, 0, 1], [0, 1, 0]], dtype=np.float32))
    matrix.data[2] = 0
    save_npz(tmp_path / "Y.trn.npz", matrix)
    dataset = read("pecos", tmp_path)
    assert dataset.splits["train"].collect().rows() == [
        ("train-1", "one", ["0", "2"]),
        ("train-2", "two", []),
    ]
    assert titles(dataset) == {"0": "desk", "1": "lamp", "2": "chair"}
    np.savez(tmp_path / "Y.trn.npz", data=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match="the matrix cannot be read"):
        read("pecos", tmp_path)


def test_pairs_of_the_filter_files_are_excluded(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "trn.json": J,
            "tst.json": J.replace("B01", "B02"),
            "lbl.json": L,
            "filter_labels_test.txt": "0 1\n",
        },
    )
    excluded = read("xmlrepository", tmp_path).excluded
    assert excluded.collect().rows() == [("B02", "L1")]


def test_texts_in_another_encoding_are_refused_if_they_are_many(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {f"{n}.txt": b"M\xf6bel\n" for n in range(20)} | {f"{n}.key": "gas\n" for n in range(20)},
    )
    with pytest.raises(DataError, match="not UTF-8: more than 10 texts cannot be decoded"):
        read("annif-folder", tmp_path)
    assert (
        sum(
            frame.collect().height
            for frame in read("annif-folder", tmp_path, encoding="cp1252").splits.values()
        )
        == 20
    )


def test_titles_in_key_files_become_ids_of_the_vocabulary(tmp_path: Path) -> None:
    """Beside files with URIs, a concept would be two labels."""
    files = {
        "a.txt": "one",
        "a.tsv": "http://x/1\tOil\n",
        "b.txt": "two",
        "b.key": "oil\nOld\nlost\nOld\n",
        "v.tsv": VOCABULARY,
    }
    write_files(tmp_path, files)
    data = DataSection(path=str(tmp_path), vocabulary=str(tmp_path / "v.tsv"))
    dataset = resolve_titles(read("annif-folder", tmp_path), data)
    rows = {
        row[0]: row[1]
        for frame in dataset.splits.values()
        for row in frame.collect().select("doc_id", "labels").iter_rows()
    }
    assert rows == {"a": ["http://x/1"], "b": ["http://x/1", "Old", "lost", "Old"]}
    assert "1 of 3 labels that are no ids are titles in" in dataset.remarks[-1]
    assert {len(cut.parts) for cut in dataset.pieces.values()} == {1}
    assert read("annif-folder", tmp_path).titled


VOCABULARY = (
    "http://x/1\tOil\nhttp://x/2\tOld\nhttp://x/3\tOld\n"  # a title of two concepts is no name
)


def document(**cells: Any) -> Dataset:
    return Dataset(
        splits={
            "train": pl.LazyFrame(
                {"doc_id": ["1"], "text": ["t"], "labels": [["l"]]}
                | {k: [v] for k, v in cells.items()}
            )
        }
    )


def test_what_a_format_cannot_hold_is_refused_or_said(tmp_path: Path) -> None:
    for name in ("a/b", "..", "x" * 300):
        with pytest.raises(DataError, match="cannot be the name of a file"):
            write_format("annif-folder", document(doc_id=name), tmp_path / "none")
    with pytest.raises(
        DataError, match="1 labels cannot be written in this format, such as 'two words'"
    ):
        write_format("annif-csv", document(labels=["two words"]), tmp_path)
    assert list(tmp_path.iterdir()) == []
    write = SPECS["annif-tsv"].write
    assert write is not None
    assert write(document(text="a\nb"), tmp_path, "") == [
        "line breaks or tabs of 1 texts became blanks: this format has one document a line",
        "this format does not hold document ids",
        "this format does not hold titles of labels",
    ]


def test_the_page_of_corpora_says_what_every_format_promises() -> None:
    page = (Path(__file__).parents[3] / "docs/corpus.md").read_text("utf-8")
    table = page.partition("**What each reader promises.**")[2].partition("**Missing values.**")[0]
    rows = [line.split("|")[1:5] for line in table.splitlines() if line.startswith("| ")][1:]
    named = {name for reader, *_ in rows for name in re.findall(r"`([\w-]+)`", reader)}
    registered = {spec.name for spec in plant_register_datasets() if spec.card is None}
    assert registered == named
    assert all(takes.strip() for reader, takes, *_ in rows if "all but" not in reader)
