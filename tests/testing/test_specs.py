"""Checks of what every component owes. A right component passes, a wrong one is stopped with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plant_cli.api import Options, Spec, StageSpec, option
from plant_cli.testing import checklist as specs
from plant_cli.testing.checklist import checks_of


class Silent(Options):
    quiet: int = option(1)


class Contradictory(Options):
    depth: int = option(0, "How deep.", ge=1)


class Required(Options):
    depth: int = option(help="How deep.")


def test_what_every_component_owes(stopped: Callable[[Any, Any, str], None]) -> None:
    good = Spec(name="deep-hole", summary="A hole.", options=Required)
    for check in checks_of(Spec):
        check(good)
    stopped(specs.name_is_kebab_case, Spec(name="Deep_hole", summary="A hole."), "kebab-case")
    stopped(specs.summary_is_one_sentence, Spec(name="hole", summary="a hole"), "full stop")
    stopped(specs.summary_is_one_sentence, Spec(name="hole", summary="x" * 200 + "."), "201 characters")
    stopped(specs.every_option_has_help, Spec(name="hole", summary="A hole.", options=Silent), "quiet")
    lost = StageSpec(name="hole", summary="A hole.", run="plant_cli.api.functions:dig")
    stopped(specs.named_functions_can_be_imported, lost, "run of 'hole': .*has no attribute 'dig'")
    stopped(specs.defaults_are_valid, Spec(name="hole", summary="A hole.", options=Contradictory), "depth")
    with pytest.raises(pytest.skip.Exception, match="needs depth"):
        specs.default_options(good)
