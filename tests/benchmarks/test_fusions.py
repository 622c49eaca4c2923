"""Title match and fusions, by hand on a few documents."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from tests.benchmarks.fusions import (
    SCALES,
    STEEPNESS,
    Fusion,
    fit_fusion,
    fuse,
    gather,
    list_best,
    match_titles,
    squash,
)

BOTH = {"left": [[(0, 4.0), (2, 1.0)], [(1, 0.5)]], "right": [[(2, 0.2), (1, 0.1)], []]}
LISTS = list(BOTH.values())


def test_a_document_that_holds_a_title_has_its_label_first() -> None:
    train = [
        "a cough and a fever",
        "a cough",
        "a fever",
        "a broken bone",
        "a broken arm and a bone",
    ]
    found = match_titles(
        train, ["broken bone", None, "fever", "cough"], ["the fever rises", "he coughs", "xyz"]
    )
    assert [row[0][0] for row in found[:2]] == [2, 3]
    assert all(
        label != 1 for row in found for label, _ in row
    )  # nothing matches a label without a title
    assert all(0 < score < 1.001 for row in found for _, score in row)
    assert found[2] == []


def test_the_best_of_a_row_come_first_and_equal_ones_by_label() -> None:
    scores = csr_array(np.array([[0.0, 1.0, 3.0, 1.0], [0.0, 0.0, 0.0, 0.0]]))
    assert list_best(scores) == [[(2, 3.0), (1, 1.0), (3, 1.0)], []]


def test_signed_distances_become_positive_in_the_same_order() -> None:
    assert squash([[(3, 2.0), (1, 0.0), (0, -2.0)], []]) == [
        [
            (3, pytest.approx(1 / (1 + np.exp(-2 * STEEPNESS)))),
            (1, 0.5),
            (0, pytest.approx(1 / (1 + np.exp(2 * STEEPNESS)))),
        ],
        [],
    ]


def test_scores_are_shares_of_the_best_and_ranks_count_from_one() -> None:
    shares, ranks = gather(LISTS, None), gather(LISTS, 10)
    assert shares.labels.tolist() == ranks.labels.tolist() == [[0, 1, 2], [1, -1, -1]]
    assert shares.said.tolist() == [[[1, 0, 0.25], [1, 0, 0]], [[0, 0.5, 1], [0, 0, 0]]]
    np.testing.assert_allclose(
        ranks.said, [[[1 / 11, 0, 1 / 12], [1 / 11, 0, 0]], [[0, 1 / 12, 1 / 11], [0, 0, 0]]]
    )


def test_a_fusion_lists_what_any_of_its_tools_with_a_weight_lists() -> None:
    assert fuse(Fusion(("left", "right"), None, (8, 2), 0.0), BOTH) == [
        [(0, 8.0), (2, 4.0), (1, 1.0)],
        [(1, 8.0)],
    ]
    assert fuse(Fusion(("left", "right"), None, (0, 10), 0.0), BOTH) == [[(2, 10.0), (1, 5.0)], []]


def test_weights_have_the_best_precision_of_all() -> None:
    draw = np.random.default_rng(3)
    gold = csr_array((draw.random((40, 30)) < 0.1).astype(float))
    noisy = {
        name: list_best(csr_array(gold * strength + draw.random((40, 30))))
        for name, strength in (("good", 0.5), ("poor", 0.2))
    }
    found = fit_fusion(("good", "poor"), noisy, gold)

    def precision(fusion: Fusion) -> float:
        return float(
            np.mean(
                [
                    [gold[document, label] for label, _ in row[:5]]
                    for document, row in enumerate(fuse(fusion, noisy))
                ]
            )
        )

    every = [
        precision(Fusion(found.tools, scale, (share, 10 - share), 0.0))
        for scale in SCALES
        for share in range(11)
    ]
    assert found.precision == pytest.approx(precision(found))
    assert found.precision == pytest.approx(max(every))
    assert found.precision > max(every[0], every[10])  # both together are better than each
    assert sum(found.weights) == 10


def test_a_label_without_a_score_is_no_hit() -> None:
    lists = {"first": [[(5, 1.0)]], "second": [[(4, 1.0)]]}
    found = fit_fusion(("first", "second"), lists, csr_array(np.eye(6)[[4]]))
    assert found.precision == pytest.approx(0.2)
    assert found.weights[1] > 0
