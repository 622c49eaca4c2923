"""Predictions of any tool, aligned to gold: the same in every format; for what is refused see
`messages.yaml`.
"""

import gzip
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, save_npz

from plant_cli.api import DataError, SilentReporter
from plant_cli.data.files import hash_strings
from plant_cli.data.tables import write_table
from plant_cli.evaluation.aligned import build_input, read_predictions
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.foreign import Numbering, read_foreign, read_numbering
from plant_cli.evaluation.gold import read_gold
from plant_cli.scoring.predictions import INDICES, write_predictions
from tests.evaluation.conftest import TinyCorpus

LABEL_HASH = {"label_hash": hash_strings(("a", "b", "c", "d"))}
ORDER = ["d", "c", "b", "a"]  # numbers of labels: not the order of the corpus
SPARSE = "5 4\n3:0.9 1:0.8 0:0.1\n2:0.7\n1:0.9 2:0.2\n0:0.3\n3:0.6\n"


def same(one, other):
    return np.array_equal(one.top, other.top) and np.array_equal(one.scores, other.scores)


def test_labels_are_ranked_by_score_then_by_index(align, good):
    good["1"] = {"d": 0.5, "b": 0.5, "c": 0.9}
    read = align(good)
    assert read.top[:2].tolist() == [[2, 1, 3], [1, -1, -1]]
    assert read.scores[:2].tolist() == [[0.9, 0.5, 0.5], [0.7, -np.inf, -np.inf]]
    assert align({doc_id: {} for doc_id in good}).top.tolist() == [[-1]] * 5


def test_neither_order_of_documents_nor_of_labels_nor_blanks_around_them_matter(align, good):
    expected, reporter = align(good), SilentReporter()
    assert same(
        align(
            {doc_id: dict(reversed(labels.items())) for doc_id, labels in reversed(good.items())}
        ),
        expected,
    )
    spaced = {
        doc_id: {f" {label}\u00a0": score for label, score in labels.items()}
        for doc_id, labels in good.items()
    }
    assert same(align(spaced, reporter=reporter), expected)
    assert reporter.warnings == []


def test_an_unknown_label_keeps_its_rank_and_one_unseen_in_train_can_be_right(align, good):
    good["2"], good["3"] = {"nowhere": 0.7, "b": 0.7}, {"nowhere": 0.9, "x": 0.8}
    read = align(good)
    assert read.top[1:3].tolist() == [
        [1, -1, -1],
        [-1, 4, -1],
    ]  # of equal scores the unknown label is last
    assert read.unknown == 2


def test_pairs_that_the_corpus_excludes_do_not_count(align, gold, good):
    """Document 1 is not judged by its best label, and the labels behind it move up."""
    good["1"] = {"d": 0.5, "b": 0.4, "c": 0.9}
    assert align(good, replace(gold, excluded=np.array([[0, 2], [1, 3]]))).top[:2].tolist() == [
        [3, 1],
        [1, -1],
    ]
    assert align(good).top[0].tolist() == [2, 3, 1]


def test_our_own_predictions_are_read_by_index_as_by_name(corpus, gold, tmp_path):
    """Ties of score stand by label index in both; the file has them in another order."""
    top, scores = np.array([[3, 1, 2]] * 5), np.array([[0.5, 0.5, 0.9]] * 5)
    path, split = tmp_path / "ours.parquet", corpus.split("test")
    write_predictions(path, top, scores, split, corpus.labels)
    pl.read_parquet(path).drop(INDICES).write_parquet(tmp_path / "named.parquet")
    pl.read_parquet(path).with_columns(labels=pl.lit(["?"] * 3)).write_parquet(
        tmp_path / "indexed.parquet", metadata=LABEL_HASH
    )
    ours, named, indexed = (
        read_predictions(tmp_path / f"{name}.parquet", gold)
        for name in ("ours", "named", "indexed")
    )
    assert same(ours, named)
    assert same(ours, indexed)
    assert (ours.top[0].tolist(), ours.unknown) == ([2, 1, 3], 0)


def test_documents_without_gold_leave_unless_the_convention_keeps_them(align, lay, gold, good):
    assert (len(lay(good).top), len(lay(good, convention="xmlrepo").top)) == (4, 5)
    nothing = replace(gold, matrix=csr_array(gold.matrix.shape, dtype=np.int64))
    with pytest.raises(DataError, match="no document of the test split has a gold label"):
        build_input(align(good), nothing, 0.5, CONVENTIONS["plant"])


def test_thresholds_per_label_never_assign_labels_unseen_in_train(lay, good):
    assert lay(good, np.array([0.1, 0.2, 0.3, 0.4])).threshold.tolist() == [
        0.1,
        0.2,
        0.3,
        0.4,
        np.inf,
        np.inf,
    ]


