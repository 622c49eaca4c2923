from __future__ import annotations

import contextlib
import tomllib
from importlib import import_module
from typing import get_args

import pytest
from builders import run_at

from plant_cli.api import UsageError
from plant_cli.api.specs import KINDS
from plant_cli.commands.command_options import PluginNewOptions
from plant_cli.registry import Registry
from plant_cli.testing.checklist import find_cases


def make(folder, **options):
    return run_at(folder / "run", "plugins new", flags={"plugins new": options})


def test_every_kind_can_be_begun():
    assert get_args(PluginNewOptions.model_fields["kind"].annotation) == tuple(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_plugin_passes_the_checks(kind, tmp_path, monkeypatch):
    name = f"new-{kind}"
    folder = tmp_path / "made"
    assert make(tmp_path, kind=kind, name=name, output=str(folder)).data["files"] == [
        "README.md",
        f"plant_new_{kind}.py",
        "pyproject.toml",
    ]
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    module = project["project"]["entry-points"]["plant"][name]
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"] == [f"{module}.py"]
    monkeypatch.syspath_prepend(str(folder))
    registry = Registry()
    registry.register(import_module(module), name=name)
    assert name in [spec.name for spec in registry.specs(KINDS[kind].spec)]
    for case in find_cases(name, registry):
        if (
            case.check.__name__ != "needs_no_terminal"
        ):  # another process, which does not see the folder
            with contextlib.suppress(pytest.skip.Exception):
                case.check(case.spec)


def test_what_is_there_stays_and_a_wrong_name_is_told(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(UsageError):
        make(tmp_path, kind="signal", name="dice", output=str(tmp_path / "mine"))
    for name in ("My Signal", "cli", "scorers"):  # plant_cli is plant itself
        with pytest.raises(UsageError, match="cannot name a component"):
            make(tmp_path, kind="signal", name=name, output=str(tmp_path / "other"))
    assert not (tmp_path / "other").exists()
