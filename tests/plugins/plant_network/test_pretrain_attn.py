"""Stage 1 as a stage: what it needs, leaves and tells."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from plant_backbones.tiny import TinyBackbone
from safetensors.torch import load_file

from plant_cli.api import DataError, Request, SilentReporter, UsageError
from plant_cli.data.files import read_json
from plant_cli.registry import installed
from plant_cli.runs.runner import run_stage


def test_a_variant_leads_to_the_same_variant(clinic: Any) -> None:
    assert (
        clinic("mig", tag="control").next_step
        == "plant pretrain-attn --relevance control --tag control"
    )
    planted = clinic("pretrain-attn", "pretrain-attn.relevance=control", tag="control")
    assert planted.next_step == "plant finetune --planted control --tag control"


def test_it_leaves_attention_and_history_and_no_backbone(prepared: Any) -> None:
    clinic = prepared("counted")
    assert "nDCG@10" in clinic("pretrain-attn", "pretrain-attn.ndcg_k=10", tag="ten").summary
    result = clinic("pretrain-attn", "pretrain-attn.epochs=2")
    folder = clinic.path / "pretrain-attn"
    history = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in history] == [0, 1, 2]
    assert all(0 < row["nDCG@1000"] <= 1 for row in history)
    assert {path.name for path in folder.iterdir()} == {
        "model.safetensors",
        "model.json",
        "history.jsonl",
        "stage.json",
    }
    assert read_json(folder / "model.json", "the model")["backbone_changed"] is False
    assert result.next_step == "plant finetune"
    assert result.summary["best_epoch"] in (0, 1, 2)
    assert [column.name for column in result.tables[0].columns][2:4] == [
        "nDCG@1000",
        "in random order",
    ]


@pytest.mark.parametrize("stage", ["pretrain-attn", "finetune"])
def test_training_looks_at_the_language_of_its_documents_and_names_the_weights(
    clinic: Any, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    seen: list[Any] = []
    clinic("mig")
    monkeypatch.setattr(
        "plant_network.materials.warn_of_languages", lambda *given: seen.append(given)
    )
    monkeypatch.setattr(TinyBackbone, "origin", "org/model at revision abc", raising=False)
    reporter = SilentReporter()
    clinic(
        stage,
        f"{stage}.epochs=1",
        *(
            ["finetune.init=random", "finetune.head=random", "finetune.scorers=none"]
            if stage == "finetune"
            else []
        ),
        reporter=reporter,
    )
    [(backbone, known, texts, told)] = seen
    assert backbone[0].name == "tiny"
    assert {"minilm", "multilingual"} <= {spec.name for spec in known}
    assert len(texts) > 0
    told.warn("a word")
    assert reporter.warnings[-1] == "a word"
    assert "backbone tiny: reads with org/model at revision abc" in reporter.notes


def test_it_refuses_relevance_in_which_nothing_is_relevant(clinic: Any, tmp_path: Path) -> None:
    texts = [
        {"text": f"the same words {n}", "labels": ["all"], "split": s}
        for n in range(6)
        for s in ("train", "validation", "test")
    ]
    (tmp_path / "all.jsonl").write_text("\n".join(json.dumps(row) for row in texts))
    data = (f"data.path={tmp_path / 'all.jsonl'}", "data.dataset=files")
    clinic("mig", *data)
    with pytest.raises(DataError, match="no word indicates any label") as caught:
        clinic("pretrain-attn", *data)
    assert "--min-df" in caught.value.todo


def test_without_validation_it_says_so(clinic: Any, tmp_path: Path) -> None:
    texts = [
        {"text": text, "labels": [label], "split": "train"}
        for text, label in (("honey and bees", "a"), ("rain", "b"), ("honey", "a"))
    ]
    (tmp_path / "few.jsonl").write_text("\n".join(json.dumps(row) for row in texts))
    data = (f"data.path={tmp_path / 'few.jsonl'}", "data.dataset=files")
    clinic("mig", *data)
    with pytest.raises(DataError, match="the corpus has no split 'validation'"):
        clinic("pretrain-attn", *data)


def test_corrections_of_relevance_change_what_is_planted(prepared: Any) -> None:
    clinic = prepared("counted")
    clinic("pretrain-attn", tag="before")
    label = pl.read_parquet(clinic.path / "mig" / "labels.parquet")["label"][0]
    word = clinic("mig show", "mig show.label=" + label).tables[0].rows[0][0]
    clinic("mig edit", f"mig edit.label={label}", f"mig edit.deny=['{word}']")
    clinic("mig", force=True)
    assert (
        clinic("mig show", f"mig show.label={label}", "mig show.limit=1000").tables[0].rows[-1][5]
        == "denied"
    )
    clinic("pretrain-attn", tag="after")
    losses = [
        json.loads(
            (clinic.path / f"pretrain-attn-{t}" / "history.jsonl").read_text().splitlines()[-1]
        )["loss"]
        for t in ("before", "after")
    ]
    assert losses[0] != losses[1]


def test_a_killed_process_loses_at_most_the_epoch_under_way(clinic: Any) -> None:
    """SIGKILL leaves no time to save: what counts is the last whole checkpoint, and the lock
    that the system releases.
    """
    sets = ["pretrain-attn.epochs=12", "pretrain-attn.patience=12", "machine.threads=1"]
    clinic("mig")
    clinic("pretrain-attn", *sets, tag="whole")
    given = [f"--set={value}" for value in (*clinic.sets, *sets)]
    command = [
        sys.executable,
        "-m",
        "plant_cli",
        "pretrain-attn",
        "--run",
        str(clinic.path),
        "-q",
        *given,
    ]
    folder = clinic.path / "pretrain-attn"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while not list(folder.glob("checkpoints/step-*/DONE")):
            assert process.poll() is None
            time.sleep(0.005)
        process.kill()
    assert read_json(folder / "stage.json", "the record")["status"] == "running"
    with pytest.raises(UsageError, match="was interrupted") as caught:
        clinic("pretrain-attn", *sets)
    assert "--resume" in caught.value.todo
    clinic("pretrain-attn", *sets, resume=True)
    whole, resumed = (
        load_file(clinic.path / name / "model.safetensors")
        for name in ("pretrain-attn-whole", "pretrain-attn")
    )
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_a_dropped_connection_loses_nothing(clinic: Any) -> None:
    """The terminal that would show progress is gone with it."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        pytest.skip("started under nohup: so are the processes that tests start")
    sets = ["pretrain-attn.epochs=200", "pretrain-attn.patience=200", "machine.threads=1"]
    clinic("mig")
    terminal, shown = os.openpty()
    command = [sys.executable, "-m", "plant_cli", "pretrain-attn", "--run", str(clinic.path)]
    folder = clinic.path / "pretrain-attn"
    with subprocess.Popen(
        [*command, *(f"--set={value}" for value in (*clinic.sets, *sets))],
        stdout=shown,
        stderr=shown,
    ) as process:
        os.close(shown)
        while not list(folder.glob("checkpoints/step-*/DONE")):
            assert process.poll() is None
            time.sleep(0.005)
        os.close(terminal)
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=60) == 130
    assert read_json(folder / "stage.json", "the record")["status"] == "interrupted"


