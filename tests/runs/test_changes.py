from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from plant_cli.api import ArtefactError, Options, option
from plant_cli.data.files import hash_file
from plant_cli.data.records import StageRecord
from plant_cli.runs.changes import (
    find_stage_changes,
    find_stale_inputs,
    hash_source,
    hash_sources,
    refuse_changed_sources,
    stage_key,
    trace_stale,
)
from plant_cli.runs.folder import Run

Make = Callable[..., StageRecord]
SECTIONS = {
    "data": {"path": "a.csv", "text_column": "text"},
    "machine": {"seed": 0, "device": "cpu", "threads": 2},
}


def test_what_changed_is_said_key_by_key(run: Run, make_record: Make) -> None:
    record = make_record(options={"k": 5, "score": {"name": "mig", "base": 2}}, sections=SECTIONS)
    assert (
        find_stage_changes(record, {"k": 5, "score": {"name": "mig", "base": 2}}, SECTIONS, run)
        == []
    )
    now = {**SECTIONS, "machine": {**SECTIONS["machine"], "seed": 1, "precision": "bf16"}}
    assert find_stage_changes(record, {"k": 6, "score": {"name": "mig", "base": 10}}, now, run) == [
        "k was 5 and is now 6",
        "score.base was 2 and is now 10",
        "machine.precision was None and is now 'bf16'",
        "machine.seed was 0 and is now 1",
    ]


def test_where_it_ran_or_lay_is_no_change(run: Run, make_record: Make) -> None:
    record = make_record(sections=SECTIONS)
    moved = {
        "data": {"path": "/b/a.csv", "text_column": "text"},
        "machine": {"seed": 0, "device": "cuda", "threads": 8},
    }
    assert find_stage_changes(record, {}, moved, run) == []
    assert stage_key(record, "d") == stage_key(make_record(sections=moved), "d")


def test_the_file_of_rows_that_cannot_be_read_is_no_change(run: Run, make_record: Make) -> None:
    """Its path becomes absolute once it exists: a stage must not refuse what it wrote itself."""
    record = make_record(sections={"data": {"text_column": "text", "rejects": "bad.tsv"}})
    for named in ("/here/bad.tsv", None):
        assert (
            find_stage_changes(record, {}, {"data": {"text_column": "text", "rejects": named}}, run)
            == []
        )
        assert stage_key(record, "d") == stage_key(
            make_record(sections={"data": {"text_column": "text", "rejects": named}}), "d"
        )


def test_the_key_depends_on_all_that_decides(make_record: Make) -> None:
    keys = {
        stage_key(make_record(), "d"),
        stage_key(make_record(), "e"),
        stage_key(make_record("finetune"), "d"),
        stage_key(make_record(tag="x"), "d"),
        stage_key(make_record(options={"k": 1}), "d"),
        stage_key(make_record(inputs={"mig": "0"}), "d"),
        stage_key(make_record(sections=SECTIONS), "d"),
    }
    assert len(keys) == 7


def test_inputs_made_anew_or_removed_are_stale(run: Run, make_record: Make) -> None:
    mig = run.stage("mig")
    mig.begin(make_record())
    (mig.path / "a").write_text("1")
    mig.finish(make_record(status="done", outputs=mig.hash_outputs()))
    reader = make_record("finetune", inputs={"mig": mig.output_hash(mig.require(""))})
    assert find_stale_inputs(reader, run) == []
    (mig.path / "a").write_text("2")
    mig.finish(make_record(status="done", outputs=mig.hash_outputs()))
    assert find_stale_inputs(reader, run) == ["its input 'mig' has changed"]
    mig.write(make_record(status="failed"))
    assert find_stale_inputs(reader, run) == ["its input 'mig' is no longer there"]


def test_a_source_with_other_contents_is_refused_and_a_moved_one_is_not(
    run: Run, tmp_path: Path
) -> None:
    source = tmp_path / "d.csv"
    source.write_text("a")
    run.bind(
        data_hash="d",
        label_hash="l",
        sources={str(source): hash_file(source), str(tmp_path / "gone.csv"): "0"},
    )
    refuse_changed_sources(run)
    source.write_text("b")
    with pytest.raises(ArtefactError, match="the corpus has changed") as caught:
        refuse_changed_sources(run)
    assert str(source) in caught.value.where
    assert "run.json" in caught.value.where


