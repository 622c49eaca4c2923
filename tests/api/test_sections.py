from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from plant_cli.api import DataSection, MachineSection, Options, option


def test_paths_that_lead_somewhere_become_absolute_and_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.csv").touch()
    given = DataSection(path="data.csv", titles="hub:titles", text_column="body")
    located = given.located()
    assert (located.path, located.titles, located.text_column) == (str(tmp_path / "data.csv"), "hub:titles", "body")
    assert located.located() == located
    assert given.path == "data.csv"
    assert DataSection().located() == DataSection()


@pytest.mark.parametrize("name", ["cuda:x", "cpu:-1", "cpu:", "cpu: 0", "mps:abc", "gpu", "tpu", ""])
def test_a_mistyped_device_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="auto, cpu, mps, cuda, or a numbered device such as cuda:1"):
        MachineSection(device=name)


def test_of_a_list_only_what_is_a_path_and_exists_is_located(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Compared(Options):
        systems: list[str] = option(path=True)
        name: str = option("data.csv")

    monkeypatch.chdir(tmp_path)
    for name in ("data.csv", "finetune"):
        Path(name).touch()
    located = Compared(systems=["finetune", "./finetune", "data.csv", "gone.csv", "baseline"]).located()
    assert located.systems == ["finetune", str(tmp_path / "finetune"), str(tmp_path / "data.csv"), "gone.csv", "baseline"]
    assert located.name == "data.csv"
