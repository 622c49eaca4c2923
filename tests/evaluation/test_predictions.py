"""Predictions of any tool, aligned to gold; every way in which a file can be wrong."""

import gzip
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
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


def test_a_split_without_gold_is_refused(gold, save, good):
    nothing = replace(gold, matrix=csr_array(gold.matrix.shape, dtype=np.int64))
    with pytest.raises(DataError, match="no document of the test split has a gold label"):
        build_input(read_predictions(save(good), nothing), nothing, 0.5, CONVENTIONS["plant"])


def test_labels_are_ranked_by_score_then_by_index(gold, save, good):
    good["1"] = {"d": 0.5, "b": 0.5, "c": 0.9}
    read = read_predictions(save(good), gold)
    assert read.top[0].tolist() == [2, 1, 3]
    assert read.scores[0].tolist() == [0.9, 0.5, 0.5]
    assert read.top[1].tolist() == [1, -1, -1]
    assert read.scores[1].tolist() == [0.7, -np.inf, -np.inf]


def test_neither_order_of_documents_nor_of_labels_matters(gold, save, good):
    turned = {doc_id: dict(reversed(labels.items())) for doc_id, labels in reversed(good.items())}
    one, other = read_predictions(save(good, "1.parquet"), gold), read_predictions(save(turned, "2.parquet"), gold)
    assert np.array_equal(one.top, other.top)
    assert np.array_equal(one.scores, other.scores)


def test_json_lines_are_read_too(gold, tmp_path, save, good):
    path = tmp_path / "other.jsonl"
    lines = [json.dumps({"doc_id": d, "labels": list(p), "scores": list(p.values())}) for d, p in good.items()]
    path.write_text("\n".join(lines) + "\n")
    assert np.array_equal(read_predictions(path, gold).top, read_predictions(save(good), gold).top)


def test_an_unknown_label_keeps_its_rank_and_one_unseen_in_train_can_be_right(gold, save, good):
    good["3"] = {"nowhere": 0.9, "x": 0.8}
    read = read_predictions(save(good), gold)
    assert read.top[2].tolist() == [-1, 4, -1]
    assert read.unknown == 1


def test_pairs_that_the_corpus_excludes_do_not_count(gold, save, good):
    """Document 1 is not judged by its best label, and the labels behind it move up."""
    good["1"] = {"d": 0.5, "b": 0.4, "c": 0.9}
    read = read_predictions(save(good), replace(gold, excluded=np.array([[0, 2], [1, 3]])))
    assert read.top[0].tolist() == [3, 1]
    assert read.top[1].tolist() == [1, -1]
    assert read_predictions(save(good, "again.parquet"), gold).top[0].tolist() == [2, 3, 1]


def test_our_own_predictions_are_read_by_index_as_by_name(corpus, gold, tmp_path):
    """Ties of score stand by label index in both; the file has them in another order."""
    top, scores = np.array([[3, 1, 2]] * 5), np.array([[0.5, 0.5, 0.9]] * 5)
    path, split = tmp_path / "ours.parquet", corpus.split("test")
    write_predictions(path, top, scores, split, corpus.labels)
    pl.read_parquet(path).drop(INDICES).write_parquet(tmp_path / "named.parquet")
    pl.read_parquet(path).with_columns(labels=pl.lit(["?"] * 3)).write_parquet(tmp_path / "indexed.parquet", metadata=LABEL_HASH)
    ours, named, indexed = (read_predictions(tmp_path / f"{name}.parquet", gold) for name in ("ours", "named", "indexed"))
    for other in (named, indexed):
        assert np.array_equal(ours.top, other.top)
        assert np.array_equal(ours.scores, other.scores)
    assert ours.top[0].tolist() == [2, 1, 3]
    assert ours.unknown == 0


def test_documents_without_gold_leave_unless_the_convention_keeps_them(gold, save, good):
    read = read_predictions(save(good), gold)
    assert len(build_input(read, gold, 0.5, CONVENTIONS["plant"]).top) == 4
    assert len(build_input(read, gold, 0.5, CONVENTIONS["xmlrepo"]).top) == 5


def test_thresholds_per_label_never_assign_labels_unseen_in_train(gold, save, good):
    data = build_input(read_predictions(save(good), gold), gold, np.array([0.1, 0.2, 0.3, 0.4]), CONVENTIONS["plant"])
    assert data.threshold.tolist() == [0.1, 0.2, 0.3, 0.4, np.inf, np.inf]


def refused(path, gold):
    with pytest.raises(DataError) as caught:
        read_predictions(path, gold)
    assert caught.value.exit_code == 4
    return caught.value


def test_missing_documents_are_named(gold, save, good):
    del good["2"], good["4"]
    error = refused(save(good), gold)
    assert "2 documents of the test split without predictions: 2, 4" in error.what
    assert "5 documents" in error.expected


def test_unknown_and_repeated_documents_are_named(gold, save, good, tmp_path):
    assert "does not have: 99" in refused(save({**good, "99": {}}), gold).what
    frame = pl.read_parquet(save(good))
    pl.concat([frame, frame.head(1)]).write_parquet(tmp_path / "twice.parquet")
    assert "predicted more than once: 1" in refused(tmp_path / "twice.parquet", gold).what


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf"), None])
def test_a_score_that_is_no_number_names_document_and_label(gold, save, good, score):
    good["3"]["b"] = score
    error = refused(save(good), gold)
    assert "label b" in error.what
    assert "document 3" in error.where


