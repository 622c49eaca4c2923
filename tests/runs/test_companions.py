from pathlib import Path

import pytest

from plant_cli.runs.companions import companion_of, process_count, process_rank
from plant_cli.runs.folder import Run


def make_run(path: Path, *, bound: bool) -> None:
    run = Run.create(path)
    (path / "corpus").mkdir()
    (path / "corpus" / "splits.json").write_text("{}")
    (path / "mig").mkdir()
    (path / "recipe.yaml").write_text("data: {path: x}")
    if bound:
        run.bind(data_hash="d", label_hash="l", sources={})


def test_a_companion_has_the_corpus_but_no_stage_and_vanishes(tmp_path: Path) -> None:
    make_run(tmp_path / "run", bound=True)
    with companion_of(tmp_path / "run") as companion:
        assert {entry.name for entry in companion.iterdir()} == {"corpus", "run.json", "recipe.yaml"}
        assert Run.open(companion).header.data_hash == "d"
        (companion / "mig").mkdir()
    assert not companion.exists()
    assert {entry.name for entry in (tmp_path / "run").iterdir()} == {"corpus", "run.json", "recipe.yaml", "mig"}


def test_a_corpus_that_is_still_being_prepared_is_left_alone(tmp_path: Path) -> None:
    make_run(tmp_path / "run", bound=False)
    for run in (tmp_path / "run", tmp_path / "none yet"):
        with companion_of(run) as companion:
            assert list(companion.iterdir()) == []


def test_the_launcher_says_which_process_this_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert (process_rank(), process_count()) == (0, 1)
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert (process_rank(), process_count()) == (2, 4)
