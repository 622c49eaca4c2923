"""A family as data: options, names of models, and which maps get adapters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from plant_cli.api import MachineSection
from plant_cli.network import huggingface
from plant_cli.network.profile import ATTENTION, Family

FAMILY = Family(name="some", summary="Some.", models={"small": "org/small@abc", "large": "org/large"}, other_targets={"odd": ("qkv",)})


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []
    monkeypatch.setattr(huggingface, "HuggingFaceBackbone", lambda profile, options: seen.append(profile))
    return seen


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("small", ("org/small", "abc")),
        ("org/small", ("org/small", "abc")),
        ("large", ("org/large", None)),
        ("else/where", ("else/where", None)),
    ],
)
def test_models_go_by_short_name_id_or_folder(model: str, found: tuple[str, str | None]) -> None:
    assert FAMILY.find(model) == found


def test_the_first_model_is_the_default_and_all_are_named_in_the_help() -> None:
    options = FAMILY.options()
    assert options().model == "org/small"
    assert "large (org/large)" in str(options.model_fields["model"].description)
    with pytest.raises(ValidationError, match="extra"):
        options(nonsense=1)


def test_languages_are_those_of_the_spec() -> None:
    assert FAMILY.spec().languages is None
    assert Family(name="any", summary="Any.", languages=("en", "de")).spec().languages == ("en", "de")


def test_a_family_without_models_must_be_told_one() -> None:
    with pytest.raises(ValidationError, match="model"):
        Family(name="any", summary="Any.").options()()


def test_what_is_asked_for_goes_before_what_the_family_says(loaded: list[Any], tmp_path: Path) -> None:
    options = FAMILY.options()
    FAMILY.load(options(), MachineSection(device="cpu"))
    FAMILY.load(options(revision="def", adapter_targets=["qkv"]), MachineSection())
    FAMILY.load(options(model=str(tmp_path)), MachineSection())
    first, second, third = loaded
    assert (first.model, first.revision, first.device) == ("org/small", "abc", "cpu")
    assert (first.adapter_targets, first.other_targets) == (ATTENTION, {"odd": ("qkv",)})
    assert (second.revision, second.adapter_targets, second.other_targets) == ("def", ("qkv",), {})
    assert (third.model, third.revision) == (str(tmp_path), None)