def test_many_unknown_labels_are_warned_of_with_near_names(align, good):
    good["3"] = {"nowhere": 0.9, "B": 0.8, "b": 0.7}
    good["4"] = {"nowhere": 0.3, "y": 0.2}
    reporter = SilentReporter()
    assert align(good, reporter=reporter).unknown == 3
    [warning] = reporter.warnings
    assert warning.startswith(
        "3 of 10 predicted labels are unknown to the corpus: each keeps its rank and counts as "
        "wrong ("
    )
    assert warning.endswith("they differ by capital letters: 'B' in the file, 'b' in the corpus)")


@pytest.mark.parametrize(("known", "warned"), [(19, False), (18, True)])
def test_up_to_a_twentieth_of_unknown_labels_is_no_matter(align, gold, known, warned):
    cells = [(doc_id, label) for doc_id in gold.doc_ids for label in "abcd"][:known]
    rows = {
        doc_id: {label: 0.5 for other, label in cells if other == doc_id} for doc_id in gold.doc_ids
    }
    rows["5"]["nowhere"] = 0.5
    rows["1"]["a"], reporter = 0.9, SilentReporter()
    assert align(rows, reporter=reporter).unknown == 1
    assert bool(reporter.warnings) == warned


def as_annif(predictions):
    def results(row):
        return [
            {"uri": f"http://x/{n}", "label": n, "notation": None, "score": s}
            for n, s in row.items()
        ]

    return "".join(
        json.dumps({"document_id": d, "text": "…", "results": results(row)}) + "\n"
        for d, row in predictions.items()
    )


def as_trec(predictions):
    return "".join(
        f"{d} Q0 {n} {r} {s} run\n"
        for d, p in predictions.items()
        for r, (n, s) in enumerate(p.items(), 1)
    )


def as_long(predictions):
    return "doc_id,label,score\n" + "".join(
        f"{d},{n},{s}\n" for d, p in predictions.items() for n, s in p.items()
    )


def as_scored(predictions):
    return "".join(
        " ".join(f"{n}:{s}" for n, s in row.items()) + "\n" for row in predictions.values()
    )


def as_lines(predictions):
    return "".join(
        json.dumps({"doc_id": d, "labels": list(p), "scores": list(p.values())}) + "\n"
        for d, p in predictions.items()
    )


