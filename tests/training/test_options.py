"""Options of the training stages: defaults that depend on how label tables start, and what needs relevance."""

from __future__ import annotations

import pytest

from plant_cli.training.training_options import LEAST_GAIN, PATIENCE, RATE_HEAD, FinetuneOptions, PretrainOptions


def test_help_and_default_come_from_one_place() -> None:
    assert RATE_HEAD.help == "Default: 0.0003 with planted label tables, 0.001 without."
    assert PATIENCE.help == "Default: 2 with planted label tables, all epochs without."
    assert (RATE_HEAD.choose(None, planted=True), RATE_HEAD.choose(None, planted=False), RATE_HEAD.choose(0.5, planted=True)) == (
        3e-4,
        1e-3,
        0.5,
    )
    assert PATIENCE.choose(None, planted=False) is None
    assert LEAST_GAIN.choose(None, planted=False) == 0 < LEAST_GAIN.choose(None, planted=True)
    assert RATE_HEAD.help in str(FinetuneOptions.model_fields["rate_head"].description)


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        ({}, False),
        ({"init": "random"}, False),
        ({"init": "random", "anchor": 1.0}, True),
        ({"shortlist": "words"}, True),
        ({"shortlist": "none"}, False),
    ],
)
def test_relevance_is_needed_for_the_anchor_and_a_shortlist(options: dict[str, object], needed: bool) -> None:
    assert FinetuneOptions(**options).needs_relevance is needed


@pytest.mark.parametrize(
    ("options", "regressed", "sizes", "epochs"),
    [
        ({}, True, (500, 7_189, 2_330), 5),  # 15,189 lists in an epoch, 69,900 wanted
        ({}, True, (5_585, 20_000, 7_849), 3),
        ({}, True, (50_000, 100_000, 200), 2),
        ({}, True, (10, 10, 5_000), 10),
        ({}, False, (5_585, 20_000, 7_849), 10),
        ({"labels_per_document": -1}, True, (5, 30, 5_000), 6),
        ({"epochs": 7}, True, (500, 7_189, 2_330), 7),
    ],
)
def test_epochs_of_stage_1_follow_the_lists_that_a_label_is_ranked_in(
    options: dict[str, object], regressed: bool, sizes: tuple[int, int, int], epochs: int
) -> None:
    documents, assignments, labels = sizes
    found = PretrainOptions(**options).choose_epochs(regressed=regressed, documents=documents, assignments=assignments, labels=labels)
    assert found == epochs


def test_queries_that_start_near_their_place_learn_more_slowly() -> None:
    assert PretrainOptions().choose_rate(regressed=True) < PretrainOptions().choose_rate(regressed=False)
    assert PretrainOptions(rate_attention=0.5).choose_rate(regressed=True) == 0.5
    assert PretrainOptions().regresses(able=True, titles=False)
    assert not PretrainOptions().regresses(able=True, titles=True)
    assert not PretrainOptions(start="random").regresses(able=True, titles=False)


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
    [({"network": False, "scorers": ["none"]}, "at least one scorer is needed"), ({"scorers": ["words,words"]}, "named twice")],
)
def test_scorers_that_make_no_model_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FinetuneOptions(**given)
