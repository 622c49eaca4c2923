"""The scorer `neighbours`: the nearest training documents, whole and by their beginnings."""

from __future__ import annotations

import numpy as np
import pytest
from plant_scorers import NeighboursOptions
from plant_scorers.neighbours import NeighbourScorer, fit

from plant_cli.testing.scorer_checks import TRAIN, read_sample, sample_scorer_input


def test_a_training_document_is_its_own_nearest_neighbour_and_not_when_left_out() -> None:
    given = sample_scorer_input()
    fitted = fit(NeighboursOptions(neighbours=1, lead=0), given)
    [found] = fitted.scorer.score(read_sample(TRAIN))
    assert found.toarray()[4].nonzero()[0].tolist() == given.gold.toarray()[4].nonzero()[0].tolist()
    assert fitted.left_out is not None
    [left_out] = fitted.left_out
    other = given.gold.toarray()[[row for row in range(len(TRAIN)) if row != 4]]
    assert any((left_out.toarray()[2] == row).all() for row in other)


def test_beginnings_are_a_view_of_their_own() -> None:
    scorer = fit(NeighboursOptions(lead=3), sample_scorer_input()).scorer
    assert isinstance(scorer, NeighbourScorer)
    whole, lead = scorer.score(read_sample(["patient with fever and nothing else"]))
    assert (whole.toarray() != lead.toarray()).any()


def test_of_a_new_document_too_the_beginning_alone_is_compared_with_beginnings() -> None:
    scorer = fit(NeighboursOptions(lead=3), sample_scorer_input()).scorer
    long, short = (
        scorer.score(read_sample([text]))[1].toarray()
        for text in ("patient with fever and fracture", "patient with fever")
    )
    np.testing.assert_array_equal(long, short)


def test_reasons_name_training_documents_that_have_the_label() -> None:
    given = sample_scorer_input()
    reason = fit(NeighboursOptions(), given).scorer.explain(read_sample(["fever and cough"]), [0])[
        0
    ]
    assert not reason.words
    assert reason.text.startswith("similar to ")
    having = {given.doc_ids[row] for row in given.gold.toarray()[:, 0].nonzero()[0].tolist()}
    assert {
        part.split(" (")[0] for part in reason.text.removeprefix("similar to ").split(", ")
    } <= having


def test_a_name_counts_as_a_document_of_its_label() -> None:
    given = sample_scorer_input()
    title = (given.names.texts or ())[1]
    label, document = int(given.label_of[1]), read_sample([title])
    options = NeighboursOptions(neighbours=1, lead=0)
    scorer = fit(options, given).scorer
    assert scorer.score(document)[0].toarray()[0, label] == 1
    assert f"“{title}” (1.00)" in scorer.explain(document, [label])[0].text
    for changed in ({"names": False}, {"exact": len(TRAIN) - 1}):  # or too many documents
        without = fit(options.model_copy(update=changed), given).scorer
        assert "“" not in without.explain(document, [label])[0].text


@pytest.mark.parametrize("exact", [1, len(TRAIN)])
def test_a_document_alone_has_the_scores_it_has_among_others_and_its_words_add_up_to_them(
    exact: int,
) -> None:
    """Both where it is compared with all training documents and where rare terms name
    candidates.
    """
    scorer = fit(NeighboursOptions(exact=exact, neighbours=2, lead=3), sample_scorer_input()).scorer
    assert isinstance(scorer, NeighbourScorer)
    for row, together in enumerate(zip(*scorer.score(read_sample(TRAIN)), strict=True)):
        document = read_sample([TRAIN[row]])
        for one, view, credit in zip(
            together, scorer.score(document), scorer.credit(document, range(5)), strict=True
        ):
            np.testing.assert_allclose(view.toarray()[0], one.toarray(), atol=1e-6)
            np.testing.assert_allclose(credit.toarray().sum(axis=1), one.toarray(), atol=1e-5)
