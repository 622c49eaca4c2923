"""Predictions in the shapes that other tools write: the same content gives the same figures,
whatever the shape.
"""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from plant_cli.api import DataError, SilentReporter
from plant_cli.evaluation.aligned import read_predictions
from plant_cli.evaluation.foreign import Numbering
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.reliability import measure_reliability

IDS = ["001", "002", "003"]
LABELS = ["Mann, Thomas", "atrial fibrillation", "http://x/7", "I10"]
TEXTS = {"001": ["I10", "http://x/7"], "002": ["atrial fibrillation"], "003": []}
SCORES = {"001": [0.9, 0.25], "002": [0.5], "003": []}
TOP, SCORED = [[3, 2], [1, -1], [-1, -1]], [[0.9, 0.25], [0.5, -np.inf], [-np.inf, -np.inf]]
DENSE = np.array([[0, 0, 0.25, 0.9], [0, 0.5, 0, 0], [0, 0, 0, 0]])


@pytest.fixture
def made():
    """Gold of three documents and four labels."""
    return Gold(
        split="test",
        doc_ids=IDS,
        labels=LABELS,
        titles=["A writer", None, "Hypertension", None],
        matrix=csr_array(DENSE > 0).astype(np.int64),
        train_counts=np.array([1, 5, 6, 700]),
        train_documents=1000,
        indexed=4,
        label_hash="labels",
        hash="gold",
    )


def read(tmp_path, made, content, name="p.txt", **options):
    path, reporter = tmp_path / name, SilentReporter()
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_predictions(path, made, reporter, **options), reporter


def joined(values, by, none=""):
    return by.join(map(str, values)) or none


def lists(text, number=str):
    """A CSV with a cell of labels and one of scores, each written by a function."""
    quoted = (
        (
            document,
            *(
                '"' + text(values).replace('"', '""') + '"'
                for values in (TEXTS[document], [number(s) for s in SCORES[document]])
            ),
        )
        for document in IDS
    )
    return "doc_id,labels,scores\n" + "".join(",".join(row) + "\n" for row in quoted)


def pairs(form, *, head="", ids=IDS, number=str):
    return head + "".join(
        form.format(d=d, l=label, s=number(score), r=rank)
        for d in ids
        for rank, (label, score) in enumerate(zip(TEXTS[d], SCORES[d], strict=True), 1)
    )


def lines(form, by, *, ids=False):
    rows = (
        [form.format(l=label, s=s) for label, s in zip(TEXTS[d], SCORES[d], strict=True)]
        for d in IDS
    )
    return "".join(
        (f"{d}\t" if ids else "") + by.join(row) + "\n" for d, row in zip(IDS, rows, strict=True)
    )


def comma(score):
    return str(score).replace(".", ",")


def wide(head, rows, by=","):
    return by.join(head) + "\n" + "".join(by.join(map(str, row)) + "\n" for row in rows)


