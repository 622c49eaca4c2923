"""The ways to name a system, where its files lie, and the refusal of another gold split."""

import pytest

from plant_cli.api import ArtefactError, DataError
from plant_cli.data.corpus_files import CorpusRecord, SplitRecord
from plant_cli.data.files import write_json
from plant_cli.evaluation.systems import Location, file_system, find_seeds, find_thresholds, locate, other_system, read_system


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
