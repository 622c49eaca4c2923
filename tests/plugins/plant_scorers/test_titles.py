"""The scorer `titles`: whole documents, passages and beginnings, and the words that are alike."""

from __future__ import annotations

import math

import numpy as np
import pytest
from plant_scorers import TitlesOptions
from plant_scorers.titles import TitleScorer, fit

from plant_cli.api import Reason
from plant_cli.testing.scorer_checks import TITLES, TRAIN, read_sample, sample_scorer_input


def test_views_are_those_of_the_options() -> None:
    documents = read_sample(["fever " * 3 + "leg " * 40 + "nausea"])
    assert [
        len(fit(TitlesOptions(passage=p, lead=lead), sample_scorer_input()).scorer.score(documents))
        for p, lead in ((24, 12), (0, 0))
    ] == [
        3,
        1,
    ]
    whole, passage, lead = fit(
        TitlesOptions(passage=4, lead=2), sample_scorer_input()
    ).scorer.score(documents)
    assert lead.toarray()[0, 0] == pytest.approx(1, abs=1e-5)  # "fever fever" is the title
    assert passage.toarray()[0, 3] > whole.toarray()[0, 3] > 0  # nausea is named in one place
    assert lead.toarray()[0, 3] == 0


def test_a_label_without_a_title_is_never_listed_and_equal_titles_tie() -> None:
    [found] = fit(TitlesOptions(passage=0, lead=0), sample_scorer_input()).scorer.score(
        read_sample(["fever and a broken arm"])
    )
    row = found.toarray()[0]
    assert row[2] == 0
    assert row[0] == row[4] > 0
    assert row[1] > row[3]


def test_other_names_of_a_label_count_too() -> None:
    given = sample_scorer_input()
    names = read_sample(["fever", "pyrexia"])
    two = type(given)(**{**vars(given), "names": names, "label_of": np.array([0, 0])})
    [found] = fit(TitlesOptions(passage=0, lead=0), two).scorer.score(
        read_sample(["pyrexia", "fever"])
    )
    np.testing.assert_allclose(found.toarray()[:, 0], 1, atol=1e-5)


def test_pieces_are_counted_in_documents_and_titles_together() -> None:
    scorer = fit(TitlesOptions(), sample_scorer_input()).scorer
    assert isinstance(scorer, TitleScorer)
    titles = [title for title in TITLES if title]
    holding = sum("fever" in text for text in [*TRAIN, *titles])
    expected = math.log((len(TRAIN) + len(titles) + 1) / (holding + 1))
    assert scorer.idf[scorer.pieces.index("fever")] == pytest.approx(expected, rel=1e-6)


def test_reasons_show_the_title_and_the_words_that_are_alike() -> None:
    scorer = fit(TitlesOptions(), sample_scorer_input()).scorer
    assert isinstance(scorer, TitleScorer)
    found = scorer.explain(read_sample(["her armbroken and feverish"]), [0, 2])
    assert found == [Reason(text="“fever”: feverish", words=("feverish",)), Reason(text="")]


def test_reasons_name_no_words_of_other_documents() -> None:
    scorer = fit(TitlesOptions(), sample_scorer_input()).scorer
    both = read_sample(["feverish and fevers", "fever"])
    assert scorer.explain(both.take(np.array([0])), [0]) == [
        Reason(text="“fever”: feverish", words=("feverish",))
    ]
