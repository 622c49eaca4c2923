"""Systems and thresholds by name, and where their files are."""

import pytest

from plant_cli.api import (
    ArtefactError,
    ComponentError,
    DataError,
    MetricSpec,
    SilentReporter,
    UsageError,
)
from plant_cli.data.corpus_files import CorpusRecord, SplitRecord
from plant_cli.data.files import hash_strings, write_json
from plant_cli.data.records import StageRecord
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
from plant_cli.runs.changes import hash_source
from plant_cli.runs.folder import Run
from plant_cli.scoring.decisions import THRESHOLDS, write_thresholds
from plant_cli.testing.contexts import make_context
from tests.evaluation.conftest import Labels, TinyCorpus


def write_corpus(path, labels_hash="l"):
    split = SplitRecord(documents=5, ids_hash="i", texts_hash="t", labels_hash=labels_hash)
    CorpusRecord(
        source={}, files=[], splits={"train": split, "test": split}, held_out=[], label_hash="h"
    ).write(path)


def write_stage(path, stage, tag=None):
    """A finished stage of a run."""
    folder = (Run.open(path) if path.exists() else Run.create(path)).stage(stage, tag)
    folder.begin(
        StageRecord(
            stage=stage,
            tag=tag,
            status="done",
            options={},
            sections={},
            seed=0,
            started="2026-01-01T00:00:00",
        )
    )


def context(path, tag=None, **values):
    """That of a stage which judges."""
    return make_context(
        path / ("eval" if tag is None else f"eval-{tag}"),
        tag=tag,
        corpus=TinyCorpus(),
        reporter=SilentReporter(),
        **values,
    )


@pytest.mark.parametrize(
    "name", ["finetune-plain", "predict-plain", "eval-plain", "plain", "finetune"]
)
def test_a_folder_or_a_tag_of_the_run(name):
    assert locate(name) == Location(name=name, tag=None if name == "finetune" else "plain")


def test_a_file_and_another_run_or_a_folder_of_one(save, good, tmp_path):
    path, folder = save(good), tmp_path / "finetune-x"
    assert locate(str(path)) == Location(name=str(path), file=path)
    assert file_system(path).threshold == 0.5
    assert file_system(path, 0.1).origin == "threshold 0.1 given"
    assert locate(str(tmp_path)) == Location(name=str(tmp_path), run=tmp_path)
    folder.mkdir()
    write_json(tmp_path / "run.json", {})
    assert locate(str(folder)) == Location(name=str(folder), run=tmp_path, tag="x")


def test_a_system_of_the_run_knows_its_files_and_where_its_threshold_is_from(run, good, gold):
    predict, finetune = run.add_system("plain", good, threshold=0.25)
    system = read_system("plain", predict, lambda: finetune, gold)
    assert (system.name, system.threshold, system.folder, system.cut) == (
        "plain",
        0.25,
        predict,
        {},
    )
    assert system.predictions == predict / "predictions.parquet"
    assert system.origin == "threshold 0.25 tuned on validation micro-F1"
    predict, finetune = run.add_system("x", good, threshold=4.126e-10)
    assert read_system("x", predict, lambda: finetune, gold).origin.startswith(
        "threshold 4.13e-10 "
    )  # not shown as zero


@pytest.mark.parametrize("tag", [None, "x"])
def test_a_system_of_another_run(run, good, gold, tmp_path, tag):
    ours, todo = (
        tmp_path / "ours",
        f"plant predict --run {run.path}" + (f" --tag {tag}" if tag else ""),
    )
    with pytest.raises(ArtefactError, match="'it' holds no predictions") as caught:
        other_system("it", run.path, tag, gold, ours)
    assert caught.value.todo == todo
    run.add_system(tag, good, threshold=0.3)
    write_corpus(ours)
    write_corpus(run.path / "corpus")
    assert other_system("it", run.path, tag, gold, ours).threshold == 0.3
    write_corpus(run.path / "corpus", "other labels")
    with pytest.raises(
        DataError, match="another gold test split: other gold labels of the documents"
    ):
        other_system("it", run.path, tag, gold, ours)


def test_an_ensemble_has_thresholds_beside_its_predictions_and_no_seeds(tmp_path):
    predict, finetune = tmp_path / "predict-both", tmp_path / "finetune"
    predict.mkdir()
    assert find_thresholds(predict, lambda: finetune) == finetune
    write_json(predict / "thresholds.json", {})
    assert find_thresholds(predict, lambda: finetune) == predict
    write_json(tmp_path / "run.json", {"format": 1, "created": "now", "plant_version": "0"})
    assert find_seeds(tmp_path, "both", 3) == {}


@pytest.mark.parametrize(
    ("name", "tag"), [("finetune", None), ("finetune-plain", "plain"), ("plain", "plain")]
)
def test_a_system_of_this_run_is_predicted_first(name, tag, run, good, gold):
    predict, finetune = run.add_system(tag, good, threshold=0.25)
    asking = context(run.path, inputs={folder.name: folder for folder in (predict, finetune)})
    found = find_system(asking, name, gold)
    assert asking.ensured == [predict.name]
    assert (found.name, found.threshold, found.folder) == (name, 0.25, predict)


