"""Options of the training stages: defaults that depend on how label tables start, and what needs relevance."""

from __future__ import annotations

import pytest

from plant_cli.training.options import PATIENCE, RATE_HEAD, FinetuneOptions


def test_help_and_default_come_from_one_place() -> None:
    assert RATE_HEAD.help == "Default: 0.0003 with planted label tables, 0.001 without."
    assert PATIENCE.help == "Default: 2 with planted label tables, all epochs without."
    assert (RATE_HEAD.choose(None, planted=True), RATE_HEAD.choose(None, planted=False), RATE_HEAD.choose(0.5, planted=True)) == (
        3e-4,
        1e-3,
        0.5,
    )
    assert PATIENCE.choose(None, planted=False) is None
    assert RATE_HEAD.help in str(FinetuneOptions.model_fields["rate_head"].description)


@pytest.mark.parametrize(
    ("options", "needed"),
    [({}, True), ({"init": "random"}, False), ({"init": "random", "anchor": 1.0}, True), ({"lexical": False}, False)],
)
def test_relevance_is_needed_for_lexical_scores_and_the_anchor(options: dict[str, object], needed: bool) -> None:
    assert FinetuneOptions(**options).needs_relevance is needed
