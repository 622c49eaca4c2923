"""`plant pretrain-lm` on the small made-up clinic, and the stages that start from it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from clinic import Clinic, Interrupting
from plant_awd_lstm.language_model import PAD
from safetensors.torch import load_file, save_file

from plant_cli.api import (
    ArtefactError,
    ComponentError,
    DataError,
    Interrupted,
    Request,
    SilentReporter,
    UsageError,
)
from plant_cli.registry import installed
from plant_cli.runs.runner import run_stage

LM = (
    "pretrain-lm.embedding=16",
    "pretrain-lm.hidden=24",
    "pretrain-lm.layers=1",
    "pretrain-lm.epochs=1",
    "pretrain-lm.batch=8",
    "pretrain-lm.window=40",
    "pretrain-lm.rate=0.01",
    "model.backbone={name: awd-lstm, window: 24}",
)
WEIGHTS = "awd-lstm-forward.safetensors"


def test_the_stages_after_it_start_from_it(clinic: Any) -> None:
    clinic("pretrain-lm", *LM)
    clinic("mig")
    clinic("pretrain-attn", *LM)
    clinic(
        "finetune",
        *LM,
        "finetune.unfreeze=all",
        "finetune.rate_backbone=0.01",
        "finetune.head=random",
    )
    lm, planted, tuned = (
        load_file(clinic.path / stage / WEIGHTS)
        for stage in ("pretrain-lm", "pretrain-attn", "finetune")
    )
    assert all(torch.equal(lm[name], planted[name]) for name in lm)
    assert any(not torch.equal(lm[name], tuned[name]) for name in lm)
    assert (
        "pretrain-lm" in json.loads((clinic.path / "finetune" / "stage.json").read_text())["inputs"]
    )
    (clinic.path / "pretrain-lm").rename(
        clinic.path / "gone"
    )  # a trained network needs nothing but its own folder
    clinic("predict", *LM)
    assert (clinic.path / "predict" / "predictions.parquet").exists()


def test_without_it_the_next_stage_says_so(clinic: Any) -> None:
    clinic("mig")
    with pytest.raises(ArtefactError) as caught:
        clinic("pretrain-attn", *LM)
    assert "plant pretrain-lm" in caught.value.todo


def test_a_language_model_of_another_run_is_used_if_it_is_named(
    clinic: Any, tmp_path: Path
) -> None:
    clinic("pretrain-lm", *LM, "pretrain-lm.directions=forward")
    other, clinic.path = clinic.path / "pretrain-lm", tmp_path / "other"
    clinic("mig")
    named = f"model.backbone={{name: awd-lstm, window: 24, language_model: '{other}'}}"
    clinic("pretrain-attn", *LM, named)
    assert torch.equal(
        load_file(other / WEIGHTS)["embedding.weight"],
        load_file(clinic.path / "pretrain-attn" / WEIGHTS)["embedding.weight"],
    )
    backward = named.replace("window", "direction: backward, window")
    with pytest.raises(ArtefactError, match="no language model that reads backward"):
        clinic("pretrain-attn", *LM, backward, force=True)


def test_interrupted_and_resumed_equals_uninterrupted(trained: Clinic, tmp_path: Path) -> None:
    sets = [*LM, "pretrain-lm.epochs=2"]
    trained.run("pretrain-lm", *sets)
    whole = {
        path.name: path.read_bytes()
        for path in sorted((trained.path / "pretrain-lm").glob("awd-*"))
    }
    assert len(whole) == 2
    for begins, after in (("forward epoch 2", 3), ("backward epoch 1", 2)):
        parts = Clinic(trained.fixture, tmp_path / begins.replace(" ", "-"))
        with pytest.raises(Interrupted):
            parts.run("pretrain-lm", *sets, reporter=Interrupting(begins, after))
        parts.run("pretrain-lm", *sets, resume=True)
        assert {
            path.name: path.read_bytes()
            for path in sorted((parts.path / "pretrain-lm").glob("awd-*"))
        } == whole
        assert not (parts.path / "pretrain-lm" / "checkpoints").exists()


@pytest.mark.slow
def test_it_learns_more_than_counting_knows(clinic: Any) -> None:
    data = "data.dataset={name: synthetic-clinic, documents: 500, labels: 12, seed: 3}"
    sets = [
        "pretrain-lm.embedding=32",
        "pretrain-lm.hidden=64",
        "pretrain-lm.layers=1",
        "pretrain-lm.epochs=4",
        "pretrain-lm.batch=4",
    ]
    result = clinic(
        "pretrain-lm", *LM, data, *sets, "pretrain-lm.rate=0.008", "pretrain-lm.input_dropout=0.1"
    )
    figures = result.summary
    for direction in ("forward", "backward"):
        reached, bigram = (
            figures[f"perplexity {direction}"],
            figures[f"perplexity bigram {direction}"],
        )
        assert reached < 0.8 * bigram < bigram < figures["perplexity unigram"], figures
    rows = [
        json.loads(line)
        for line in (clinic.path / "pretrain-lm" / "history.jsonl").read_text().splitlines()
    ]
    assert [row["epoch"] for row in rows if row["direction"] == "backward"] == [0, 1, 2, 3, 4]
    assert not [note for note in result.tables[0].notes if "no better than counting" in note]


def test_one_word_is_refused(clinic: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="vocabulary of 0 words"):
        clinic("pretrain-lm", *LM, "pretrain-lm.min_count=100000")
    rows = [
        (split, " ".join(["fever"] * count), [label])
        for split, counts in (("train", (2, 4)), ("validation", (1, 3)), ("test", (5, 7)))
        for label, count in zip("ab", counts, strict=True)
    ]
    pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").write_parquet(
        tmp_path / "one.parquet"
    )
    clinic.path = tmp_path / "one"
    with pytest.raises(
        DataError, match="vocabulary of 1 word: a language model has nothing to predict"
    ) as caught:
        clinic("pretrain-lm", *LM, "data.dataset=files", f"data.path={tmp_path / 'one.parquet'}")
    assert "the most frequent occurs 6 times" in caught.value.where


def test_published_weights_start_a_language_model(clinic: Any, tmp_path: Path) -> None:
    """A model of another run, bit for bit; then an epoch in which its layers rest; then a list
    of words that hardly fits.
    """
    forward = (*LM, "pretrain-lm.directions=forward")
    clinic("pretrain-lm", *forward)
    published = clinic.path / "pretrain-lm"
    given, reporter, clinic.path = (
        load_file(published / WEIGHTS),
        SilentReporter(),
        tmp_path / "other",
    )
    given["embedding.weight"][PAD] = 0  # never read
    imported = (*forward, f"pretrain-lm.weights={published / WEIGHTS}")
    words = f"pretrain-lm.words={published / 'vocabulary.json'}"
    clinic("pretrain-lm", *imported, words, "pretrain-lm.epochs=0", reporter=reporter)
    start = load_file(clinic.path / "pretrain-lm" / WEIGHTS)
    assert all(torch.equal(given[name], start[name]) for name in given)
    assert "forward: 297 of 297 words have published embeddings" in reporter.notes
    clinic("pretrain-lm", *imported, words, force=True)
    after = load_file(clinic.path / "pretrain-lm" / WEIGHTS)
    assert {name for name in start if not torch.equal(start[name], after[name])} == {
        "embedding.weight"
    }
    few = json.loads((published / "vocabulary.json").read_text())
    (tmp_path / "few.json").write_text(
        json.dumps([*few[:20], *(f"another {word}" for word in few[20:])])
    )
    clinic(
        "pretrain-lm",
        *imported,
        f"pretrain-lm.words={tmp_path / 'few.json'}",
        "pretrain-lm.epochs=0",
        force=True,
        reporter=reporter,
    )
    assert any(
        "17 of 297 words have published embeddings, all others start from the mean" in warning
        for warning in reporter.warnings
    )


def test_a_language_model_of_another_vocabulary_is_told_before_stage_2(
    clinic: Any, tmp_path: Path
) -> None:
    """By the name of another folder, or by a new pretrain-lm of the same run."""
    small = (*LM, "pretrain-lm.epochs=0", "pretrain-lm.directions=forward")
    for stage in ("pretrain-lm", "mig", "pretrain-attn"):
        clinic(stage, *small)
    run, clinic.path = clinic.path, tmp_path / "other"
    clinic("pretrain-lm", *small, "pretrain-lm.min_count=9")
    other, clinic.path = clinic.path / "pretrain-lm", run
    with pytest.raises(ArtefactError, match="planted in another network") as named:
        clinic(
            "finetune",
            *small,
            f"model.backbone={{name: awd-lstm, window: 24, language_model: '{other}'}}",
        )
    assert (
        named.value.where
        == f"backbone: {run / 'pretrain-attn'} has language_model=None, this stage "
        f"language_model='{other}'"
    )
    reporter = SilentReporter()
    clinic("pretrain-lm", *small, "pretrain-lm.min_count=9", force=True)
    with pytest.raises(ArtefactError, match="made for another tokenizer") as renewed:
        clinic("finetune", *small, "pretrain-lm.min_count=9", reporter=reporter)
    assert "run the stage 'pretrain-attn' again with --force" in renewed.value.todo
    assert "the language model that it was trained with" in renewed.value.todo
    assert any(
        "'pretrain-attn' is out of date: its input 'pretrain-lm' has changed" in warning
        for warning in reporter.warnings
    )


def test_options_that_do_not_go_together(clinic: Any, tmp_path: Path) -> None:
    weights = tmp_path / "w.safetensors"
    save_file({"0.encoder.weight": torch.zeros(2, 2)}, weights)
    with pytest.raises(UsageError, match="one without the other"):
        clinic("pretrain-lm", *LM, f"pretrain-lm.weights={weights}")
    with pytest.raises(UsageError, match="direction backward, which is not trained"):
        clinic(
            "pretrain-lm",
            *LM,
            "pretrain-lm.directions=forward",
            f"pretrain-lm.weights_backward={weights}",
            "pretrain-lm.words=w.txt",
        )


def test_a_run_can_be_planned_once_it_has_one(clinic: Any) -> None:
    clinic("mig", "mig.k=5")
    with pytest.raises(ComponentError, match="no language model") as caught:
        clinic("plan", *LM)
    assert "plant pretrain-lm" in caught.value.todo
    clinic("pretrain-lm", *LM, "pretrain-lm.epochs=0", "pretrain-lm.directions=forward")
    parts = {part["name"]: part for part in clinic("plan", *LM).data["finetune"]["parts"]}
    weights = load_file(clinic.path / "pretrain-lm" / WEIGHTS)
    assert parts["backbone"]["parameters"] == sum(tensor.numel() for tensor in weights.values())


def test_a_forward_and_a_backward_run_are_averaged_and_judged(clinic: Any, tmp_path: Path) -> None:
    """As in docs/recipes.md: the backward run reads with the other language model of the first."""
    small = (
        *LM,
        "pretrain-lm.epochs=0",
        "finetune.init=random",
        "finetune.head=random",
        "finetune.scorers=none",
        "finetune.scorers=none",
        "finetune.head=random",
        "eval.bootstrap=20",
    )
    clinic("pretrain-lm", *small)
    clinic("finetune", *small)
    run, clinic.path = clinic.path, tmp_path / "backward"
    reads = (
        f"model.backbone={{name: awd-lstm, window: 24, direction: backward, language_model: "
        f"'{run / 'pretrain-lm'}'}}"
    )
    clinic("finetune", *small, reads)
    backward, clinic.path = clinic.path, run
    averaged = clinic(
        "predict",
        *small,
        f"predict.systems=[finetune, '{backward}']",
        "predict.average=true",
        tag="both",
    )
    assert list(averaged.summary["average"]) == ["finetune", str(backward)]
    clinic("eval", *small, tag="both")
    assert (
        0
        < json.loads((run / "eval-both" / "metrics.json").read_text())["metrics"]["MAP"]["value"]
        <= 1
    )


@pytest.mark.slow
def test_the_recipe_of_the_first_version_runs_with_all_its_ablations(clinic: Any) -> None:
    """Two steps of each stage at small sizes; every variant starts from one stage 1."""
    recipe = Path(__file__).parents[3] / "recipes" / "paper-v1-ablations.yaml"
    small = (
        *(
            "pretrain-lm.embedding=16",
            "pretrain-lm.hidden=24",
            "pretrain-lm.layers=2",
            "pretrain-lm.epochs=1",
            "pretrain-lm.batch=64",
        ),
        *(
            "model.backbone.window=24",
            "model.decoder.window=24",
            "model.decoder.ranker_size=8",
            "model.decoder.ranker_hidden=8",
        ),
        *(
            "pretrain-attn.batch=45",
            "finetune.batch=45",
            "finetune.epochs=1",
            "eval.bootstrap=20",
            "significance.bootstrap=20",
            "significance.permutations=20",
        ),
    )
    sets = [text for text in clinic.sets if not text.startswith("model.")]
    request = Request(
        registry=installed(), run_path=clinic.path, sets=[*sets, *small], reporter=SilentReporter()
    )
    result = run_stage(replace(request, flags={"run": {"recipe": str(recipe)}}), "run")
    assert {row[1] for row in result.tables[-1].rows} == {"done"}
    variants = ["not-planted", "without-inattention", "stateless", "equal-rates", "full-unfreezing"]
    models = {
        tag: load_file(clinic.path / f"finetune-{tag}" / "model.safetensors") for tag in variants
    }
    planted = load_file(clinic.path / "pretrain-attn" / "model.safetensors")
    assert all(tensors.keys() == planted.keys() for tensors in models.values())
    inputs = {
        tag: json.loads((clinic.path / f"finetune-{tag}" / "stage.json").read_text())["inputs"]
        for tag in variants
    }
    assert [tag for tag in variants if "pretrain-attn" not in inputs[tag]] == ["not-planted"]