def test_a_repeated_label_and_uneven_lists_name_the_document(gold, tmp_path, save, good):
    frame = pl.read_parquet(save(good)).with_columns(labels=pl.lit(["c", "c"]), scores=pl.lit([0.1, 0.2]))
    frame.write_parquet(tmp_path / "repeated.parquet")
    assert "label c is predicted twice" in refused(tmp_path / "repeated.parquet", gold).what
    frame.with_columns(scores=pl.lit([0.1])).write_parquet(tmp_path / "uneven.parquet")
    assert "document 1" in refused(tmp_path / "uneven.parquet", gold).where


def test_a_misnamed_column_and_a_wrong_type(gold, tmp_path, save, good):
    frame = pl.read_parquet(save(good))
    frame.rename({"scores": "score"}).write_parquet(tmp_path / "named.parquet")
    assert "did you mean 'score'?" in refused(tmp_path / "named.parquet", gold).expected
    frame.with_columns(labels=pl.lit(3)).write_parquet(tmp_path / "typed.parquet")
    assert "wrong types" in refused(tmp_path / "typed.parquet", gold).what


def test_no_predictions_at_all_for_any_document_is_allowed(gold, save, good):
    read = read_predictions(save({doc_id: {} for doc_id in good}), gold)
    assert read.top.tolist() == [[-1]] * 5


def test_blanks_around_predicted_labels_do_not_count(gold, save, good):
    spaced = {doc_id: {f" {label}\u00a0": score for label, score in labels.items()} for doc_id, labels in good.items()}
    reporter = SilentReporter()
    one, other = read_predictions(save(good, "1.parquet"), gold), read_predictions(save(spaced, "2.parquet"), gold, reporter)
    assert np.array_equal(one.top, other.top)
    assert (other.unknown, reporter.warnings) == (0, [])
    good["1"]["a "] = 0.2
    assert "label a is predicted twice" in refused(save(good), gold).what


def test_many_unknown_labels_are_warned_of_with_near_names(gold, save, good):
    good["3"] = {"nowhere": 0.9, "B": 0.8, "b": 0.7}
    good["4"] = {"nowhere": 0.3, "y": 0.2}
    reporter = SilentReporter()
    path = save(good)
    assert read_predictions(path, gold, reporter).unknown == 3
    assert reporter.warnings == [
        "3 of 10 predicted labels are unknown to the corpus: each keeps its rank and counts as wrong "
        f"({path}: 'nowhere', 'B'; for 'nowhere': one of a, b, c, d, x, y)"
    ]


@pytest.mark.parametrize(("known", "warned"), [(19, False), (18, True)])
def test_up_to_a_twentieth_of_unknown_labels_is_no_matter(gold, save, known, warned):
    cells = [(doc_id, label) for doc_id in gold.doc_ids for label in "abcd"][:known]
    rows = {doc_id: {label: 0.5 for other, label in cells if other == doc_id} for doc_id in gold.doc_ids}
    rows["5"]["nowhere"] = 0.5
    reporter = SilentReporter()
    assert read_predictions(save(rows), gold, reporter).unknown == 1
    assert bool(reporter.warnings) == warned


def test_no_known_label_at_all_is_an_error(gold, save, good):
    titles = {doc_id: {f"{label}1": score for label, score in labels.items()} for doc_id, labels in good.items()}
    error = refused(save(titles), gold)
    assert error.what == "none of the 8 predicted labels is known to the corpus: 'a1', 'b1', 'c1', 'd1'"
    assert "for 'a1': did you mean 'a'?" in error.expected


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz"])
def test_lists_in_the_cells_of_a_csv_are_read(gold, tmp_path, save, good, name):
    write_table(pl.read_parquet(save(good)), tmp_path / name)
    one, other = read_predictions(save(good), gold), read_predictions(tmp_path / name, gold)
    assert np.array_equal(one.top, other.top)
    assert np.array_equal(one.scores, other.scores)


def test_numbers_and_empty_cells_are_read_from_a_csv(gold, tmp_path):
    (tmp_path / "x.csv").write_text('doc_id,labels,scores\n1,"[""a"", 7]","[1, 0.5]"\n2,,\n3,[],[]\n4,[],[]\n5,[],[]\n')
    assert read_predictions(tmp_path / "x.csv", gold).top.tolist() == [[0, -1], [-1, -1], [-1, -1], [-1, -1], [-1, -1]]


@pytest.mark.parametrize(
    ("labels", "scores", "what"),
    [
        ("a;b", "[1, 2]", "the labels are not a list of strings in JSON: a;b"),
        ('"[1.5]"', "[1]", "the labels are not a list of strings in JSON: [1.5]"),
        ('"[""\\ud83d""]"', "[1]", "the labels are not a list of strings in JSON"),
        ('"[""a""]"', "0.5", "the scores are not a list of numbers in JSON: 0.5"),
        ('"[""a""]"', '"[""high""]"', "the scores are not a list of numbers in JSON"),
    ],
)
def test_cells_of_a_csv_that_hold_no_lists_are_named(gold, tmp_path, labels, scores, what):
    path = tmp_path / "x.tsv"
    path.write_text(f"doc_id\tlabels\tscores\n1\t{labels}\t{scores}\n")
    error = refused(path, gold)
    assert what in error.what
    assert error.where == f"{path}, column {'scores' if 'scores' in what else 'labels'}, row 1"


def test_true_and_false_are_no_scores(gold, tmp_path):
    lines = [json.dumps({"doc_id": name, "labels": ["a"], "scores": [True]}) for name in gold.doc_ids]
    (tmp_path / "p.jsonl").write_text("\n".join(lines))
    assert "true or false" in refused(tmp_path / "p.jsonl", gold).what


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