def test_what_is_out_of_date_is_traced_through_all_stages_between(
    run: Run, make_record: Make
) -> None:
    inputs: dict[str, str] = {}
    for name in ("mig", "finetune", "predict"):
        folder = run.stage(name)
        folder.begin(make_record(name))
        (folder.path / "out.txt").write_text(name)
        record = make_record(name, status="done", inputs=inputs, outputs=folder.hash_outputs())
        folder.finish(record)
        inputs = {name: folder.output_hash(record)}
    assert trace_stale("predict", run) == {}
    (run.path / "mig" / "edits.yaml").write_text("deny")
    assert trace_stale("predict", run) == {"finetune": ["its input 'mig' has changed"]}
    (run.path / "finetune" / "more.txt").write_text("more")
    assert list(trace_stale("predict", run)) == ["finetune", "predict"]
    assert trace_stale("mig", run) == trace_stale("nothing", run) == {}


def test_a_system_of_its_own_tag_makes_a_judgement_of_the_untagged_one_stale(
    run: Run, make_record: Make
) -> None:
    def finish(stage: str, tag: str | None = None) -> str:
        folder = run.stage(stage, tag)
        folder.path.mkdir()
        folder.write(make_record(stage, tag, status="done"))
        return folder.output_hash(make_record(stage, tag))

    inputs = {"predict": finish("predict")}
    judged = [
        make_record("eval", "b", inputs=inputs),
        make_record("thresholds", "b-seed2", inputs=inputs),
    ]
    others = [
        make_record("eval", inputs=inputs),
        make_record("thresholds", "b", inputs=inputs, options={"system": "finetune"}),
    ]
    assert not any(find_stale_inputs(record, run) for record in [*judged, *others])
    finish("finetune", "b")
    assert [find_stale_inputs(record, run) for record in judged] == 2 * [
        ["it judged 'predict', but 'finetune-b' has its tag now"]
    ]
    assert not any(find_stale_inputs(record, run) for record in others)


class ReaderOptions(Options):
    systems: list[str] = option([], "Systems.", path=True)
    order: str | None = option(None, "A file.", path=True)
    name: str = option("a.txt", "No path.")


def test_files_are_hashed_and_what_is_no_path_or_not_there_is_not(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    options = ReaderOptions(
        systems=["finetune", str(tmp_path / "a.txt"), str(tmp_path / "gone.txt")]
    )
    assert hash_sources(options, run.path) == {
        str(tmp_path / "a.txt"): hash_file(tmp_path / "a.txt")
    }
    assert (
        hash_sources(ReaderOptions(order=str(run.path)), run.path) == {}
    )  # its own stages are inputs


def test_another_run_is_what_its_system_left(tmp_path: Path, make_record: Make) -> None:
    other = Run.create(tmp_path / "other")
    assert hash_source(tmp_path / "nothing") is None
    seen = [hash_source(other.path)]
    unfinished = other.stage("finetune")
    unfinished.path.mkdir()
    unfinished.write(make_record("finetune", outputs={"x": "0"}))
    assert hash_source(other.path) == seen[0]
    for stage, tag in (("finetune", None), ("predict", None), ("predict", "b"), ("mig", None)):
        folder = other.stage(stage, tag)
        folder.path.mkdir(exist_ok=True)
        (folder.path / "x").write_text(stage)
        folder.write(make_record(stage, tag, status="done", outputs=folder.hash_outputs()))
        seen.append(hash_source(other.path))
    assert (
        len({*seen}) == 3
    )  # neither the tagged system nor the relevance is of the one without a tag
    assert hash_source(other.path / "finetune") == seen[-1]
    assert hash_source(other.path / "finetune-b") not in seen


def test_a_file_with_other_contents_makes_a_stage_stale(
    run: Run, tmp_path: Path, make_record: Make
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("a")
    record = make_record("eval", files={str(file): hash_file(file)})
    assert find_stale_inputs(record, run) == []
    assert stage_key(record, "d") != stage_key(make_record("eval"), "d")
    file.write_text("b")
    assert find_stale_inputs(record, run) == [f"the contents of '{file}' have changed"]
    file.unlink()
    assert find_stale_inputs(record, run) == []  # like a corpus that is no longer there
