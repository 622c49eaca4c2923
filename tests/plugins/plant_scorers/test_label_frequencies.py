"""The scorer `frequencies`: the order of labels by their documents, a document's own counted
out.
"""

from __future__ import annotations

import numpy as np
from plant_scorers.label_frequencies import fit

from plant_cli.api import NoOptions
from plant_cli.testing.scorer_checks import SCORER_TEXTS, read_sample, sample_scorer_input


def test_every_text_has_the_same_scores_and_a_label_its_documents() -> None:
    data = sample_scorer_input()
    scorer = fit(NoOptions(), data).scorer
    [found] = scorer.score(read_sample(SCORER_TEXTS))
    expected = np.log1p(data.gold.toarray().sum(axis=0))
    np.testing.assert_allclose(found.toarray(), np.tile(expected, (len(SCORER_TEXTS), 1)), 1e-6)
    assert scorer.explain(read_sample(["fever"]), [0])[0].text == "41.7% of train"


def test_a_document_that_is_left_out_does_not_count_for_its_own_labels() -> None:
    data = sample_scorer_input()
    [left_out] = fit(NoOptions(), data).left_out or []
    gold = data.gold.toarray()
    expected = np.log1p(gold.sum(axis=0) - gold[data.rows])
    np.testing.assert_allclose(left_out.toarray(), expected, 1e-6)
