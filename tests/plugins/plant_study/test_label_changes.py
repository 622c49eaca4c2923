"""What changed from one system to another, label by label and document by document."""

import pytest
from plant_study.label_changes import find_label_changes


@pytest.fixture
def compare(gold, lay):
    return lambda a, b, **options: find_label_changes(
        *(lay(given, convention="xmlrepo") for given in (a, b)), gold, **options
    )


def test_documents_by_harm(compare, good, bad):
    """Assigned at 0.5. Document 1 (gold a c): a c, then d a. 2 (b): b, then a. 3 (c x): c, then
    d. 4 (y): none. 5 (none): a, then none.
    """
    found = compare(good, bad)
    rows = found.documents.rows_by_key("doc_id", named=True, unique=True)
    assert list(rows) == ["1", "2", "3", "5"]
    assert [row["harm"] for row in rows.values()] == [2, 2, 2, -1]
    assert (rows["1"]["lost"], rows["1"]["wrong"]) == (["c"], ["d"])
    assert (rows["5"]["mended"], rows["5"]["gained"]) == (["a"], [])
    assert (rows["3"]["errors_a"], rows["3"]["errors_b"]) == (1, 3)  # x is missed by both
    assert found.unchanged == 1


def test_harm_adds_up_alike_over_documents_and_labels(compare, good, bad):
    found = compare(good, bad)
    assert (
        found.documents["harm"].sum()
        == found.labels["harm"].sum()
        == found.errors[1] - found.errors[0]
        == 5
    )
    rows = found.labels.rows_by_key("label", named=True, unique=True)
    assert next(iter(rows)) == "c"
    assert (rows["c"]["lost"], rows["c"]["F1_a"], rows["c"]["F1_b"]) == (2, 1.0, 0.0)
    assert (rows["a"]["wrong"], rows["a"]["mended"]) == (1, 1)


def test_the_other_way_round_is_the_opposite(compare, good, bad):
    there, back = compare(good, bad), compare(bad, good)
    assert back.documents["harm"].sum() == -there.documents["harm"].sum()
    assert sorted(map(len, back.documents["gained"])) == sorted(map(len, there.documents["lost"]))


def test_a_system_against_itself(compare, good):
    found = compare(good, good)
    assert (len(found.documents), len(found.labels), found.unchanged) == (0, 0, 5)


def test_the_first_k_labels_and_labels_that_the_corpus_does_not_know(compare, good):
    other = good | {"2": {"zzz": 0.9, "b": 0.7}}
    [row] = compare(good, other, k=1).documents.iter_rows(named=True)
    assert (row["doc_id"], row["lost"], row["wrong"], row["harm"]) == (
        "2",
        ["b"],
        [],
        2,
    )  # b is missed, the unknown label is wrong
    [row] = compare(good, other).documents.iter_rows(named=True)
    assert (row["harm"], row["lost"]) == (1, [])
    assert compare(good, other).errors == (3, 4)
