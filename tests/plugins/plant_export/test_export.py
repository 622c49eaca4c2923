"""What was exported scores as the run's network does, read by transformers and peft alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
import yaml
from builders import run_at
from peft import PeftModel
from plant_decoders import LabelAttentionOptions
from plant_decoders.label_attention import LabelAttention
from plant_export.export import LIGHT_LOCK
from plant_export.onnx_graphs import measure_graphs
from plant_network import assembly as networks
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer, BertConfig, LlamaConfig

from plant_cli import fit, load
from plant_cli.api import (
    ArtefactError,
    ComponentError,
    DecoderShape,
    Reading,
    SilentReporter,
    UsageError,
)
from plant_cli.data.files import hash_file

ROOT = Path(__file__).parents[3]
TEXT = "patient fever a b c"
SMALL_CORPUS: dict[str, Any] = {
    "texts": [
        f"{one} and {two}"
        for one in ("fever", "cough", "fracture", "rash")
        for two in ("pain", "chills", "nausea", "fatigue", "age")
    ],
    "labels": [["FEVER"]] * 5 + [["COUGH"]] * 5 + [["BONE"]] * 5 + [["SKIN", "FEVER"]] * 5,
    "titles": {"FEVER": "High temperature", "BONE": "Broken bone"},
    "validation": 0.2,
}
TOLERANCE = {"none": 1e-5, "nf4": 3e-2, "int8": 3e-2}
"""Weights in few bits compute in bf16, which keeps two to three digits."""


@pytest.fixture
def trained(clinic: Any, small_model: Callable[..., Path]) -> Callable[..., Path]:
    """Trains the clinic's network on a small random LLaMA: `trained(adapter="lora",
    quantization="nf4")`; returns its base's folder.
    """

    def train(*more: str, **backbone: str) -> Path:
        base = small_model(LlamaConfig, num_key_value_heads=4, hidden_size=64)
        given = ", ".join(f"{key}: {value}" for key, value in backbone.items())
        sets = (
            f"model.backbone={{name: hf-causal, model: {base}, max_tokens: 24, lora_dropout: 0.0, "
            f"{given}}}",
            "finetune.init=random",
            "finetune.head=random",
            "finetune.scorers=none",
            *more,
        )
        learning = ("finetune.unfreeze=all", "finetune.rate_backbone=0.01")
        clinic("mig", "mig.k=5", *sets, *learning)
        clinic("finetune", *sets, *learning)
        return base

    return train


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Hidden states and logits of `TEXT` by the run's own network, taken when it is restored
    for the export.
    """
    found: list[tuple[torch.Tensor, torch.Tensor]] = []
    load_network = networks.load_network

    def watching(*arguments: Any) -> Any:
        network = load_network(*arguments)
        network.eval()
        with torch.no_grad():
            hidden, mask = network.backbone.encode(network.backbone.tokenize([TEXT]))
            found.append((hidden, network.decoder(Reading.of(hidden, mask))))
        return network

    monkeypatch.setattr("plant_export.exported_network.load_network", watching)
    return found


def read(model: Any, tokens: Path) -> torch.Tensor:
    """Hidden states of `TEXT` by a plain model."""
    ids = AutoTokenizer.from_pretrained(tokens)(TEXT, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        hidden: torch.Tensor = model.eval()(input_ids=ids).last_hidden_state
    return hidden.float()


def score(folder: Path, hidden: torch.Tensor) -> torch.Tensor:
    """Logits by the exported decoder, with nothing of the run."""
    labels = len(json.loads((folder / "labels.json").read_text()))
    decoder = LabelAttention(
        LabelAttentionOptions(heads=2, pool=8), DecoderShape(hidden=hidden.shape[-1], labels=labels)
    )
    decoder.load_state_dict(load_file(folder / "finetune" / "model.safetensors"))
    with torch.no_grad():
        return decoder.eval()(Reading.of(hidden, torch.ones(hidden.shape[:2], dtype=torch.bool)))


@pytest.mark.parametrize(
    "backbone",
    [
        {"adapter": "lora", "quantization": "none"},
        {"adapter": "dora", "quantization": "none"},
        {"adapter": "lora", "quantization": "nf4"},
        {"adapter": "lora", "quantization": "int8"},
        {"adapter": "none", "quantization": "none"},
        {"adapter": "full", "quantization": "none"},
    ],
    ids=lambda b: f"{b['adapter']}-{b['quantization']}",
)
def test_merged_weights_read_alone_score_the_same(
    clinic: Any, trained: Callable[..., Path], scored: Any, tmp_path: Path, backbone: dict[str, str]
) -> None:
    base, folder = trained(**backbone), tmp_path / "exported"
    clinic("export", f"export.folder={folder}", "export.merge=true")
    hidden, logits = scored[0]
    plain = AutoModel.from_pretrained(folder / "backbone", dtype=torch.float32)
    assert not hasattr(plain.config, "quantization_config")
    found, tolerance = read(plain, folder / "backbone"), TOLERANCE[backbone["quantization"]]
    torch.testing.assert_close(found, hidden, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(score(folder, found), logits, rtol=tolerance, atol=tolerance)
    if backbone["adapter"] != "none":  # what training changed is far more than the tolerance
        before = read(AutoModel.from_pretrained(base, dtype=torch.float32), base)
        assert float((before - hidden).abs().max()) > 5 * float((found - hidden).abs().max())


def test_an_adapter_is_left_in_pefts_layout_with_the_id_of_its_base(
    clinic: Any, trained: Callable[..., Path], scored: Any, tmp_path: Path
) -> None:
    base, folder = trained(adapter="lora", quantization="none"), tmp_path / "exported"
    reporter = SilentReporter()
    clinic("export", f"export.folder={folder}", reporter=reporter)
    card = json.loads((folder / "export.json").read_text())
    assert card["backbone"]["base_model"] == str(base)
    assert not (folder / "backbone").exists()
    assert any(f"a folder of this machine, {base}" in text for text in reporter.warnings)
    plain = PeftModel.from_pretrained(
        AutoModel.from_pretrained(card["backbone"]["base_model"]), folder / "adapter"
    )
    torch.testing.assert_close(read(plain, folder / "adapter"), scored[0][0], rtol=1e-5, atol=1e-5)


def test_the_card_names_every_file_by_its_hash(
    clinic: Any, trained: Callable[..., Path], tmp_path: Path
) -> None:
    trained(adapter="none", quantization="none")
    folder = tmp_path / "deep" / "exported"
    clinic("export", f"export.folder={folder}")
    card = json.loads((folder / "export.json").read_text())
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    assert card["files"] == {
        name: hash_file(path) for name, path in files.items() if name != "export.json"
    }
    assert {
        card["decoder"]["file"],
        card["labels"]["file"],
        "finetune/scorers.json",
        "run.json",
    } <= files.keys()
    assert (
        not {"corpus/gold.parquet", "corpus/documents.parquet", "finetune/validation.parquet"}
        & files.keys()
    )
    assert (card["backbone"]["folder"], card["labels"]["count"], card["decoder"]["hidden"]) == (
        None,
        12,
        64,
    )


@pytest.mark.parametrize("adapter", ["none", "full", "lora"])
def test_graphs_score_as_the_network_does(
    clinic: Any, small_model: Callable[..., Path], scored: Any, tmp_path: Path, adapter: str
) -> None:
    backbone = (
        f"{{name: hf-encoder, model: {small_model(BertConfig)}, adapter: {adapter}, window: "
        f"8, overlap: 2, max_tokens: 40}}"
    )
    sets = (
        f"model.backbone={backbone}",
        "finetune.init=random",
        "finetune.head=random",
        "finetune.scorers=none",
        "finetune.unfreeze=all",
        "finetune.rate_backbone=0.01",
    )
    folder = tmp_path / "exported"
    clinic("finetune", *sets)
    clinic("export", f"export.folder={folder}", "export.onnx=fp32")
    hidden, logits = scored[0]
    tokens = AutoTokenizer.from_pretrained(folder / "onnx")(TEXT, return_tensors="np")
    encoder, decoder = (
        onnxruntime.InferenceSession(folder / "onnx" / f"{name}.onnx")
        for name in ("encoder", "decoder")
    )
    (states,) = encoder.run(None, {name: tokens[name] for name in ("input_ids", "attention_mask")})
    (found,) = decoder.run(None, {"hidden": states, "mask": tokens["attention_mask"] > 0})
    torch.testing.assert_close(torch.from_numpy(states), hidden, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(torch.from_numpy(found), logits, rtol=1e-4, atol=1e-4)
    network: Any = load(clinic.path, sets=["machine.precision=fp32"]).model
    furthest, same = measure_graphs(
        network.network, folder / "onnx", [TEXT, f"{TEXT} " * 6, "a"]
    )  # windows, and padding
    assert (furthest < 1e-5, same) == (True, 1.0)
    assert json.loads((folder / "export.json").read_text())["onnx"]["window"] == 8


def test_int8_graphs_are_smaller_and_it_is_said_how_far_scores_move(
    clinic: Any, small_model: Callable[..., Path], tmp_path: Path
) -> None:
    model, reporter = small_model(BertConfig, hidden_size=64), SilentReporter()
    clinic(
        "finetune",
        f"model.backbone={{name: hf-encoder, model: {model}}}",
        "finetune.init=random",
        "finetune.head=random",
        "finetune.scorers=none",
    )
    for numbers in ("fp32", "int8"):
        clinic(
            "export",
            f"export.folder={tmp_path / numbers}",
            f"export.onnx={numbers}",
            reporter=reporter,
        )
    whole, small = (
        (tmp_path / numbers / "onnx" / "encoder.onnx").stat().st_size
        for numbers in ("fp32", "int8")
    )
    assert small < 0.6 * whole
    said = next(note for note in reporter.notes if note.startswith("ONNX in int8"))
    assert 0 < float(said.partition("move by ")[2].partition(" ")[0]) < 0.1
    assert json.loads((tmp_path / "int8" / "export.json").read_text())["onnx"][
        "measured"
    ] in said.replace(" (", ", on ")


def test_what_has_no_graphs_is_refused(
    clinic: Any, trained: Callable[..., Path], fitted: Path, tmp_path: Path
) -> None:
    trained(adapter="none", quantization="none")
    for export in (clinic, partial(run_at, fitted)):
        with pytest.raises(ComponentError, match="has no ONNX graphs"):
            export("export", f"export.folder={tmp_path / 'none'}", "export.onnx=fp32")
    assert not (tmp_path / "none").exists()


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a model without a network, whose corpus is gone."""
    path = tmp_path_factory.mktemp("fitted") / "run"
    fit(**SMALL_CORPUS).save(path)
    return path


def test_an_export_suggests_as_the_run_did_without_its_corpus(fitted: Path, tmp_path: Path) -> None:
    folder, texts = tmp_path / "exported", ["a fracture with pain", "fever"]
    run_at(fitted, "export", f"export.folder={folder}")
    assert load(folder).suggest(texts, why=True) == load(fitted).suggest(texts, why=True)
    kept = [path.read_text() for path in folder.rglob("*") if path.suffix in (".json", ".yaml")]
    assert not any(
        "plant-" in text and "/corpus" in text for text in kept
    )  # no folder of this machine
    with pytest.raises(ArtefactError, match="an exported model"):
        run_at(folder, "predict", "predict.split=validation")


def test_a_changed_file_is_refused(fitted: Path, tmp_path: Path) -> None:
    """But for those that no command of plant reads."""
    folder = tmp_path / "exported"
    run_at(fitted, "export", f"export.folder={folder}")
    kept = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    unread = {"README.md", "export.json", "labels.json", "recipe.yaml", LIGHT_LOCK}
    assert len(kept) > len(unread) + 5
    for path, content in kept.items():
        if path.name not in unread:
            path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
            with pytest.raises(ArtefactError, match="damaged"):
                load(folder)
            path.write_bytes(content)
    assert load(folder).suggest(["fever"])[0]


def test_a_model_without_a_network_says_what_opens_it(fitted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "our model"
    run_at(fitted, "export", f"export.folder={folder}")
    assert (folder / LIGHT_LOCK).read_bytes() == (ROOT / LIGHT_LOCK).read_bytes()
    assert f"-r 'our model/{LIGHT_LOCK}'\n" in (folder / "README.md").read_text()


@pytest.mark.parametrize(
    "decoder", ["{name: label-attention, heads: 2, pool: 8}", "{name: planted-l2r}"]
)
def test_an_export_with_a_network_suggests_as_the_run_did(
    clinic: Any, trained: Callable[..., Path], tmp_path: Path, decoder: str
) -> None:
    trained(
        f"model.decoder={decoder}", adapter="lora", quantization="none"
    )  # planted-l2r looks words up in the relevance table
    folder = tmp_path / "exported"
    clinic("export", f"export.folder={folder}")
    here, there = (
        load(path, sets=["machine.precision=fp32"]).suggest([TEXT], k=3)
        for path in (clinic.path, folder)
    )
    assert here == there


def test_the_model_card_has_the_figures_of_the_run(clinic: Any, tmp_path: Path) -> None:
    clinic("finetune", "finetune.network=false")
    clinic("export", f"export.folder={tmp_path / 'before'}")
    clinic("eval", "eval.bootstrap=20")
    clinic("export", f"export.folder={tmp_path / 'after'}", "export.licence=apache-2.0")
    before, after = ((tmp_path / name / "README.md").read_text() for name in ("before", "after"))
    front = yaml.safe_load(after.split("---")[1])
    assert (front["license"], front["library_name"], front["language"]) == (
        "apache-2.0",
        "plant",
        ["en"],
    )
    assert "license" not in yaml.safe_load(before.split("---")[1])
    assert "The model was not measured on test." in before
    found = json.loads((clinic.path / "eval" / "metrics.json").read_text())["metrics"]["P@1"]
    points = {name: f"{100 * value:.1f}" for name, value in found.items()}
    assert f"| P@1 | {points['value']} [{points['low']}, {points['high']}] |" in after
    trained = json.loads((clinic.path / "finetune" / "stage.json").read_text())["summary"]
    assert f"{100 * trained['micro-F1']:.1f} |" in next(
        line for line in before.splitlines() if line.startswith("| micro-F1 |")
    )
    assert json.loads((clinic.path / "corpus" / "splits.json").read_text())["data_hash"] in after


def test_only_an_export_is_replaced_and_only_by_force(
    clinic: Any, trained: Callable[..., Path], tmp_path: Path
) -> None:
    trained(adapter="none", quantization="none")
    folder, own = tmp_path / "exported", tmp_path / "own"
    own.mkdir()
    (own / "thesis.txt").write_text("ten years")
    clinic("export", f"export.folder={folder}")
    with pytest.raises(UsageError, match="an earlier export is in the way") as caught:
        clinic("export", f"export.folder={folder}")
    assert "--force" in caught.value.todo
    (folder / "stray.txt").write_text("of the first")
    clinic("export", f"export.folder={folder}", force=True)
    assert not (folder / "stray.txt").exists()
    with pytest.raises(UsageError, match="something other than an export"):
        clinic("export", f"export.folder={own}", force=True)
    assert (own / "thesis.txt").read_text() == "ten years"
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []
