"""What of corpus and predictions can still be read."""

from dataclasses import replace

import pytest

from plant_cli.api import ArtefactError, DataError
from plant_cli.report.compared import Beside, align, compare_evaluated, explain, find_convention, lay_beside
from plant_cli.scoring.decisions import write_thresholds


def test_everything_is_there(systems, families, open_corpus, silent):
    beside = lay_beside(systems, families, open_corpus, silent)
    assert beside.reason == ""
    assert list(beside.data) == ["finetune", "baseline"]
    assert beside.readable is not None
    assert beside.readable.train is not None  # labels have no parents here
    assert silent.warnings == []


def test_a_corpus_that_is_gone_is_a_sentence(systems, families, open_corpus, silent, tmp_path):
    (tmp_path / "data.parquet").unlink()
    beside = lay_beside(systems, families, open_corpus, silent)
    assert beside.readable is None
    assert beside.data == {}
    assert silent.warnings == [beside.reason]
    compared, why = compare_evaluated(systems, beside, families, 99, silent)
    assert compared == []
    assert why == f"Differences are not tested: {beside.reason}"


def test_predictions_that_are_gone_are_a_sentence(systems, families, open_corpus, silent, tmp_path):
    (tmp_path / "run" / "predict-baseline" / "predictions.parquet").unlink()
    beside = lay_beside(systems, families, open_corpus, silent)
    assert beside.readable is not None
    assert (beside.data, "predict" in beside.reason) == ({}, True)


def test_one_system_has_nothing_to_be_compared_with(systems, families, open_corpus, silent):
    compared, why = compare_evaluated(systems[:1], lay_beside(systems[:1], families, open_corpus, silent), families, 99, silent)
    assert compared == []
    assert "`plant report A B`" in why


def test_a_threshold_that_was_given_counts(evaluate, families, open_corpus, silent):
    systems = evaluate(threshold=0.85)
    beside = lay_beside(systems, families, open_corpus, silent)
    [data] = beside.data.values()
    assert data.threshold == 0.85


def test_thresholds_that_were_chosen_count(evaluate, families, open_corpus, silent, tmp_path):
    write_thresholds(tmp_path / "chosen", [0.85, 0.05, 0.05, 0.05, 0.05, 0.05], "precision=0.9", open_corpus().labels.hash)
    systems = evaluate(thresholds=str(tmp_path / "chosen" / "thresholds.json"))
    [data] = lay_beside(systems, families, open_corpus, silent).data.values()  # compares figures with the recorded ones
    assert data.threshold.tolist() == [0.85, 0.05, 0.05, 0.05, 0.05, 0.05]


def test_figures_that_predictions_do_not_give_are_refused(systems, families, open_corpus, silent):
    bounds = {**systems[1].metrics.metrics, "P@1": systems[1].metrics.metrics["P@1"].model_copy(update={"value": 0.999})}
    changed = replace(systems[1], metrics=systems[1].metrics.model_copy(update={"metrics": bounds}))
    with pytest.raises(ArtefactError, match=r"'baseline' do not give its recorded figures: P@1 0.999, now 0.5") as raised:
        lay_beside([systems[0], changed], families, open_corpus, silent)
    assert raised.value.todo == "plant eval --tag baseline --force"


def test_other_gold_than_then_is_refused(systems, families, open_corpus, silent):
    changed = [replace(s, metrics=s.metrics.model_copy(update={"gold": "0" * 64})) for s in systems]
    with pytest.raises(DataError, match="not those of the evaluation"):
        lay_beside(changed, families, open_corpus, silent)


def test_conventions_of_other_versions_are_named(systems):
    assert find_convention(systems[0]).name == "plant"
    with pytest.raises(DataError, match="no convention 'mine'"):
        find_convention(replace(systems[0], metrics=systems[0].metrics.model_copy(update={"convention": "mine"})))


def test_errors_as_sentences():
    assert explain(ArtefactError("a is gone", where="b", expected="c", todo="do d")) == "a is gone (b); do d."


def test_systems_of_other_labels_are_measured_on_those_of_the_first(systems, families, open_corpus, silent, tmp_path):
    """The baseline is said to be of other labels; measured again on the same ones it must have its recorded figures again."""
    beside = lay_beside(systems, families, open_corpus, silent)
    other = replace(systems[1], label_hash="other", metrics=systems[1].metrics.model_copy(update={"metrics": {}, "bins": {}}))
    first, again = align([systems[0], other], beside, families)
    assert first is systems[0]
    assert again.metrics.all_metrics() == systems[1].metrics.all_metrics()
    assert again.metrics.labels_averaged == systems[1].metrics.labels_averaged
    columns = ["label", "train_count", "test_count", "tp", "fp", "fn"]
    assert again.read_labels().select(columns).equals(systems[1].read_labels().select(columns))
    assert align([systems[0], other], Beside(reason="gone."), families)[1] is other