def test_a_file_is_taken_with_the_threshold_given(save, good, gold, tmp_path):
    asking = context(tmp_path / "run")
    assert find_system(asking, str(save(good)), gold, 0.7).threshold == 0.7
    assert asking.ensured == []


def test_a_system_that_was_not_trained_is_named(gold, tmp_path):
    write_stage(tmp_path / "run", "finetune")
    with pytest.raises(ArtefactError, match="no finished 'predict-plain'"):
        find_system(context(tmp_path / "run"), "finetune-plain", gold)


@pytest.mark.parametrize(
    ("tags", "tag", "judged"),
    [
        ([None], None, None),
        ([None, "plain"], "plain", "plain"),
        ([None, "plain"], "gate", None),  # of no system: that without a tag is judged again
        ([None, "seed2"], "gate-seed2", "seed2"),
        (
            [None, "plain"],
            "plain-seed2",
            "plain-seed2",
        ),  # a seed that was not trained: never another one
        ([None], "seed2", "seed2"),
        (["plain"], "gate", "gate"),  # there is none without a tag
    ],
)
def test_which_system_a_tag_judges(tags, tag, judged, tmp_path):
    for one in tags:
        write_stage(tmp_path / "run", "finetune", one)
    write_stage(tmp_path / "run", "mig")
    asking = context(tmp_path / "run", tag)
    assert find_judged_tag(asking) == judged
    assert len(asking.reporter.notes) == (judged != tag)


def test_a_tag_nearly_that_of_a_system_is_a_mistake(tmp_path):
    write_stage(tmp_path / "run", "finetune")
    write_stage(tmp_path / "run", "finetune", "baseline")
    with pytest.raises(UsageError, match="no system of this run has the tag 'baselin'") as caught:
        find_judged_tag(context(tmp_path / "run", "baselin"))
    assert caught.value.expected == "did you mean 'baseline'?"


def test_chosen_thresholds_by_folder_tag_or_file(tmp_path):
    asking = context(tmp_path / "run", inputs={"thresholds-strict": tmp_path})
    write_thresholds(
        tmp_path, [0.3, 0.6, 0.5, 0.5], "per-label", Labels().hash, [0.1, 0.2, 0.2, 0.2]
    )
    for name in ("thresholds-strict", "strict"):
        found = find_chosen(asking, name)
        assert (found.value.tolist(), found.review.tolist()) == (
            [0.3, 0.6, 0.5, 0.5],
            [0.1, 0.2, 0.2, 0.2],
        )
    write_thresholds(tmp_path, 0.4, "micro-F1", Labels().hash)
    assert find_chosen(asking, str(tmp_path / THRESHOLDS)).value == 0.4


def test_thresholds_that_are_missing_or_of_other_labels_are_refused(tmp_path):
    with pytest.raises(ArtefactError, match="no finished 'thresholds'"):
        find_chosen(context(tmp_path / "run"), "thresholds")
    write_thresholds(
        tmp_path, [0.3, 0.6, 0.5, 0.5], "per-label", hash_strings(["b", "a", "c", "d"])
    )
    with pytest.raises(ArtefactError, match="label order"):
        find_chosen(context(tmp_path / "run"), str(tmp_path / THRESHOLDS))


def test_families_get_their_options_and_those_without_have_their_defaults():
    asking = make_context(components=installed())
    found = {
        spec.name: options for spec, options in choose_families(asking, {"propensity": {"a": 0.5}})
    }
    assert list(found) == [spec.name for spec in installed().specs(MetricSpec)]
    assert found["propensity"].model_dump()["a"] == 0.5
    assert all(
        not options.model_fields_set for name, options in found.items() if name != "propensity"
    )
    with pytest.raises(ComponentError, match="oops"):
        choose_families(asking, {"oops": {}})


@pytest.mark.parametrize("name", ["nonsuch.parquet", "lists.TXT", "../elsewhere", "other/run"])
def test_a_file_that_is_not_there_is_no_tag(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nonesuch.parquet").touch()
    with pytest.raises(UsageError, match="no such file or folder") as caught:
        locate(name)
    assert ("did you mean 'nonesuch.parquet'" in caught.value.expected) == (
        name == "nonsuch.parquet"
    )
    assert locate("v1.2") == Location(name="v1.2", tag="v1.2")


def test_a_folder_of_suggestions_is_a_system_and_its_files_are_watched(tmp_path):
    (tmp_path / "d.annif").write_text("<a>\tA\t0.5\n")
    assert locate(str(tmp_path)) == Location(name=str(tmp_path), file=tmp_path)
    before = hash_source(tmp_path)
    (tmp_path / "d.annif").write_text("<a>\tA\t0.4\n")
    assert None not in {before, hash_source(tmp_path)}
    assert hash_source(tmp_path) != before
