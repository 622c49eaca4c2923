"""Both training stages for real, on a small network and a small made-up clinic: resume, guards,
collapse, NaN, out of memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from builders import run_at
from clinic import Clinic, Interrupting, weights
from laboratory import CLINIC
from plant_decoders.label_attention import LabelAttention
from plant_network import stage2 as finetuning
from plant_network.finetune_network import describe_gain

from plant_cli.api import ArtefactError, Interrupted, ResourceError, TrainingError
from plant_cli.commands.finetune import tell_calibration
from plant_cli.data.files import read_json
from plant_cli.scoring.calibration import FLATTEST, Calibrated, Calibration, Reliability
from plant_cli.scoring.frequency_linear import FrequencyLinear
from plant_cli.training.judging import Gain


@pytest.fixture
def longer(clinic: Any, trained_once: Any, tmp_path: Path) -> Callable[[str], Clinic]:
    """Copies of a run with planted attention: `longer("whole")`."""

    def copy(name: str) -> Clinic:
        shutil.copytree(trained_once("longer"), tmp_path / name)
        return Clinic(clinic, tmp_path / name)

    return copy


@pytest.mark.parametrize(
    ("stage", "begins", "after", "sets"),
    [
        ("finetune", "epoch 2", 2, ()),
        ("finetune", "epoch 1", 1, ()),
        ("finetune", "prototypes", 2, ()),
        ("pretrain-attn", "epoch 2", 3, ()),
        ("finetune", "epoch 2", 2, ("finetune.sparse_updates=true",)),
        ("finetune", "epoch 2", 2, ("finetune.shortlist={name: words, size: 2, frequent: 1}",)),
        (
            "pretrain-attn",
            "epoch 2",
            3,
            ("pretrain-attn.sparse_updates=true", "pretrain-attn.labels_per_document=2"),
        ),
    ],
)
def test_interrupted_and_resumed_equals_uninterrupted_bit_for_bit(
    longer: Any, stage: str, begins: str, after: int, sets: tuple[str, ...]
) -> None:
    whole, broken = longer("whole"), longer("broken")
    for one in (whole, broken):
        shutil.rmtree(one.path / stage, ignore_errors=True)
    whole.run(stage, *sets)
    with pytest.raises(Interrupted) as caught:
        broken.run(stage, *sets, reporter=Interrupting(begins, after))
    assert caught.value.exit_code == 130
    assert broken.record(stage)["status"] == "interrupted"
    broken.run(stage, *sets, resume=True)
    expected, found = weights(whole, stage), weights(broken, stage)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert (whole.path / stage / "history.jsonl").read_text() == (
        broken.path / stage / "history.jsonl"
    ).read_text()


def test_a_damaged_checkpoint_costs_only_the_steps_since_the_one_before(longer: Any) -> None:
    whole, broken = longer("whole"), longer("broken")
    whole.run("finetune", "finetune.init=random", "finetune.head=random", "finetune.scorers=none")
    with pytest.raises(Interrupted):
        broken.run(
            "finetune",
            "finetune.init=random",
            "finetune.head=random",
            "finetune.scorers=none",
            reporter=Interrupting("epoch 2", 2),
        )
    first, last = sorted((broken.path / "finetune" / "checkpoints").glob("step-*"))
    (last / "weights.safetensors").write_bytes((first / "weights.safetensors").read_bytes()[:100])
    broken.run(
        "finetune",
        "finetune.init=random",
        "finetune.head=random",
        "finetune.scorers=none",
        resume=True,
    )
    expected, found = weights(whole, "finetune"), weights(broken, "finetune")
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_the_test_split_changes_nothing_that_is_trained(
    clinic: Any, act: Any, tmp_path: Path
) -> None:
    clinics = []
    for name in ("one", "other"):
        act(
            "data make",
            dataset="synthetic-clinic",
            documents=160,
            labels=16,
            seed=3,
            output=tmp_path / f"{name}.parquet",
        )
    path = tmp_path / "other.parquet"
    frame = pl.read_parquet(path)
    is_test = pl.col("split") == "test"
    text = (
        pl.when(is_test)
        .then(pl.lit("wholly other words zebra ") + pl.col("doc_id"))
        .otherwise(pl.col("text"))
    )
    labels = pl.when(is_test).then(pl.lit(["Z99"])).otherwise(pl.col("labels"))
    frame.with_columns(text.alias("text"), labels.alias("labels")).write_parquet(path)
    for name in ("one", "other"):
        run = Clinic(clinic, tmp_path / f"run-{name}")
        source = [f"data.path={tmp_path / f'{name}.parquet'}", "data.dataset=files"]
        for stage in ("mig", "pretrain-attn", "finetune"):
            run.run(stage, *source)
        clinics.append(run)
    one, other = clinics
    assert all(
        torch.equal(t, weights(other, "finetune")[n]) for n, t in weights(one, "finetune").items()
    )
    assert (one.path / "finetune" / "thresholds.json").read_text() == (
        other.path / "finetune" / "thresholds.json"
    ).read_text()
    assert pl.read_parquet(one.path / "mig" / "mig.parquet").equals(
        pl.read_parquet(other.path / "mig" / "mig.parquet")
    )


def test_a_loss_that_is_no_number_stops_training_and_keeps_the_checkpoint(
    longer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = longer("run")
    right = finetuning.FineTuning.__call__

    def wrong(self: Any, rows: Any, *, epoch: int, seed: int) -> Any:
        loss, weight = right(self, rows, epoch=epoch, seed=seed)
        return (loss * float("nan") if epoch == 1 else loss), weight

    monkeypatch.setattr(finetuning.FineTuning, "__call__", wrong)
    with pytest.raises(TrainingError, match="not a number in epoch 2") as caught:
        trained.run("finetune")
    assert caught.value.exit_code == 7
    assert list((trained.path / "finetune" / "checkpoints").glob("step-*/DONE"))
    monkeypatch.setattr(finetuning.FineTuning, "__call__", right)
    trained.run("finetune", resume=True)
    assert trained.record("finetune")["status"] == "done"


def test_memory_that_runs_out_is_told_with_the_knobs(
    longer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = longer("run")

    def refuse(self: Any, *given: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    monkeypatch.setattr(LabelAttention, "forward", refuse)
    with pytest.raises(ResourceError) as caught:
        trained.run("finetune")
    assert caught.value.exit_code == 6
    assert "micro" in caught.value.todo or "batch" in caught.value.todo


@pytest.mark.parametrize("init", ["planted", "random"])
def test_broken_relevance_is_refused_before_anything_is_trained(longer: Any, init: str) -> None:
    """Also where it only measures attention, as from a random start."""
    trained = longer("run")
    (trained.path / "mig" / "words.parquet").write_bytes(b"broken")
    with pytest.raises(ArtefactError, match=r"words\.parquet|relevance") as caught:
        trained.run("finetune", f"finetune.init={init}")
    assert "mig" in caught.value.where + caught.value.todo
    assert not (trained.path / "finetune" / "history.jsonl").exists()


def test_without_relevance_a_random_start_is_trained(trained: Clinic) -> None:
    result = trained.run(
        "finetune",
        "finetune.init=random",
        "finetune.head=random",
        "finetune.scorers=none",
        "finetune.epochs=1",
    )
    assert not [column.name for column in result.tables[0].columns if "attention" in column.name]


def test_a_slope_at_its_floor_is_told() -> None:
    notes = []
    for slope in (FLATTEST, 0.5):
        linear = FrequencyLinear(
            knots=np.array([1.0, 10.0]), weights=np.array([[slope, 1.0]]), bias=np.zeros(2)
        )
        measured = Reliability.measure(np.array([0.5]), np.array([True]))
        notes.append(
            tell_calibration(
                Calibrated(
                    calibration=Calibration(linear=linear),
                    logits=np.zeros(1),
                    reliability=measured,
                    before=measured,
                    losses={},
                )
            )
        )
    assert "the slope of labels of training frequency 1 is at its floor, 0.01: " in notes[0]
    assert "floor" not in notes[1]


@pytest.mark.parametrize(
    ("low", "said"),
    [(0.001, "the network adds to the scorers"), (0.0, "`plant finetune --no-network --force`")],
)
def test_it_is_told_whether_the_network_is_worth_its_time(low: float, said: str) -> None:
    note = describe_gain(Gain(difference=0.01, low=low, high=0.02))
    assert said in note
    assert f"MAP +1.0 points [{100 * low:.1f}, 2.0]" in note


@pytest.fixture
def titled(tmp_path: Path) -> Callable[..., Any]:
    """Runs stages on a corpus whose test documents have a label that train has not, but the
    table of titles: the second of three.
    """
    folder = tmp_path / "corpus"
    folder.mkdir()
    signs = {"a": "fever and chills", "b": "stone in the kidney", "c": "fracture of the arm"}
    for name, count, labels in (("train", 12, "ac"), ("validation", 4, "acb"), ("test", 3, "b")):
        own = [labels[row % len(labels)] for row in range(count)]
        rows = {
            "doc_id": [f"{name} {row}" for row in range(count)],
            "labels": [[label] for label in own],
        }
        texts = [f"patient {row} has a {signs[label]}" for row, label in enumerate(own)]
        pl.DataFrame({**rows, "text": texts}).write_parquet(folder / f"{name}.parquet")
    pl.DataFrame({"label": list(signs), "title": list(signs.values())}).write_parquet(
        folder / "labels.parquet"
    )

    def run(stage: str, *sets: str, force: bool = False) -> Any:
        given = (
            f"data.path={folder}",
            "data.zero_shot=true",
            "finetune.network=false",
            *CLINIC[1:],
            *sets,
        )
        return run_at(tmp_path / "run", stage, *given, force=force)

    run.path = tmp_path / "run"  # type: ignore[attr-defined]
    return run


def test_scorers_alone_suggest_labels_that_have_a_title_and_no_training_document(
    titled: Any,
) -> None:
    titled("finetune")
    titled("predict")
    found = pl.read_parquet(titled.path / "predict" / "predictions.parquet")
    assert {"a", "b", "c"} == set(found["labels"].explode())
    titled("eval", "eval.bootstrap=20")
    bins = read_json(titled.path / "eval" / "metrics.json", "the metrics")["bins"]
    assert bins["0"]["R@10"]["value"] == 1.0
    why = titled(
        "suggest", "suggest.text=a stone in the left kidney", "suggest.why=true", "suggest.top_k=3"
    )
    assert any("stone in the kidney" in str(row) for row in why.tables[0].rows)


def test_a_network_learns_labels_without_training_documents_from_their_titles(titled: Any) -> None:
    for stage in ("mig", "pretrain-attn", "finetune"):
        titled(stage, "finetune.network=true", "finetune.scorers=[]", "finetune.epochs=2")
    titled("predict")
    assert set(
        pl.read_parquet(titled.path / "predict" / "predictions.parquet")["labels"].explode()
    ) == {"a", "b", "c"}


@pytest.mark.parametrize("tune", ["micro-F1", "per-label"])
def test_labels_without_training_documents_have_thresholds_of_their_own(
    titled: Any, tune: str
) -> None:
    titled("finetune", f"finetune.tune={tune}")
    titled("thresholds", "thresholds.target=[f1]", "thresholds.bootstrap=0")
    stored = read_json(titled.path / "thresholds" / "thresholds.json", "the thresholds")
    assert len(stored["value"]) == len(stored["review"]) == 3
    for given in ((), ("eval.thresholds=thresholds",)):
        assert (
            titled("eval", "eval.bootstrap=0", "eval.split=validation", *given, force=True).data[
                "metrics"
            ]["micro-F1"]["value"]
            > 0.8
        )
    shown = titled(
        "suggest",
        "suggest.text=a stone in the left kidney",
        "suggest.thresholds=thresholds",
        "suggest.top_k=1",
    )
    assert any("stone in the kidney" in str(row) for row in shown.tables[0].rows)
