"""Specs, their functions, their kinds, and the hooks that register them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy
import pytest

from plant_cli.api import (
    BackboneSpec,
    LossSpec,
    PluginError,
    PluginRecord,
    Result,
    ShortlistSpec,
    Spec,
    StageSpec,
    hookimpl,
)
from plant_cli.api.hooks import ENTRY_POINT_GROUP, HOOK_SPECS, HOOKS
from plant_cli.api.specs import KINDS, TABLE, kind_of
from plant_cli.testing.checklist import checks_of


def _run(context: Any, options: Any) -> Result:
    return Result()


def test_a_stage_takes_all_general_flags_and_an_action_those_it_names() -> None:
    stage = StageSpec(name="dig", summary="Dig.", run=_run)
    action = StageSpec(name="dig show", summary="Show.", run=_run, writes=False, takes=("force",))
    assert [stage.accepts(flag) for flag in ("tag", "force", "resume")] == [True, True, True]
    assert [action.accepts(flag) for flag in ("tag", "force", "resume")] == [False, True, False]


def test_a_plugin_with_an_error_is_broken() -> None:
    assert PluginRecord(name="rose").state == "ok"
    assert PluginRecord(name="weed", error="ImportError: no").state == "broken"


def test_names_hooks_and_classes_are_unique() -> None:
    for values in (
        [k.name for k in TABLE],
        [k.plural for k in TABLE],
        [k.spec for k in TABLE],
        [k.hook for k in TABLE],
    ):
        assert len(set(values)) == len(TABLE)


def test_every_kind_has_a_hook_and_checks() -> None:
    assert list(HOOKS) == [kind.hook for kind in TABLE]
    for kind in TABLE:
        assert getattr(HOOK_SPECS, kind.hook).__doc__ == kind.summary
        assert len(checks_of(kind.spec)) > 0


def test_a_spec_belongs_to_its_kind() -> None:
    class OddBackboneSpec(BackboneSpec):
        pass

    assert kind_of(OddBackboneSpec) is KINDS["backbone"]
    assert kind_of(StageSpec) is KINDS["stage"]
    with pytest.raises(TypeError, match="Spec is not the spec of any kind"):
        kind_of(Spec)


def test_pluggy_calls_each_hook_of_a_plugin() -> None:
    manager = pluggy.PluginManager(ENTRY_POINT_GROUP)
    manager.add_hookspecs(HOOK_SPECS)
    for name, kind in HOOKS.items():
        module = ModuleType(f"plugin_{kind.name}")
        vars(module)[name] = hookimpl(
            lambda found=kind.name: [Spec(name=found, summary="A.")], specname=name
        )
        manager.register(module)
    manager.check_pending()
    for name, kind in HOOKS.items():
        assert [[spec.name for spec in found] for found in getattr(manager.hook, name)()] == [
            [kind.name]
        ]


def test_a_hook_by_itself_registers_nothing() -> None:
    for name in HOOKS:
        assert list(getattr(HOOK_SPECS, name)()) == []


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StageSpec:
    """A stage whose function is in a module that is not imported yet."""
    (tmp_path / "late_spade.py").write_text(
        "from plant_cli.api import Result\ndef dig(context, options):\n    return "
        "Result(data=(context, options))\n",
        "utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "late_spade", raising=False)
    return StageSpec(name="dig", summary="Dig.", run="late_spade:dig")


def test_the_module_is_imported_when_the_function_is_called(spec: StageSpec) -> None:
    context: Any = "context"
    assert "late_spade" not in sys.modules
    result: Any = spec.run(context, "options")
    assert result.data == ("context", "options")
    assert "late_spade" in sys.modules


def test_a_callable_is_kept_as_it_is(spec: StageSpec) -> None:
    def run(context: Any, options: Any) -> Result:
        return Result()

    assert vars(replace(spec, run=run))["run"] is run
    assert replace(spec, summary="Again.").run == spec.run


@pytest.mark.parametrize(
    ("name", "said"),
    [("late_spade:bury", "no attribute 'bury'"), ("late_rake:dig", "No module named 'late_rake'")],
)
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
