"""Systems and thresholds by name, and where their files are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from plant_cli.api import ArtefactError, ComponentError, DataError, MetricSpec, SilentReporter, UsageError
from plant_cli.data.corpus_files import CorpusRecord, SplitRecord
from plant_cli.data.files import hash_strings, write_json
from plant_cli.data.records import StageRecord
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.systems import (
    Location,
    choose_families,
    file_system,
    find_chosen,
    find_judged_tag,
    find_seeds,
    find_system,
    find_thresholds,
    locate,
    other_system,
    read_system,
)
from plant_cli.registry import installed
from plant_cli.runs.folder import Run
from plant_cli.scoring.decisions import THRESHOLDS, write_thresholds
from plant_cli.testing.contexts import FakeContext, make_context


def record(labels_hash="l"):
    split = SplitRecord(documents=5, ids_hash="i", texts_hash="t", labels_hash=labels_hash)
    return CorpusRecord(source={}, files=[], splits={"train": split, "test": split}, held_out=[], label_hash="h")


@pytest.mark.parametrize("name", ["finetune-plain", "predict-plain", "eval-plain", "plain"])
def test_a_folder_or_a_tag_of_the_run(name):
    assert locate(name) == Location(name=name, tag="plain")


def test_a_folder_without_a_tag():
    assert locate("finetune") == Location(name="finetune")


def test_a_file(save, good):
    path = save(good)
    assert locate(str(path)) == Location(name=str(path), file=path)
    assert file_system(path).threshold == 0.5
    assert file_system(path, 0.1).origin == "threshold 0.1 given"


def test_another_run_or_a_folder_of_one(tmp_path):
    assert locate(str(tmp_path)) == Location(name=str(tmp_path), run=tmp_path)
    folder = tmp_path / "finetune-x"
    folder.mkdir()
    write_json(tmp_path / "run.json", {})
    assert locate(str(folder)) == Location(name=str(folder), run=tmp_path, tag="x")


def test_a_system_of_the_run_knows_its_files_and_where_its_threshold_is_from(run, good, gold):
    predict, finetune = run.add_system("plain", good, threshold=0.25)
    system = read_system("plain", predict, lambda: finetune, gold)
    assert (system.name, system.threshold, system.folder) == ("plain", 0.25, predict)
    assert system.predictions == predict / "predictions.parquet"
    assert system.origin == "threshold 0.25 tuned on validation micro-F1"
    assert system.cut == {}


def test_a_threshold_next_to_zero_is_not_shown_as_zero(run, good, gold):
    predict, finetune = run.add_system("x", good, threshold=4.126e-10)
    assert read_system("x", predict, lambda: finetune, gold).origin.startswith("threshold 4.13e-10 ")


@pytest.mark.parametrize("tag", [None, "x"])
def test_a_system_of_another_run(run, good, gold, tmp_path, tag):
    run.add_system(tag, good, threshold=0.3)
    ours = tmp_path / "ours"
    record().write(ours)
    record().write(run.path / "corpus")
    assert other_system("it", run.path, tag, gold, ours).threshold == 0.3

    record("other labels").write(run.path / "corpus")
    with pytest.raises(DataError, match="another gold test split: other gold labels of the documents"):
        other_system("it", run.path, tag, gold, ours)


def test_another_run_without_predictions_says_how_to_make_them(gold, tmp_path):
    with pytest.raises(ArtefactError, match="'it' holds no predictions") as caught:
        other_system("it", tmp_path, "x", gold, tmp_path)
    assert caught.value.todo == f"plant predict --run {tmp_path} --tag x"


def test_an_ensemble_has_thresholds_beside_its_predictions_and_no_seeds(tmp_path):
    predict, finetune = tmp_path / "predict-both", tmp_path / "finetune"
    predict.mkdir()
    assert find_thresholds(predict, lambda: finetune) == finetune
    write_json(predict / "thresholds.json", {})
    assert find_thresholds(predict, lambda: finetune) == predict
    write_json(tmp_path / "run.json", {"format": 1, "created": "now", "plant_version": "0"})
    assert find_seeds(tmp_path, "both", 3) == {}


LABELS = ("a", "b")
HASH = hash_strings(LABELS)
GOLD = Gold(
    split="test",
    doc_ids=["1", "2"],
    matrix=csr_array(np.eye(2, dtype=np.int64)),
    labels=LABELS,
    titles=[None, None],
    train_counts=np.array([3, 4]),
    train_documents=5,
    indexed=2,
    label_hash=HASH,
    hash="gold",
)


@dataclass(frozen=True)
class LabelsOnly:
    """A corpus of which only the labels are asked for."""

    labels: LabelsOnly.Names

    class Names(tuple[str, ...]):
        """Label ids with the hash of their order."""

        hash = HASH


CORPUS = LabelsOnly(LabelsOnly.Names(LABELS))


def write_stage(path: Path, stage: str, tag: str | None = None) -> Path:
    """A finished stage of a run."""
    folder = (Run.open(path) if path.exists() else Run.create(path)).stage(stage, tag)
    folder.begin(StageRecord(stage=stage, tag=tag, status="done", options={}, sections={}, seed=0, started="2026-01-01T00:00:00"))
    return folder.path


def write_system(path: Path, tag: str | None, threshold: float) -> dict[str, Path]:
    """A trained system of a run with its predictions; what a context finds under the names of its folders."""
    trained, predicted = write_stage(path, "finetune", tag), write_stage(path, "predict", tag)
    write_thresholds(trained, threshold, "micro-F1", HASH)
    frame = pl.DataFrame({"doc_id": ["1", "2"], "labels": [["a"], ["b"]], "scores": [[0.9], [0.8]]})
    frame.write_parquet(predicted / "predictions.parquet")
    return {folder.name: folder for folder in (trained, predicted)}


def context(path: Path, tag: str | None = None, **values: object) -> FakeContext:
    """That of a stage which judges."""
    return make_context(path / ("eval" if tag is None else f"eval-{tag}"), tag=tag, corpus=CORPUS, reporter=SilentReporter(), **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "tag"), [("finetune", None), ("finetune-plain", "plain"), ("plain", "plain")])
def test_a_system_of_this_run_is_predicted_first(name: str, tag: str | None, tmp_path: Path) -> None:
    asking = context(tmp_path / "run", inputs=write_system(tmp_path / "run", tag, 0.25))
    found = find_system(asking, name, GOLD)
    assert asking.ensured == ["predict" if tag is None else f"predict-{tag}"]
    assert (found.name, found.threshold, found.folder) == (name, 0.25, asking.inputs[asking.ensured[0]])


def test_a_file_is_taken_with_the_threshold_given(tmp_path: Path) -> None:
    path = write_system(tmp_path / "run", None, 0.25)["predict"] / "predictions.parquet"
    asking = context(tmp_path / "run")
    assert find_system(asking, str(path), GOLD, 0.7).threshold == 0.7
    assert asking.ensured == []


def test_a_system_that_was_not_trained_is_told(tmp_path: Path) -> None:
    write_stage(tmp_path / "run", "finetune")
    with pytest.raises(ArtefactError, match="no finished 'predict-plain'"):
        find_system(context(tmp_path / "run"), "finetune-plain", GOLD)


@pytest.mark.parametrize(
    ("tags", "tag", "judged"),
    [
        ([None], None, None),
        ([None, "plain"], "plain", "plain"),
        ([None, "plain"], "gate", None),  # of no system: that without a tag is judged again
        ([None, "seed2"], "gate-seed2", "seed2"),
        ([None, "plain"], "plain-seed2", "plain-seed2"),  # a seed that was not trained: never another one
        ([None], "seed2", "seed2"),
        (["plain"], "gate", "gate"),  # there is none without a tag
    ],
)
def test_which_system_a_tag_judges(tags: list[str | None], tag: str | None, judged: str | None, tmp_path: Path) -> None:
    for one in tags:
        write_stage(tmp_path / "run", "finetune", one)
    write_stage(tmp_path / "run", "mig")
    asking = context(tmp_path / "run", tag)
    assert find_judged_tag(asking) == judged
    assert len(asking.reporter.notes) == (judged != tag)


def test_a_tag_nearly_that_of_a_system_is_a_mistake(tmp_path: Path) -> None:
    write_stage(tmp_path / "run", "finetune")
    write_stage(tmp_path / "run", "finetune", "baseline")
    with pytest.raises(UsageError, match="no system of this run has the tag 'baselin'") as caught:
        find_judged_tag(context(tmp_path / "run", "baselin"))
    assert caught.value.expected == "did you mean 'baseline'?"


@pytest.mark.parametrize("name", ["thresholds-strict", "strict"])
def test_chosen_thresholds_by_folder_or_tag(name: str, tmp_path: Path) -> None:
    write_thresholds(tmp_path, [0.3, 0.6], "per-label", HASH, [0.1, 0.2])
    found = find_chosen(context(tmp_path / "run", inputs={"thresholds-strict": tmp_path}), name)
    assert (list(found.value), list(found.review)) == ([0.3, 0.6], [0.1, 0.2])  # type: ignore[arg-type]


def test_chosen_thresholds_in_a_file(tmp_path: Path) -> None:
    write_thresholds(tmp_path, 0.4, "micro-F1", HASH)
    assert find_chosen(context(tmp_path / "run"), str(tmp_path / THRESHOLDS)).value == 0.4


def test_thresholds_that_are_missing_or_of_other_labels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="no finished 'thresholds'"):
        find_chosen(context(tmp_path / "run"), "thresholds")
    write_thresholds(tmp_path, [0.3, 0.6], "per-label", hash_strings(["b", "a"]))
    with pytest.raises(ArtefactError, match="label order"):
        find_chosen(context(tmp_path / "run"), str(tmp_path / THRESHOLDS))


def test_families_get_their_options_and_those_without_have_their_defaults() -> None:
    found = {spec.name: options for spec, options in choose_families(make_context(components=installed()), {"propensity": {"a": 0.5}})}
    assert list(found) == [spec.name for spec in installed().specs(MetricSpec)]
    assert found["propensity"].model_dump()["a"] == 0.5
    assert all(not options.model_fields_set for name, options in found.items() if name != "propensity")


def test_options_of_a_family_that_does_not_exist_are_refused() -> None:
    with pytest.raises(ComponentError, match="oops"):
        choose_families(make_context(components=installed()), {"oops": {}})
