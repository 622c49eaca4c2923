"""The doctor's checks on this machine and on invented ones."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest

from plant_cli.api import NoOptions, PluginRecord
from plant_cli.commands import doctor
from plant_cli.registry import installed
from plant_cli.testing.contexts import make_context


def test_every_finding_that_warns_says_what_to_do() -> None:
    result = doctor.examine_machine(make_context(components=installed()), NoOptions())
    findings = result.data["findings"]
    assert {f["topic"] for f in findings} == {
        "system",
        "device",
        "precision",
        "package",
        "plugin",
        "feature",
    }
    assert all(f["todo"] for f in findings if f["state"] == "warn")
    assert [row[1] for row in result.tables[0].rows] == [f["name"] for f in findings]


def test_missing_packages_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "numpy>=1.26",
        "ghost-package>=2",
        'ghost-extra==0.1; extra == "haunted"',
        'pytest>=8; extra == "test"',
    ]
    monkeypatch.setattr(doctor, "requires", lambda name: lines)
    found = list(doctor.check_packages())
    assert [(f.name, f.state, f.todo) for f in found] == [
        ("numpy", "ok", ""),
        ("ghost-package", "warn", "pip install 'plant-cli'"),
        ("ghost-extra (extra haunted)", "warn", "pip install 'plant-cli[haunted]'"),
    ]
    assert found[0].found.endswith("(>=1.26)")
    monkeypatch.setattr(doctor, "package_version", lambda name: "1.2.0rc1")
    assert [(f.state, f.todo) for f in doctor.check_packages()][:1] == [
        ("warn", "pip install 'numpy>=1.26'")
    ]


def test_a_source_tree_that_was_never_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> Any:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "requires", refuse)
    assert [f.todo for f in doctor.check_packages()] == ["pip install ."]


def test_broken_plugins_are_findings() -> None:
    plugins = [
        PluginRecord(name="rose", components=(("loss", "thorn"),)),
        PluginRecord(name="weed", error="ImportError: no"),
    ]
    assert [(f.name, f.state) for f in doctor.check_plugins(plugins)] == [
        ("rose", "ok"),
        ("weed", "warn"),
    ]


def test_low_disk_and_memory_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 1024

    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: Usage)
    monkeypatch.setattr(doctor, "available_memory", lambda: 1024)
    warned = {f.name for f in doctor.check_system() if f.state == "warn"}
    assert {"free memory", "free disk here"} <= warned
