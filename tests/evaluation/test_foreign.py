"""The same predictions in every format give the same metrics; damage is an error with its line."""

import gzip
import json
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, save_npz

from plant_cli.api import DataError, SilentReporter
from plant_cli.evaluation.aligned import read_predictions
from plant_cli.evaluation.foreign import Numbering, read_foreign, read_numbering
from plant_cli.evaluation.gold import read_gold
from tests.evaluation.conftest import TinyCorpus

ORDER = ["d", "c", "b", "a"]  # numbers of labels: not the order of the corpus
SPARSE = "5 4\n3:0.9 1:0.8 0:0.1\n2:0.7\n1:0.9 2:0.2\n0:0.3\n3:0.6\n"


def as_annif(predictions):
    rows = [
        {
            "document_id": d,
            "text": "…",
            "results": [{"uri": f"http://x/{n}", "label": n, "notation": None, "score": s} for n, s in p.items()],
        }
        for d, p in predictions.items()
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_trec(predictions):
    return "".join(f"{d} Q0 {n} {r} {s} run\n" for d, p in predictions.items() for r, (n, s) in enumerate(p.items(), 1))


def as_long(predictions):
    return "doc_id,label,score\n" + "".join(f"{d},{n},{s}\n" for d, p in predictions.items() for n, s in p.items())


FORMS = {
    "annif": (as_annif, "Annif's JSON lines", {}),
    "trec": (as_trec, "a TREC run", {}),
    "long": (as_long, "a table with a pair in each row", {}),
    "scored": (lambda p: "".join(" ".join(f"{n}:{s}" for n, s in x.items()) + "\n" for x in p.values()), "text of label:score", {}),
    "sparse": (lambda p: SPARSE, "XMLRepository sparse text", {"labels": ORDER}),
}


class Noting(SilentReporter):
    def __init__(self):
        self.notes = []

    def note(self, message):
        self.notes.append(message)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("compressed", [False, True])
def test_every_format_says_the_same(form, compressed, gold, save, good, tmp_path):
    write, name, numbering = FORMS[form]
    path = tmp_path / (f"{form}.txt.gz" if compressed else f"{form}.txt")
    content = write(good).encode()
    path.write_bytes(gzip.compress(content) if compressed else content)
    reporter = Noting()
    found = read_predictions(path, gold, reporter, Numbering(**numbering))
    expected = read_predictions(save(good), gold)
    assert np.array_equal(found.top, expected.top)
    assert np.array_equal(found.scores, expected.scores)
    assert f"is read as {name}: 5 documents" in reporter.notes[0]


def test_a_sparse_matrix(gold, save, good, tmp_path):
    matrix = csr_array(np.array([[0.1, 0.8, 0, 0.9], [0, 0, 0.7, 0], [0, 0.9, 0.2, 0], [0.3, 0, 0, 0], [0, 0, 0, 0.6]]))
    save_npz(tmp_path / "y.npz", matrix)
    found = read_predictions(tmp_path / "y.npz", gold, numbering=Numbering(labels=ORDER))
    expected = read_predictions(save(good), gold)
    assert np.array_equal(found.top, expected.top)
    assert np.array_equal(found.scores, expected.scores)


def test_documents_without_predictions_and_addresses_as_labels(gold, tmp_path):
    path = tmp_path / "scored.txt"
    path.write_text("http://x/1:0.5 a:1e-3\n\n\n\n\n")
    frame = read_foreign(path, gold, Numbering()).frame
    assert frame["labels"].to_list() == [["http://x/1", "a"], [], [], [], []]
    assert frame["scores"].to_list()[0] == [0.5, 0.001]


def test_pairs_that_do_not_count_are_taken_out(gold, tmp_path):
    (tmp_path / "sparse.txt").write_text(SPARSE)
    (tmp_path / "labels.txt").write_text("<d>\tDelta\nc\nb\na\n")
    (tmp_path / "filter.txt").write_text("0 3\n2 1\n")
    numbering = read_numbering(str(tmp_path / "labels.txt"), str(tmp_path / "filter.txt"))
    assert list(numbering.labels) == ORDER
    found = read_predictions(tmp_path / "sparse.txt", gold, numbering=numbering)
    assert found.top[0].tolist() == [2, 3, -1][: found.top.shape[1]]  # a of the first document is out
    assert found.top[2].tolist()[0] == 1


def test_our_own_tables_are_left_to_others(gold, save, good, tmp_path):
    path = tmp_path / "ours.jsonl"
    path.write_text('{"doc_id": "1", "labels": ["a"], "scores": [0.5]}\n')
    assert read_foreign(path, gold, Numbering()) is None
    assert read_foreign(save(good), gold, Numbering()) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("4 4\n0:1\n0:1\n0:1\n0:1\n", "the predictions are of 4 documents"),
        ("5 4\n9:1\n\n\n\n\n", "there is no label number 9"),
        ("5 4\nx:1\n\n\n\n\n", "this is no label and score: x:1"),
        ("a:0.5\n", "the predictions are of 1 documents"),
        ("1 Q0 a 1 0.5 run\n1 Q0 b\n", "this is no line of a TREC run"),
        ('{"results": [{"uri": "a"}]}\n' * 5, "this is no line of Annif's output"),
        ('{"document_id": "1", "results": []}\n' * 2, "the document '1' is predicted more than once"),
        ("doc_id,label,score\n1,a,high\n", "a score is no number"),
        ("doc_id,label,score\n1,a,0.5\n1,b,\n1,,0.9\n", "the label 'b' of document '1' has no score"),
        ("doc_id,label,score\n1,a,0.5\n2,,0.9\n", "a score of document '2' has no label"),
        ("a:nan\n" * 5, "the score of label a is not a number"),
    ],
)
def test_damage_is_named(content, message, gold, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        read_predictions(path, gold, numbering=Numbering(labels=ORDER))


def test_no_pickle_is_ever_read(gold, tmp_path):
    np.savez(tmp_path / "evil.npz", data=np.array([{}], dtype=object), indices=[0], indptr=[0, 1], shape=(1, 1), format=b"csr")
    with pytest.raises(DataError, match="no sparse matrix"):
        read_foreign(tmp_path / "evil.npz", gold, Numbering())


def test_a_bad_pair_is_named(tmp_path):
    (tmp_path / "filter.txt").write_text("0 1\n0 x\n")
    with pytest.raises(DataError, match="this is no pair of document and label: 0 x") as caught:
        read_numbering(None, str(tmp_path / "filter.txt"))
    assert caught.value.where.endswith("line 2")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.floats(0.001, 1), max_size=4), min_size=5, max_size=5))
