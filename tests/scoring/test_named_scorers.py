"""What a scorer answers is what was promised, or the scorer is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from plant_cli.api import Choice, DataError
from plant_cli.scoring.lexical import number_words
from plant_cli.scoring.scorers import NamedScorer, ScorerError, ask, check_scores


class Failing:
    """A scorer that can do nothing."""

    def score(self, *given: Any) -> Any:
        raise ValueError("no luck")

    explain = tensors = score


NAMED = NamedScorer(chosen=Choice(name="failing"), scorer=Failing(), views=1)  # type: ignore[arg-type]
ONE = number_words([["a", "text"]])


def test_a_scorer_that_fails_is_named_whatever_it_is_asked() -> None:
    with pytest.raises(ScorerError, match="'failing' fails: ValueError: no luck") as caught:
        NAMED.score(ONE, 3)
    assert caught.value.name == "failing"
    assert "--allow-missing leaves 'failing' out" in caught.value.todo
    with pytest.raises(ScorerError, match="'failing' cannot say why: ValueError: no luck"):
        NAMED.explain(ONE, [0])


def test_errors_with_a_message_of_their_own_and_shortages_pass() -> None:
    def fail(error: Exception) -> None:
        raise error

    own = DataError("bad", where="here", expected="good", todo="mend")
    for error in (own, MemoryError()):
        with pytest.raises(type(error)):
            ask("failing", "fails", lambda error=error: fail(error))  # type: ignore[misc]


def test_views_and_shapes_are_as_promised() -> None:
    scores = [csr_array(np.ones((1, 3), dtype=np.float32))]
    assert len(check_scores("a", lambda: scores, (1, 3))) == 1
    with pytest.raises(ScorerError, match="takes 1 views of documents, not 2"):
        check_scores("a", lambda: scores, (1, 3), views=2)
    with pytest.raises(ScorerError, match=r"gives scores \(1, 3\), not \(1, 4\)"):
        check_scores("a", lambda: scores, (1, 4))


def test_no_documents_have_no_scores() -> None:
    assert [scores.matrix.shape for scores in NAMED.score(number_words([]), 3)] == [(0, 3)]
