"""The table of kinds, and what follows from it."""

from __future__ import annotations

import pytest

from plant_cli.api import BackboneSpec, Spec, StageSpec
from plant_cli.api.hooks import HOOK_SPECS, HOOKS
from plant_cli.api.specs import KINDS, TABLE, kind_of
from plant_cli.testing.checklist import checks_of


def test_names_hooks_and_classes_are_unique() -> None:
    for values in ([k.name for k in TABLE], [k.plural for k in TABLE], [k.spec for k in TABLE], [k.hook for k in TABLE]):
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
