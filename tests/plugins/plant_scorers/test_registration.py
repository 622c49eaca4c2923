"""The registered scorers and their options; a fresh process imports nothing heavy for them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from plant_scorers import plant_register_scorers

from plant_cli.api import CreditingScorer
from plant_cli.testing import scorer_checks as scorers
from plant_cli.training.training_options import DEFAULT_SCORERS

SPECS = {spec.name: spec for spec in plant_register_scorers()}


def test_scorers_by_name() -> None:
    """The first four are the default of training."""
    assert list(SPECS) == ["words", "titles", "neighbours", "linear", "frequencies", "table"]
    assert tuple(SPECS)[:4] == DEFAULT_SCORERS
    assert [name for name, spec in SPECS.items() if spec.needs_relevance] == ["table"]
    assert [name for name, spec in SPECS.items() if spec.needs_names] == ["titles"]
    assert [name for name, spec in SPECS.items() if spec.zero_shot] == ["titles"]


@pytest.mark.parametrize("name", [name for name in SPECS if name != "frequencies"])  # has counts
def test_the_published_checks_see_that_arrays_are_forgotten(name: str) -> None:
    spec = SPECS[name]

    def forget(options: Any, tensors: Mapping[str, Any]) -> Any:
        return spec.load(
            options,
            {key: value * (0 if value.dtype.kind == "f" else 1) for key, value in tensors.items()},
        )

    with pytest.raises(AssertionError, match="other scores after loading"):
        scorers.what_was_learned_is_arrays(replace(spec, load=forget))


@pytest.mark.parametrize("name", list(SPECS))
def test_labels_are_explained_together_as_one_by_one(name: str) -> None:
    """Also labels twice, and none."""
    scorer, labels = (
        SPECS[name].fit(scorers.default_options(SPECS[name]), scorers.sample_scorer_input()).scorer,
        [2, 0, 1, 0],
    )
    for text in scorers.SCORER_TEXTS:
        alone, together = (scorers.read_sample([text]) for _ in range(2))
        assert scorer.explain(together, labels) == [
            scorer.explain(alone, [label])[0] for label in labels
        ]
        if not isinstance(scorer, CreditingScorer):
            continue
        for view, credit in enumerate(scorer.credit(together, labels)):
            one_by_one = np.concatenate(
                [scorer.credit(alone, [label])[view].toarray() for label in labels]
            )
            np.testing.assert_allclose(credit.toarray(), one_by_one, atol=1e-12)
        assert list(scorer.explain(together, [])) == []
        assert all(
            credit.shape == (0, len(together.vocabulary)) for credit in scorer.credit(together, [])
        )


def test_registering_imports_no_numerics() -> None:
    code = (
        "import sys, plant_scorers as p; p.plant_register_scorers(); print([m for m in "
        "('numpy', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
