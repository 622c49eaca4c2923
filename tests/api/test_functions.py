"""Functions that a spec names are imported when they are called."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import LossSpec, PluginError, Result, ShortlistSpec, StageSpec


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StageSpec:
    """A stage whose function is in a module that is not imported yet."""
    (tmp_path / "late_spade.py").write_text("def dig(context, options):\n    return (context, options)\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "late_spade", raising=False)
    return StageSpec(name="dig", summary="Dig.", run="late_spade:dig")


def test_the_module_is_imported_when_the_function_is_called(spec: StageSpec) -> None:
    context: Any = "context"
    assert "late_spade" not in sys.modules
    result: Any = spec.run(context, "options")
    assert result == ("context", "options")
    assert "late_spade" in sys.modules


def test_a_callable_is_kept_as_it_is(spec: StageSpec) -> None:
    def run(context: Any, options: Any) -> Result:
        return Result()

    assert replace(spec, run=run).run is run
    assert replace(spec, summary="Again.").run == spec.run


@pytest.mark.parametrize(("name", "said"), [("late_spade:bury", "no attribute 'bury'"), ("late_rake:dig", "No module named 'late_rake'")])
def test_what_cannot_be_imported_is_named(spec: StageSpec, name: str, said: str) -> None:
    context: Any = None
    with pytest.raises(PluginError, match=said) as caught:
        replace(spec, run=name).run(context, None)
    assert caught.value.where == name


def test_a_text_of_another_form_is_refused(spec: StageSpec) -> None:
    with pytest.raises(TypeError, match=r"'late_spade\.dig' names no function"):
        replace(spec, run="late_spade.dig")


def test_a_required_function_must_be_there_and_others_may_be_left_out() -> None:
    with pytest.raises(TypeError, match="build"):
        LossSpec(name="rose", summary="A rose.", stage="label")
    assert ShortlistSpec(name="rose", summary="A rose.", build="late_spade:dig").most is None