def test_the_frozen_backbone_reads_once_for_both_trainings(
    clinic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second command has the network from the run, where all options of the backbone are
    written out.
    """
    module, tokenize, tokenised = TinyBackbone.module, TinyBackbone.tokenize, Counter[str]()
    monkeypatch.setattr(
        TinyBackbone, "module", lambda backbone: module(backbone).requires_grad_(False)
    )
    monkeypatch.setattr(
        TinyBackbone,
        "tokenize",
        lambda backbone, texts: tokenised.update(texts) or tokenize(backbone, texts),
    )

    def run(name: str, *sets: str) -> list[str]:
        run_stage(
            Request(
                registry=installed(),
                run_path=clinic.path,
                sets=[*sets, "machine.device=cpu"],
                reporter=SilentReporter(),
            ),
            name,
        )
        return sorted(folder.name for folder in clinic.path.glob("cache/hidden-*"))

    run("mig", clinic.sets[0])
    found = run(
        "pretrain-attn",
        *(item for item in clinic.sets if item.startswith("model.")),
        "pretrain-attn.epochs=1",
    )
    assert [name.split("-")[1] for name in found] == ["train", "validation"]
    assert run("finetune", "finetune.epochs=1") == found
    assert set(tokenised.values()) == {1}, "a text is tokenised once in a run"
