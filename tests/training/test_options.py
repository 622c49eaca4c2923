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
    [({}, False), ({"init": "random"}, False), ({"init": "random", "anchor": 1.0}, True), ({"shortlist": "words"}, True)],
)
def test_relevance_is_needed_for_the_anchor_and_a_shortlist(options: dict[str, object], needed: bool) -> None:
    assert FinetuneOptions(**options).needs_relevance is needed


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, ["words", "titles", "neighbours", "linear"]),
        ({"init": "random"}, []),
        ({"init": "random", "network": False}, ["words", "titles", "neighbours", "linear"]),
        ({"scorers": ["words, titles", "linear"]}, ["words", "titles", "linear"]),
        ({"scorers": "none"}, []),
        ({"scorers": [{"name": "linear", "strength": 1.0}]}, ["linear"]),
    ],
)
def test_scorers_by_name_and_by_default(given: dict[str, object], names: list[str]) -> None:
    assert [chosen.name for chosen in FinetuneOptions(**given).chosen_scorers] == names


@pytest.mark.parametrize(
    ("given", "message"),
    [({"network": False, "scorers": ["none"]}, "neither a network nor a scorer"), ({"scorers": ["words,words"]}, "named twice")],
)
def test_scorers_that_make_no_model_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FinetuneOptions(**given)
