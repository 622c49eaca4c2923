"""The ways to name a system, and the refusal of another gold split."""

import numpy as np
import pytest

from plant_cli.api import ArtefactError, DataError
from plant_cli.artefacts.corpus import CorpusRecord, SplitRecord
from plant_cli.base.files import write_json
from plant_cli.evaluation.systems import file_system, find_system


def record(labels_hash="l"):
    split = SplitRecord(documents=5, ids_hash="i", texts_hash="t", labels_hash=labels_hash)
    return CorpusRecord(source={}, files=[], splits={"train": split, "test": split}, held_out=[], label_hash="h")


@pytest.mark.parametrize("name", ["finetune-plain", "predict-plain", "eval-plain", "plain"])
def test_by_folder_or_tag(context, good, name):
    context.add_system("plain", good, threshold=0.25)
    system = find_system(context, name, "test", "hash")
    assert system.predictions == context.run_path / "predict-plain" / "predictions.parquet"
    assert (system.name, system.threshold) == (name, 0.25)
    assert "tuned on validation micro-F1" in system.origin


def test_a_threshold_next_to_zero_is_not_told_as_zero(context, good):
    context.add_system("plain", good, threshold=4.126e-10)
    assert find_system(context, "plain", "test", "hash").origin == "threshold 4.13e-10 tuned on validation micro-F1"


def test_without_a_tag(context, good):
    context.add_system(None, good)
    assert find_system(context, "finetune", "test", "hash").predictions.parent.name == "predict"


def test_by_file(context, save, good):
    path = save(good)
    assert find_system(context, str(path), "test", "hash") == file_system(path, None)
    assert file_system(path, None).threshold == 0.5
    assert file_system(path, 0.1).origin == "threshold 0.1 given"


@pytest.mark.parametrize("folder", ["", "finetune-x"])
def test_by_another_run(context, good, tmp_path, folder):
    tag = "x" if folder else None
    other = type(context)(run_path=tmp_path / "other", folder=context.folder)
    other.add_system(tag, good, threshold=0.3)
    (other.run_path / "finetune-x").mkdir(exist_ok=True)
    write_json(other.run_path / "run.json", {})
    record().write(context.run_path / "corpus")
    record().write(other.run_path / "corpus")
    assert find_system(context, str(other.run_path / folder), "test", "hash").threshold == 0.3

    record("other labels").write(other.run_path / "corpus")
    with pytest.raises(DataError, match="another gold test split"):
        find_system(context, str(other.run_path / folder), "test", "hash")


def test_another_run_without_predictions_says_how_to_make_them(context, tmp_path):
    with pytest.raises(ArtefactError) as caught:
        find_system(context, str(tmp_path), "test", "hash")
    assert "plant predict --run" in caught.value.todo


def test_thresholds_per_label_must_be_in_the_same_order(context, good):
    context.add_system(None, good, threshold=[0.1, 0.2, 0.3, 0.4])
    labels = context.corpus().labels
    assert np.array_equal(find_system(context, "finetune", "test", labels.hash).threshold, [0.1, 0.2, 0.3, 0.4])
    with pytest.raises(ArtefactError, match="another label order"):
        find_system(context, "finetune", "test", "other")


def test_a_damaged_threshold_is_told(context, good):
    context.add_system(None, good)
    write_json(context.run_path / "finetune" / "thresholds.json", {})
    with pytest.raises(ArtefactError, match="threshold is damaged") as caught:
        find_system(context, "finetune", "test", "hash")
    assert "thresholds.json" in caught.value.where
