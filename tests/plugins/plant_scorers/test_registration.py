"""The registered scorers and their options; a fresh process imports nothing heavy for them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from plant_scorers import plant_register_scorers

from plant_cli.api import ScorerSpec
from plant_cli.testing import scorer_checks as scorers
from plant_cli.testing.checklist import checks_of

SPECS = {spec.name: spec for spec in plant_register_scorers()}


def test_four_scorers_by_name() -> None:
    assert list(SPECS) == ["words", "titles", "neighbours", "linear"]
    assert [name for name, spec in SPECS.items() if spec.needs_names] == ["titles"]
    assert [name for name, spec in SPECS.items() if spec.zero_shot] == ["titles"]


@pytest.mark.parametrize("name", list(SPECS))
def test_each_passes_the_published_checks(name: str) -> None:
    spec = SPECS[name]
    for check in checks_of(ScorerSpec):
        check(spec)

    def forget(options: Any, tensors: Mapping[str, Any]) -> Any:
        return spec.load(options, {key: value * (0 if value.dtype.kind == "f" else 1) for key, value in tensors.items()})

    with pytest.raises(AssertionError, match="other scores after loading"):
        scorers.what_was_learned_is_arrays(replace(spec, load=forget))


def test_registering_imports_no_numerics() -> None:
    code = "import sys, plant_scorers as p; p.plant_register_scorers(); print([m for m in ('numpy', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
