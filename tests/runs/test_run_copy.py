import shutil
from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import ArtefactError
from plant_cli.data.files import read_json, write_json
from plant_cli.runs import run_copy
from plant_cli.runs.folder import Run
from plant_cli.runs.run_copy import copy_run


def make_run(path: Path, *, bound: bool) -> None:
    run = Run.create(path)
    (path / "corpus").mkdir()
    (path / "corpus" / "splits.json").write_text("{}")
    (path / "mig").mkdir()
    (path / "recipe.yaml").write_text("data: {path: x}")
    if bound:
        run.bind(data_hash="d", label_hash="l", sources={})


def test_a_copy_has_the_corpus_and_what_is_read_and_vanishes_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, bound=True)
    for stage in ("mig", "finetune", "finetune-b"):
        (run / stage / "checkpoints").mkdir(parents=True, exist_ok=True)
        write_json(run / stage / "stage.json", {"status": "interrupted" if stage == "finetune" else "done"})
    with copy_run(run) as copy:
        names = {"corpus", "run.json", "recipe.yaml", "mig", "finetune", "finetune-b", "cache"}
        assert {entry.name for entry in copy.iterdir()} == names
        assert Run.open(copy).header.data_hash == "d"
        assert {stage for stage in ("mig", "finetune", "finetune-b") if (copy / stage).is_symlink()} == {"mig", "finetune-b"}
        (copy / "finetune" / "stage.json").write_text("the copy's")
        (copy / "finetune" / "model").touch()
        assert (copy / "cache").resolve() == run / "cache"
        assert (copy / "finetune" / "checkpoints").resolve() == run / "finetune" / "checkpoints"
    assert not copy.exists()
    assert read_json(run / "finetune" / "stage.json", "the record") == {"status": "interrupted"}
    assert [entry.name for entry in (run / "finetune").iterdir() if entry.name == "model"] == []
    assert (run / "mig" / "checkpoints").is_dir()


def test_before_the_first_stage_there_is_but_the_cache_to_come(tmp_path: Path) -> None:
    run = tmp_path / "none yet"
    with copy_run(run) as copy:
        assert Run.open(copy).header.data_hash is None
        assert {entry.name for entry in copy.iterdir()} == {"run.json", "cache"}
        assert not run.exists()
        (run / "cache").mkdir(parents=True)
        (copy / "cache" / "states").touch()
    assert (run / "cache" / "states").exists()


def test_a_stage_that_is_replaced_while_it_is_looked_at_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    make_run(run, bound=True)
    write_json(run / "mig" / "stage.json", {"status": "done"})

    def replaced(path: Path, what: str) -> Any:
        path.unlink()
        return read_json(path, what)

    monkeypatch.setattr(run_copy, "read_json", replaced)
    with copy_run(run) as copy:
        assert not (copy / "mig").exists()


def test_a_damaged_record_is_told(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, bound=True)
    (run / "mig" / "stage.json").write_text("{")
    with pytest.raises(ArtefactError, match="damaged"), copy_run(run):
        pass


def test_a_file_that_cannot_be_copied_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    make_run(run, bound=True)
    copyfile = shutil.copyfile

    def refuse(source: Path, target: Path) -> Path:
        if source.name == "splits.json":
            raise PermissionError(13, "Permission denied", str(source))
        return copyfile(source, target)

    monkeypatch.setattr(shutil, "copyfile", refuse)
    with pytest.raises(PermissionError) as refused, copy_run(run):
        pass
    assert refused.value.filename == str(run / "corpus" / "splits.json")