OBJECTS = {
    d: [{"label": n, "score": s} for n, s in zip(TEXTS[d], SCORES[d], strict=True)] for d in IDS
}
RUN = {d: dict(zip(TEXTS[d], SCORES[d], strict=True)) for d in IDS}
QUOTED = ["doc_id", '"Mann, Thomas"', *LABELS[1:]]
RANKS = [
    ["001", "I10", 0.9, "http://x/7", 0.25],
    ["002", "atrial fibrillation", 0.5, "", ""],
    ["003", "", "", "", ""],
]
SHAPES = {
    "pairs without the document that has none": pairs("{d},{l},{s}\n", head="doc_id,label,score\n"),
    "pairs under other names, with a column beside": pairs(
        "{r};{d};{l};{s}\n", head=";Note ID;Predicted label;Probability\n"
    ),
    "pairs without a header": pairs("{d}\t{l}\t{s}\n"),
    "pairs without a header, comma": pairs("{d},{l},{s}\n"),
    "pairs with decimal commas": pairs("{d};{l};{s}\n", head="doc_id;label;score\n", number=comma),
    "pairs with a rank, from the last": "rank,doc_id,label,score\n2,001,http://x/7,0.25\n1,001,I10,0.9\n1,002,atrial "
    "fibrillation,0.5\n",
    "a TREC run with tabs": pairs("{d}\tQ0\t{l}\t{r}\t{s}\tme\n"),
    "lists in JSON": lists(json.dumps, float),
    "lists of Python": lists(repr, float),
    "tuples of Python": lists(lambda values: repr(tuple(values)), float),
    "cells with ;": lists(lambda values: ";".join(map(str, values))),
    "cells with | and decimal commas": lists(lambda values: "|".join(map(str, values)), comma),
    "lists as numpy prints them": lists(lambda values: str(np.array(values)), float),
    "label:score in cells": "doc_id;predictions\n001;I10:0.9|http://x/7:0.25\n002;atrial fibrillation:0.5\n003;\n",
    "label (score) in cells": "doc_id\tsuggestions\n001\tI10 (0.9), http://x/7 (0,25)\n002\tatrial fibrillation "
    "(0.50)\n003\t\n",
    "objects in JSON lines": "".join(
        json.dumps({"doc_id": d, "predictions": OBJECTS[d]}) + "\n" for d in IDS
    ),
    "scores by label in JSON lines": "".join(
        json.dumps({"doc_id": d, "predictions": RUN[d]}) + "\n" for d in IDS
    ),
    "lists of pairs": "doc_id\tpreds\n"
    + "".join(f"{d}\t{list(zip(TEXTS[d], SCORES[d], strict=True))}\n" for d in IDS),
    "a JSON object of scores": json.dumps(RUN, indent=1),
    "a JSON object without the empty document": json.dumps({d: RUN[d] for d in IDS[:2]}),
    "lists of objects in order": json.dumps([OBJECTS[d] for d in IDS]),
    "Annif's batch": json.dumps(
        [
            {"document_id": d, "results": [{"uri": n, "score": s} for n, s in RUN[d].items()]}
            for d in IDS
        ],
        indent=1,
    ),
    "label:score by tabs": lines("{l}:{s}", "\t"),
    "label:score by ;": lines("{l}:{s}", ";"),
    "label:score by tabs behind ids": lines("{l}:{s}", "\t", ids=True),
    "a column for each label": wide(QUOTED, [[d, *row] for d, row in zip(IDS, DENSE, strict=True)]),
    "a column for each label, empty cells, other columns": wide(
        ["id", "words", *LABELS],
        [["001", 7, "", "", 0.25, 0.9], ["002", 9, "", 0.5, "", ""], ["003", 2, "", "", "", ""]],
        "\t",
    ),
    "a column for each label, in order": wide(LABELS, DENSE, ";"),
    "a column for each rank": wide(
        ["doc_id", "top1", "p1", "top2", "p2"], [[r[0], r[1], r[2], r[3], r[4]] for r in RANKS]
    ),
    "ranks, then scores": wide(
        ["id", "label_1", "label_2", "score_1", "score_2"],
        [[r[0], r[1], r[3], r[2], r[4]] for r in RANKS],
        "\t",
    ),
    "label and score of each rank": wide(
        ["ID", "top1_label", "top1_score", "top2_label", "top2_score"], RANKS, ";"
    ),
    "a column for each document": wide(
        ["label", *IDS], [[f'"{label}"', *row] for label, row in zip(LABELS, DENSE.T, strict=True)]
    ),
    "a column for each label with a prefix": wide(
        ["doc_id", *(f'"p_{label}_test"' for label in LABELS)],
        [[d, *row] for d, row in zip(IDS, DENSE, strict=True)],
    ),
    "scores under a name of its own": pairs("{d},{l},{s}\n", head="doc_id,label,Punkte\n"),
    "missing values and numpy's texts": "doc_id\tpreds\tprobs\n"
    "001\t[np.str_('I10'), np.str_('http://x/7')]\t[0.9 0.25]\n002\t('atrial "
    "fibrillation',)\t[0.5]\n003\tnan\tnan\n",
    "UTF-16 of a spreadsheet": pairs("{d}\t{l}\t{s}\n", head="doc_id\tlabel\tscore\n").encode(
        "utf-16"
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_has_the_same_content(shape, made, tmp_path):
    found, reporter = read(tmp_path, made, SHAPES[shape])
    assert (found.top.tolist(), found.scores.tolist(), found.unknown) == (TOP, SCORED, 0)
    assert reporter.warnings == []
    assert " is read as " in reporter.notes[0]


RANKED = {
    "pairs": pairs("{d},{l}\n", head="doc_id,label\n"),
    "pairs by rank": "doc_id,rank,label\n001,2,http://x/7\n001,1,I10\n002,1,atrial fibrillation\n",
    "a TREC run with one score": "001 Q0 http://x/7 2 1 me\n001 Q0 I10 1 1 me\n",
    "cells": "doc_id,labels\n001,I10;http://x/7\n002,atrial fibrillation\n003,\n",
    "ranks": wide(
        ["doc_id", "1", "2"],
        [["001", "I10", "http://x/7"], ["002", "atrial fibrillation", ""], ["003", "", ""]],
    ),
    "lines": "I10\thttp://x/7\natrial fibrillation\n\n",
    "JSON": json.dumps(TEXTS),
    "JSON lines": "".join(json.dumps({"doc_id": d, "labels": TEXTS[d]}) + "\n" for d in IDS),
}


@pytest.mark.parametrize("shape", RANKED)
def test_lists_without_scores_are_ranked_by_place_and_never_probabilities(shape, made, tmp_path):
    found, reporter = read(tmp_path, made, RANKED[shape])
    assert found.top[0].tolist() == [3, 2]
    assert found.top[1].tolist() == ([-1, -1] if "TREC" in shape else [1, -1])
    assert found.scores[0].tolist() == [3, 2]  # all above any threshold of probabilities
    assert any(
        "holds no scores" in note and "counts as assigned" in note for note in reporter.notes
    )
    assert measure_reliability(found, made, replicates=0, level=0.95, seed=0) is None


def test_fasttext_and_files_without_labels_in_them(made, tmp_path):
    three = replace(made, labels=["a", "b", "c", "d"])
    found, _ = read(tmp_path, three, "__label__d 0.9 __label__c 0.25\n__label__b 0.5\n\n")
    assert (found.top.tolist(), found.scores.tolist()) == (TOP, SCORED)
    order = Numbering(labels=LABELS)
    np.savetxt(tmp_path / "dense.txt", DENSE, delimiter=",")
    np.save(tmp_path / "dense.npy", DENSE)
    for name in ("dense.txt", "dense.npy"):
        found = read_predictions(tmp_path / name, made, numbering=order)
        assert (found.top.tolist(), found.scores.tolist()) == (TOP, SCORED)
    np.save(
        tmp_path / "labels.npy",
        np.array([["I10", "http://x/7"], ["atrial fibrillation", "I10"], ["I10", "Mann, Thomas"]]),
    )
    assert read_predictions(tmp_path / "labels.npy", made).top.tolist() == [[3, 2], [1, 3], [3, 0]]
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="the array cannot be read"):
        read_predictions(tmp_path / "objects.npy", made)


@pytest.mark.parametrize(
    "content",
    [
        "doc_id,label,score\n001,3,0.9\n001,2,0.25\n002,1,0.5\n",
        '{"001": {"3": 0.9, "2": 0.25}, "002": {"LABEL_1": 0.5}}',
        '[[{"label": "LABEL_3", "score": 0.9}, {"label": "LABEL_2", "score": 0.25}], [{"label": '
        '"LABEL_1", "score": 0.5}], []]',
        '{"doc_id": "001", "labels": [3, 2], "scores": [0.9, 0.25]}\n{"doc_id": "002", "labels": '
        '[1], "scores": [0.5]}\n'
        '{"doc_id": "003", "labels": [], "scores": []}\n',
    ],
)
def test_numbers_of_labels_in_any_shape(content, made, tmp_path):
    found, _ = read(tmp_path, made, content, numbering=Numbering(labels=LABELS))
    assert (found.top.tolist(), found.scores.tolist()) == (TOP, SCORED)


def test_a_folder_of_annif(made, tmp_path):
    for document in IDS[:2]:
        rows = zip(TEXTS[document], SCORES[document], strict=True)
        (tmp_path / f"{document}.annif").write_text(
            "".join(f"<{label}>\tA title\t{score}\n" for label, score in rows)
        )
        (tmp_path / f"{document}.txt").write_text("a text")
        (tmp_path / f"{document}.key").write_text("I10\n")
    reporter = SilentReporter()
    found = read_predictions(tmp_path, made, reporter)
    assert (found.top.tolist(), found.scores.tolist()) == (TOP, SCORED)
    assert reporter.notes[-1].startswith("1 of 3 documents have no row")


def test_gold_beside_predictions_is_never_taken_for_them(made, tmp_path):
    for gold in ("labels", "label", "true_labels", "gold", "y_true"):
        content = (
            f"doc_id,{gold},predicted,score\n001,I10,http://x/7,0.9\n002,atrial "
            "fibrillation,I10,0.8\n"
        )
        assert read(tmp_path, made, content)[0].top.tolist() == [[2], [3], [-1]], gold


def test_scores_that_rank_nothing_and_lists_that_are_all_empty_are_told(made, tmp_path):
    _, reporter = read(
        tmp_path,
        made,
        wide(QUOTED, [["001", 1, 0, 1, 0], ["002", 0, 1, 0, 0], ["003", 0, 0, 0, 1]]),
    )
    assert "every score is 1" in reporter.warnings[0]
    _, reporter = read(
        tmp_path,
        made,
        "".join(json.dumps({"doc_id": d, "labels": [], "scores": []}) + "\n" for d in IDS),
    )
    assert "holds no predictions" in reporter.warnings[0]


@pytest.mark.parametrize(
    ("written", "cause"),
    [
        (["1", "2"], "leading zeros: '1' in the file, '001' in the corpus"),
        (["1.0", "2.0"], "more than one thing: '1.0' in the file, '001' in the corpus"),
        (
            ["001.txt", "002.txt"],
            "the ending of a file name: '001.txt' in the file, '001' in the corpus",
        ),
        (
            ["notes/001", "notes/002"],
            "what stands before the last slash, colon or #: 'notes/001' in the file, '001' in "
            "the corpus",
        ),
    ],
)
def test_ids_that_were_changed_on_the_way_are_told_with_an_example(written, cause, made, tmp_path):
    for content in (
        "doc_id,label,score\n" + "".join(f"{one},I10,0.5\n" for one in written),
        "".join(
            json.dumps({"doc_id": one, "labels": ["I10"], "scores": [0.5]}) + "\n"
            for one in written
        ),
        json.dumps({one: {"I10": 0.5} for one in written}),
    ):
        with pytest.raises(DataError) as caught:
            read(tmp_path, made, content)
        assert cause in caught.value.expected


@pytest.mark.parametrize(
    ("label", "cause"),
    [
        ("i10", "capital letters: 'i10' in the file, 'I10' in the corpus"),
        ("atrial_fibrillation", "blanks, underscores or dashes"),
        ("<http://x/7>", "quotes or brackets around them"),
        ("7", "what stands before the last slash, colon or #"),
        ("Hypertension", "'Hypertension' is the title of 'http://x/7'"),
        ("I1.0", "points"),
        ("I10.0", "zeros behind the point"),
    ],
)
def test_labels_that_were_changed_on_the_way_are_told_with_an_example(label, cause, made, tmp_path):
    content = "".join(
        json.dumps({"doc_id": d, "labels": [label], "scores": [0.5]}) + "\n" for d in IDS
    )
    with pytest.raises(DataError) as caught:
        read(tmp_path, made, content)
    assert cause in caught.value.expected
    _, reporter = read(tmp_path, made, content.replace(json.dumps(label), '"I10"', 2))
    assert cause in reporter.warnings[0]


def test_a_score_that_is_no_number_is_named_by_row_and_cell(made, tmp_path):
    for score, row in (("high", 2), ("1,5", 2), ("90%", 2)):
        with pytest.raises(DataError, match=f"the score '{score}' is no number") as caught:
            read(tmp_path, made, f'doc_id;label;score\n001;I10;0.9\n002;I10;"{score}"\n')
        assert caught.value.where.endswith(f"p.txt, row {row}, column score")
    _, reporter = read(tmp_path, made, SHAPES["pairs with decimal commas"])
    assert any("decimal commas: '0,9' in row 1 is 0.9" in note for note in reporter.notes)


def test_the_form_of_unicode(made, tmp_path):
    composed = replace(made, labels=["Müller", *LABELS[1:]])
    with pytest.raises(DataError) as caught:
        read(tmp_path, composed, "doc_id,label,score\n001,Mu\u0308ller,0.5\n")
    assert "the form of Unicode" in caught.value.expected


def test_parquet_of_objects_and_of_a_column_for_each_label(made, tmp_path):
    pl.DataFrame({"doc_id": IDS, "predictions": [OBJECTS[d] for d in IDS]}).write_parquet(
        tmp_path / "o.parquet"
    )
    pl.DataFrame({"doc_id": IDS, **dict(zip(LABELS, DENSE.T.tolist(), strict=True))}).write_parquet(
        tmp_path / "w.parquet"
    )
    for name in ("o.parquet", "w.parquet"):
        found = read_predictions(tmp_path / name, made)
        assert (found.top.tolist(), found.scores.tolist()) == (TOP, SCORED)