FORMS = {
    "annif": (as_annif, "Annif's JSON lines"),
    "trec": (as_trec, "a TREC run"),
    "long": (as_long, "a table with a pair in each row"),
    "scored": (as_scored, "text of label:score"),
    "sparse": (lambda _: SPARSE, "XMLRepository sparse text"),
    "lines": (as_lines, None),  # our own
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("compressed", [False, True])
def test_every_format_says_the_same(form, compressed, gold, align, good, tmp_path):
    write, name = FORMS[form]
    path = tmp_path / f"{form}.{'jsonl' if form == 'lines' else 'txt'}{'.gz' if compressed else ''}"
    content = write(good).encode()
    path.write_bytes(gzip.compress(content) if compressed else content)
    reporter = SilentReporter()
    assert same(
        read_predictions(path, gold, reporter, Numbering(labels=ORDER if form == "sparse" else ())),
        align(good),
    )
    assert name is None or f"is read as {name}: 5 documents" in reporter.notes[0]


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz"])
def test_lists_in_the_cells_of_a_csv_are_read(gold, tmp_path, align, save, good, name):
    write_table(pl.read_parquet(save(good)), tmp_path / name)
    assert same(align(good), read_predictions(tmp_path / name, gold))
    if name == "x.csv":
        (tmp_path / name).write_text(
            'doc_id,labels,scores\n1,"[""a"", 7]","[1, 0.5]"\n2,,\n3,[],[]\n4,[],[]\n5,[],[]\n'
        )
        assert read_predictions(tmp_path / name, gold).top.tolist() == [
            [0, -1],
            [-1, -1],
            [-1, -1],
            [-1, -1],
            [-1, -1],
        ]


def test_a_sparse_matrix_without_any_pickle(gold, align, good, tmp_path):
    matrix = csr_array(
        np.array(
            [[0.1, 0.8, 0, 0.9], [0, 0, 0.7, 0], [0, 0.9, 0.2, 0], [0.3, 0, 0, 0], [0, 0, 0, 0.6]]
        )
    )
    save_npz(tmp_path / "y.npz", matrix)
    assert same(
        read_predictions(tmp_path / "y.npz", gold, numbering=Numbering(labels=ORDER)), align(good)
    )
    np.savez(
        tmp_path / "evil.npz",
        data=np.array([{}], dtype=object),
        indices=[0],
        indptr=[0, 1],
        shape=(1, 1),
        format=b"csr",
    )
    with pytest.raises(DataError, match="no sparse matrix"):
        read_foreign(tmp_path / "evil.npz", gold, Numbering())


def test_documents_without_predictions_and_addresses_as_labels(gold, tmp_path):
    path = tmp_path / "scored.txt"
    path.write_text("http://x/1:0.5 a:1e-3\n\n\n\n\n")
    assert read_foreign(path, gold, Numbering()).frame["labels"].to_list() == [
        ["http://x/1", "a"],
        [],
        [],
        [],
        [],
    ]
    assert read_foreign(path, gold, Numbering()).frame["scores"].to_list()[0] == [0.5, 0.001]
    path.write_text("doc_id,label,score\n1,a,0.5\n1,,\n2,,\n")
    assert read_foreign(path, gold, Numbering()).frame.rows() == [
        ("1", ["a"], [0.5]),
        ("2", [], []),
    ]


def test_pairs_that_do_not_count_are_taken_out(gold, tmp_path):
    (tmp_path / "sparse.txt").write_text(SPARSE)
    (tmp_path / "labels.txt").write_text("<d>\tDelta\nc\nb\na\n")
    (tmp_path / "filter.txt").write_text("0 3\n2 1\n")
    numbering = read_numbering(str(tmp_path / "labels.txt"), str(tmp_path / "filter.txt"))
    assert list(numbering.labels) == ORDER
    top = read_predictions(tmp_path / "sparse.txt", gold, numbering=numbering).top
    assert top[0].tolist() == [2, 3, -1][: top.shape[1]]  # a of the first document is out
    assert top[2, 0] == 1


def test_our_own_tables_are_no_format_of_others(gold, save, good, tmp_path):
    path = tmp_path / "ours.jsonl"
    path.write_text('{"doc_id": "1", "labels": ["a"], "scores": [0.5]}\n')
    assert read_foreign(path, gold, Numbering()).form == ""
    assert read_foreign(save(good), gold, Numbering()).form == ""


@settings(max_examples=30)
@given(
    st.lists(
        st.dictionaries(st.sampled_from("abcd"), st.floats(0.001, 1), max_size=4),
        min_size=5,
        max_size=5,
    )
)
def test_round_trips(rows):
    """Any predictions of the five documents come back from every text format as they were."""
    predictions = {str(i): row for i, row in enumerate(rows, 1)}
    gold = read_gold(TinyCorpus(), "test")
    assume(
        len({score for row in rows for score in row.values()}) > 1
    )  # else nothing to recognise, or a run with ranks alone
    for name in ("annif", "trec", "long", "scored"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.txt"
            path.write_text(FORMS[name][0](predictions))
            found = read_foreign(path, gold, Numbering())
        frame = found.frame.filter(pl.col("labels").list.len() > 0)
        read = {
            d: dict(zip(n, s, strict=True))
            for d, n, s in zip(frame["doc_id"], frame["labels"], frame["scores"], strict=True)
        }
        assert read == {d: row for d, row in predictions.items() if row}, name


@pytest.mark.parametrize("part", ["\x85", "\u2028", "\x0c", "\x1d"])
def test_labels_are_numbered_by_line_feeds_alone(part, gold, tmp_path):
    order = tmp_path / "labels.txt"
    order.write_bytes(f"\ufeffd\tDel{part}ta\r\nc{part}c\nb\na\n".encode())
    assert list(read_numbering(str(order), None).labels) == ["d", f"c{part}c", "b", "a"]
    rows = [{"document_id": "1", "text": f"x{part}y", "results": [{"uri": "a", "score": 0.5}]}]
    (tmp_path / "annif.jsonl").write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )
    assert read_foreign(tmp_path / "annif.jsonl", gold, Numbering()).frame.rows() == [
        ("1", ["a"], [0.5])
    ]


def test_lists_of_labels_in_another_encoding_and_endless_numbers_are_refused(tmp_path):
    (tmp_path / "labels.txt").write_bytes("a\nb\u00e4\n".encode("latin-1"))
    with pytest.raises(DataError, match="the file is not UTF-8") as caught:
        read_numbering(str(tmp_path / "labels.txt"), None)
    assert caught.value.where.endswith("labels.txt, line 2, column 2")
    (tmp_path / "pairs.txt").write_text(f"0 1\n0 {'9' * 5000}\n")
    with pytest.raises(DataError, match="no pair of document and label") as caught:
        read_numbering(None, str(tmp_path / "pairs.txt"))
    assert caught.value.where.endswith("line 2")
