"""Documents and their labels: tidied, counted, hashed, described."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import polars as pl
import pytest
from builders import SCHEMA
from plant_data.repair import write_corpus
from plant_formats.table_corpora import load as load_files

from plant_cli.api import DataError, DataSection, Dataset, Pieces, SilentReporter, SplitName
from plant_cli.data import documents as module
from plant_cli.data.corpus_files import SplitRecord
from plant_cli.data.documents import (
    SplitTexts,
    digest,
    explode_labels,
    find_used_labels,
    read_batches,
    read_digests,
    read_first,
    read_frame,
    read_frames,
    take_texts,
    tidy,
)
from plant_cli.data.files import hash_json, hash_strings
from plant_cli.data.labels import (
    LabelTable,
    count_labels,
    describe_corpus,
    encode_gold,
    find_further_parents,
    group_parents,
    tabulate_gold,
)
from plant_cli.data.languages import share_languages
from plant_cli.data.prepare import prepare
from plant_cli.data.store import open_corpus
from plant_cli.data.tables import trim
from plant_cli.evaluation.gold import find_hierarchy, read_gold, read_hierarchy


def dataset(**columns: object) -> Dataset:
    return Dataset(splits={"test": pl.LazyFrame({"doc_id": ["1"], "text": ["x"], "labels": [["a"]]} | columns), "train": pl.LazyFrame(
        {"doc_id": [1], "text": [None], "labels": [None]}
    )}, files=["x.csv"])  # fmt: skip


def test_splits_come_in_order_with_the_columns_of_the_schema() -> None:
    frames = read_frames(dataset(year=[1999]))
    assert list(frames) == ["train", "test"]
    assert frames["test"].rows() == [("1", "x", ["a"])]
    assert frames["train"].rows() == [("1", "", [])]
    assert (
        frames["train"].schema
        == frames["test"].schema
        == {"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}
    )


def test_labels_may_be_whole_numbers_or_categories() -> None:
    assert read_frame(dataset(labels=[[7, None, 8]]), "test")["labels"].to_list() == [["7", "8"]]
    categories = pl.Series([["a", "b"]], dtype=pl.List(pl.Categorical))
    assert read_frame(dataset(labels=categories), "test")["labels"].to_list() == [["a", "b"]]


@pytest.mark.parametrize("labels", ["a", 3, 0.5, [0.5], [["a"]], {"a": 1}, [{"a": 1}]])
def test_labels_that_are_not_lists_of_strings(labels: object) -> None:
    with pytest.raises(DataError, match="not lists of strings") as caught:
        read_frame(dataset(labels=[labels]), "test")
    assert caught.value.where == "split test of x.csv, column labels"
    assert "--labels-column" in caught.value.todo
    assert ("004.60 and 4.6 are the same" in caught.value.expected) == (labels in (0.5, [0.5]))


def test_text_that_is_not_a_string() -> None:
    with pytest.raises(DataError, match="type Int64, not a string"):
        read_frame(dataset(text=[1]), "test")


def test_a_column_that_the_dataset_does_not_yield() -> None:
    frame = pl.LazyFrame({"doc_id": ["1"], "texts": ["x"], "labels": [["a"]]})
    with pytest.raises(DataError, match="no column 'text'") as caught:
        read_frame(Dataset(splits={"train": frame}), "train")
    assert caught.value.expected == "did you mean 'texts'?"


def test_tidying_trims_and_keeps_the_first_of_equal_labels() -> None:
    frame = pl.DataFrame({"labels": [["b ", " a", "b", "\t"], [], ["x y"]]})
    assert tidy(frame)["labels"].to_list() == [["b", "a"], [], ["x y"]]


def test_exploding_passes_over_documents_without_labels() -> None:
    frame = pl.DataFrame({"doc_id": ["1", "2", "3"], "labels": [["a", "b"], [], ["a"]]})
    assert explode_labels(frame).rows() == [(0, "1", "a"), (0, "1", "b"), (2, "3", "a")]


def test_a_corpus_without_documents_is_told() -> None:
    with pytest.raises(DataError, match="holds no documents") as caught:
        read_frames(Dataset(splits={}, files=["data.csv"]))
    assert caught.value.where == "data.csv"


@pytest.mark.parametrize("rows", [range(9), range(1), range(2, 8), range(3, 3), range(8, 9)])
def test_some_rows_are_read_without_the_texts_of_others(
    rows: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DOCUMENTS_IN_MEMORY", 2)
    read: list[int] = []

    def look(texts: pl.Series) -> pl.Series:
        read.extend(int(text) for text in texts)
        return texts

    frame = pl.LazyFrame(
        {
            "doc_id": [f"d{i}" for i in range(9)],
            "text": [str(i) for i in range(9)],
            "labels": [["a"]] * 9,
        }
    )
    parts = [
        frame.slice(first, 3).with_columns(pl.col("text").map_batches(look, return_dtype=pl.String))
        for first in (0, 3, 6)
    ]
    whole = pl.concat(parts)
    batches = list(
        read_batches(
            Dataset(splits={"train": whole}, pieces={"train": Pieces(whole, parts)}), "train", rows
        )
    )
    assert [text for batch in batches for text in batch["text"]] == [str(row) for row in rows]
    assert max(batch.height for batch in batches) <= 2
    assert {row // 3 for row in read} <= {row // 3 for row in rows}


TEXTS = ["Héart failure.", "héart  FAILURE", "Héart failure.", " \n", "?!", None, "caf\ufffd\x01"]


def test_what_a_digest_holds() -> None:
    rows = [(str(number), text, ["x"]) for number, text in enumerate(TEXTS)]
    found = digest(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    same, alike = found["same"].to_list(), found["alike"].to_list()
    assert same[0] == same[2] != same[1]
    assert alike[0] == alike[1] == alike[2] is not None
    assert [same[3], same[5]] == [None, None]
    assert same[4] is not None
    assert [alike[row] for row in (3, 4, 5)] == [None] * 3
    assert found["characters"].to_list() == [14, 14, 14, 2, 2, 0, 5]
    assert found["inner_characters"].to_list() == [14, 14, 14, 0, 2, 0, 5]
    assert found["words"].to_list() == [2, 2, 2, 0, 1, 0, 1]
    assert found.select("replaced", "control").row(6) == (True, True)
    assert not found.select("replaced", "control").head(6).to_numpy().any()
    assert "text" not in found.columns


def test_batches_change_neither_digests_nor_fingerprints(
    dataset: Dataset, frames: dict[SplitName, pl.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DOCUMENTS_IN_MEMORY", 2)
    first = read_first(dataset, SilentReporter())
    assert list(first.digests) == ["train", "validation", "test"]
    for name, frame in frames.items():
        assert first.digests[name].equals(digest(frame, thorough=False))
        assert first.records[name] == SplitRecord(
            documents=frame.height,
            ids_hash=hash_strings(frame["doc_id"]),
            texts_hash=hash_strings(frame["text"]),
            labels_hash=hash_json(tidy(frame)["labels"].to_list()),
        )
        assert first.documents[name].equals(tidy(frame))
    monkeypatch.setattr(module, "BYTES_IN_MEMORY", 100)
    assert not read_first(dataset, SilentReporter()).documents, (
        "a large corpus does not stay in memory"
    )
    assert all(
        digest(frames[name]).equals(found)
        for name, found in read_digests(dataset, SilentReporter()).items()
    )


def test_a_missing_id_does_not_stop_the_reading() -> None:
    """It is refused afterwards, with all other documents that have none; nothing is said of it
    while the corpus is read.
    """
    frame = pl.DataFrame({"doc_id": ["a", None], "text": ["x", "y"], "labels": [["l"], ["l"]]})
    first = read_first(Dataset(splits={"train": frame.lazy()}), SilentReporter())
    assert first.digests["train"]["doc_id"].to_list() == ["a", None]
    assert first.records["train"].documents == 2


ROWS = [(f"d{number}", f"text {number}", ["x"]) for number in range(7)]


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> SplitTexts:
    monkeypatch.setattr(module, "DOCUMENTS_IN_MEMORY", 2)
    return SplitTexts(
        Dataset(splits={"train": pl.LazyFrame(ROWS, schema=SCHEMA, orient="row")}),
        "train",
        6,
        frozenset({"d3"}),
    )


def test_it_is_the_list_of_texts_without_those_left_out(texts: SplitTexts) -> None:
    listed = [f"text {number}" for number in (0, 1, 2, 4, 5, 6)]
    assert list(texts) == listed
    assert [texts[row] for row in range(len(texts))] == listed
    assert texts[-1] == "text 6"
    assert texts[1:4] == listed[1:4]
    assert (
        take_texts(texts, [5, 0, 3])
        == take_texts(listed, [5, 0, 3])
        == ["text 6", "text 0", "text 4"]
    )
    with pytest.raises(IndexError):
        texts[6]
    assert share_languages(texts) == share_languages(listed)


LABELS_FRAME = pl.DataFrame(
    {
        "doc_id": ["1", "2", "3", "4"],
        "text": ["x"] * 4,
        "labels": [["b", "a"], [], ["zebra", "b"], ["a"]],
    }
)


def table(*ids: str) -> LabelTable:
    return LabelTable(ids=ids, titles=[None] * len(ids), train_counts=[1] * len(ids))


def test_labels_are_counted_once_a_document_and_sorted() -> None:
    assert count_labels(LABELS_FRAME).rows() == [("a", 2), ("b", 2), ("zebra", 1)]


def test_gold_has_a_row_for_every_document_and_unknown_labels_stand_apart() -> None:
    known, unseen, names = encode_gold(
        tabulate_gold({"train": LABELS_FRAME}, pl.Series(["a", "b", "c"])), 3
    )
    assert known.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [0, 1, 0], [1, 0, 0]]
    assert unseen.toarray().tolist() == [[0], [0], [1], [0]]
    assert names == ["zebra"]


def test_the_hash_follows_the_order_and_nothing_else() -> None:
    assert (
        table("a", "b").hash
        == LabelTable(ids=("a", "b"), titles=["A", "B"], train_counts=[7, 9]).hash
    )
    assert table("a", "b").hash != table("b", "a").hash
    assert table("ab", "c").hash != table("a", "bc").hash


def test_a_label_is_found_by_name_and_a_near_one_is_offered() -> None:
    index = table("J20", "J21", "K35")
    assert [index.position(label) for label in ("J20", "K35")] == [0, 2]
    with pytest.raises(DataError, match="no training document has the label 'J22'") as caught:
        index.position("J22")
    assert "J2" in caught.value.expected


def test_blanks_around_a_label_do_not_count() -> None:
    frame = pl.DataFrame({"label": [" a b\t", "\u00a0c", "", None]})
    assert frame.select(trim(pl.col("label")))["label"].to_list() == ["a b", "c", "", None]


def test_used_labels_are_those_that_a_run_keeps() -> None:
    first = pl.LazyFrame(
        {
            "doc_id": ["1", "2", "3"],
            "text": ["", "", ""],
            "labels": [["b ", "b"], ["", " ", None], None],
        }
    )
    second = first.with_columns(labels=pl.lit([" a", "b"]))
    found = find_used_labels(Dataset(splits={"train": first, "test": second})).to_list()
    kept = [
        tidy(read_frame(Dataset(splits={"train": frame}), "train"))["labels"].explode()
        for frame in (first, second)
    ]
    assert found == ["a", "b"] == pl.concat(kept).drop_nulls().unique().sort().to_list()


def test_no_split_has_no_labels_and_a_damaged_one_is_told() -> None:
    assert find_used_labels(Dataset(splits={})).len() == 0
    numbers = pl.LazyFrame({"labels": [7, 8]}).select(labels=pl.concat_list("labels"))
    assert find_used_labels(Dataset(splits={"train": numbers})).to_list() == ["7", "8"]
    with pytest.raises(DataError) as caught:
        find_used_labels(Dataset(splits={"train": pl.LazyFrame({"text": ["a"]})}, files=["here"]))
    assert caught.value.where == "here"


PAIRS = [("f", "B1"), ("e", " Z0 "), ("e", "A9"), ("e", "A9"), ("gone", "A9"), ("d", "C1")]


@pytest.fixture
def with_pairs(dataset: Dataset) -> Dataset:
    return replace(dataset, excluded=pl.LazyFrame(PAIRS, schema=["doc_id", "label"], orient="row"))


def test_pairs_go_to_their_documents(with_pairs: Dataset, tmp_path: Path) -> None:
    reporter = SilentReporter()
    prepare(with_pairs, DataSection(), tmp_path, reporter)
    assert any(
        "4 pairs of document and label are left out of predictions" in note
        for note in reporter.notes
    )
    assert any(
        "1 pairs to leave out of predictions are of documents that the corpus does not have" in said
        for said in reporter.warnings
    )
    corpus = open_corpus(tmp_path, lambda: with_pairs)
    test, train = corpus.split("test").excluded, corpus.split("train").excluded
    assert (test.rows.tolist(), list(test.labels)) == ([0, 0, 1], ["A9", "Z0", "B1"])
    assert not len(train.rows)


def test_a_corpus_without_them_writes_no_file(dataset: Dataset, tmp_path: Path) -> None:
    assert (
        prepare(dataset, DataSection(), tmp_path, SilentReporter()).split("test").excluded is None
    )
    assert not (tmp_path / "excluded.parquet").exists()


@pytest.mark.parametrize("name", ["data.parquet", "data.csv", "folder"])
def test_tables_carry_them(with_pairs: Dataset, tmp_path: Path, name: str) -> None:
    frames = {split: frame.collect() for split, frame in with_pairs.splits.items()}
    write_corpus(frames, with_pairs, tmp_path / name, force=False)
    again = load_files(DataSection(path=str(tmp_path / name)))
    assert again.excluded.collect().rows() == PAIRS


def test_numbers_counted_by_hand(frames: dict[SplitName, pl.DataFrame]) -> None:
    found = describe_corpus({name: digest(frame) for name, frame in frames.items()})
    assert asdict(found.splits["train"]) == {
        "documents": 3,
        "documents_without_labels": 0,
        "labels": 3,
        "assignments": 4,
        "labels_per_document_mean": 1.3333,
        "labels_per_document_median": 1.0,
        "words_per_document_median": 5.0,
        "words_per_document_p90": 5.8,
        "unseen_labels": 0,
        "unseen_assignments": 0,
    }
    test = found.splits["test"]
    assert (test.unseen_labels, test.unseen_assignments) == (2, 3)
    assert (found.labels, found.labels_in_train) == (5, 3)
    assert found.bins == {
        "0": 2,
        "1-5": 3,
        "6-10": 0,
        "11-50": 0,
        "51-100": 0,
        "101-500": 0,
        ">500": 0,
    }


@pytest.mark.parametrize(
    ("documents", "name"),
    [
        (1, "1-5"),
        (5, "1-5"),
        (6, "6-10"),
        (10, "6-10"),
        (11, "11-50"),
        (51, "51-100"),
        (100, "51-100"),
        (500, "101-500"),
        (501, ">500"),
    ],
)
def test_the_edges_of_the_bins(documents: int, name: str) -> None:
    rows = pl.DataFrame(
        {"doc_id": [str(i) for i in range(documents)], "text": "x", "labels": [["a"]] * documents}
    )
    assert {
        key for key, count in describe_corpus({"train": digest(rows)}).bins.items() if count
    } == {name}


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("name", "train", "test", "labels", "in_train", "unseen_share"),
    [
        ("tibkat", 5585, 1036, 9021, 7849, 0.285),
        ("codiesp", 500, 178, 2921, 2330, 0.195),
        ("tibkat-mini", 400, 200, 1366, 877, 0.496),
    ],
)
def test_the_published_statistics_of_real_corpora(
    name: str, train: int, test: int, labels: int, in_train: int, unseen_share: float, corpora: Path
) -> None:
    found = describe_corpus(
        read_digests(load_files(DataSection(path=str(corpora / name))), SilentReporter())
    )
    assert (found.splits["train"].documents, found.splits["test"].documents) == (train, test)
    assert (found.labels, found.labels_in_train) == (labels, in_train)
    asked = found.splits["test"]
    assert asked.unseen_assignments / asked.assignments == pytest.approx(unseen_share, abs=0.0005)


PAIRS_OF_PARENTS = [
    ("a", "g"),
    ("a", "h"),
    ("b", "g"),
    ("g", "top"),
    ("h", "top"),
    ("new", "h"),
    ("other", "else"),
    ("top", "a-new-top"),
]


def titles(*pairs: tuple[str, str]) -> pl.DataFrame:
    table = (
        pl.DataFrame(pairs, schema=["label", "parents"], orient="row")
        .group_by("label", maintain_order=True)
        .agg("parents")
    )
    return table.with_columns(title=pl.format("Title {}", "label"))


def find(table: pl.DataFrame, used: str, indexed: str) -> list[tuple[str, str]] | None:
    pairs = find_further_parents(table, pl.Series(used.split()), pl.Series(indexed.split()))
    return None if pairs is None else [(label, parent) for label, parent in pairs.iter_rows()]


def test_all_that_stands_above_a_label_of_the_corpus_and_nothing_else() -> None:
    assert find(titles(*PAIRS_OF_PARENTS), "a b new", "a b") == [
        ("g", "top"),
        ("h", "top"),
        ("new", "h"),
        ("top", "a-new-top"),
    ]
    assert find(titles(*PAIRS_OF_PARENTS), "b", "b g") == [("top", "a-new-top")]
    assert find(titles(*PAIRS_OF_PARENTS), "a-new-top x", "x") is None
    assert find(titles(("a", "b"), ("b", "c"), ("c", "b")), "a", "a") == [
        ("b", "c"),
        ("c", "b"),
    ]  # circles end


def test_pairs_are_grouped() -> None:
    pairs = pl.DataFrame(
        [("a", "x"), ("a", "y"), ("b", "x")], schema=["label", "parent"], orient="row"
    )
    assert group_parents(pairs) == {"a": ["x", "y"], "b": ["x"]}
    assert group_parents(None) == {}


def split(name: str, *labels: list[str]) -> pl.LazyFrame:
    ids = [f"{name}{i}" for i in range(len(labels))]
    return pl.LazyFrame(
        {"doc_id": ids, "text": [f"text of {one}" for one in ids], "labels": labels}
    )


def corpus() -> Dataset:
    splits = {
        "train": split("train", ["a"], ["b"]),
        "validation": split("validation", ["a"]),
        "test": split("test", ["new", "b"]),
    }
    return Dataset(splits=splits, labels=titles(*PAIRS_OF_PARENTS).lazy())  # type: ignore[arg-type]


def test_the_vocabulary_of_a_run_says_what_a_table_of_its_pairs_says(tmp_path: Path) -> None:
    prepare(corpus(), DataSection(), tmp_path / "corpus", SilentReporter())
    run = open_corpus(tmp_path / "corpus", corpus)
    pl.DataFrame(PAIRS_OF_PARENTS, schema=["label", "parent"], orient="row").write_csv(
        tmp_path / "parents.csv"
    )
    gold = read_gold(run, "test")
    found, table = (
        find_hierarchy(None, run.labels, gold.labels, SilentReporter()),
        read_hierarchy(tmp_path / "parents.csv", gold.labels),
    )
    assert list(found.nodes) == list(table.nodes) == ["a", "a-new-top", "b", "g", "h", "new", "top"]
    assert found.above.toarray().tolist() == table.above.toarray().tolist()
    assert found.depths.tolist() == table.depths.tolist() == [4, 1, 4, 3, 3, 4, 2]


def test_without_further_parents_nothing_is_written(tmp_path: Path) -> None:
    given = Dataset(splits=corpus().splits, labels=titles(("a", "g"), ("other", "else")).lazy())
    prepare(given, DataSection(), tmp_path, SilentReporter())
    assert not (tmp_path / "parents.parquet").exists()