def test_round_trips(rows):
    """Any predictions of the five documents come back from every text format as they were."""
    predictions = {str(i): row for i, row in enumerate(rows, 1)}
    gold = read_gold(TinyCorpus(), "test")
    for name in ("annif", "trec", "long", "scored"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.txt"
            path.write_text(FORMS[name][0](predictions))
            found = read_foreign(path, gold, Numbering())
        if found is None:
            assert not any(rows)  # nothing in it by which it could be recognised
            continue
        frame = found.frame.filter(pl.col("labels").list.len() > 0)
        read = {d: dict(zip(n, s, strict=True)) for d, n, s in zip(frame["doc_id"], frame["labels"], frame["scores"], strict=True)}
        assert read == {d: row for d, row in predictions.items() if row}, name


def test_a_document_without_predictions_may_have_a_row_of_its_own(gold, tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("doc_id,label,score\n1,a,0.5\n1,,\n2,,\n")
    assert read_foreign(path, gold, Numbering()).frame.rows() == [("1", ["a"], [0.5]), ("2", [], [])]


@pytest.mark.parametrize("part", ["\x85", "\u2028", "\x0c", "\x1d"])
def test_labels_are_numbered_by_line_feeds_alone(part, gold, tmp_path):
    order = tmp_path / "labels.txt"
    order.write_bytes(f"\ufeffd\tDel{part}ta\r\nc{part}c\nb\na\n".encode())
    assert list(read_numbering(str(order), None).labels) == ["d", f"c{part}c", "b", "a"]
    rows = [{"document_id": "1", "text": f"x{part}y", "results": [{"uri": "a", "score": 0.5}]}]
    (tmp_path / "annif.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    assert read_foreign(tmp_path / "annif.jsonl", gold, Numbering()).frame.rows() == [("1", ["a"], [0.5])]


def test_a_list_of_labels_in_another_encoding_is_refused(tmp_path):
    (tmp_path / "labels.txt").write_bytes("a\nb\u00e4\n".encode("latin-1"))
    with pytest.raises(DataError, match="the file is not UTF-8") as caught:
        read_numbering(str(tmp_path / "labels.txt"), None)
    assert caught.value.where.endswith("labels.txt, line 2, column 2")


def test_a_pair_with_a_number_of_thousands_of_digits_is_refused(tmp_path):
    (tmp_path / "pairs.txt").write_text(f"0 1\n0 {'9' * 5000}\n")
    with pytest.raises(DataError, match="no pair of document and label") as caught:
        read_numbering(None, str(tmp_path / "pairs.txt"))
    assert caught.value.where.endswith("line 2")
