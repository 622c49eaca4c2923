"""A network is assembled, saved and read back, with the shapes and layers that its parts name."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import record_outputs
from plant_decoders import LabelAttentionOptions
from plant_decoders.label_attention import LabelAttention
from torch import nn

from plant_cli.api import (
    ArtefactError,
    BackboneSpec,
    BackboneStart,
    Choice,
    ComponentError,
    DecoderShape,
    DecoderSpec,
    MachineSection,
    ModelSection,
    NoOptions,
    Options,
    Reading,
    WordDecoder,
)
from plant_cli.data.files import hash_strings
from plant_cli.data.labels import LabelTable
from plant_cli.data.records import stamp
from plant_cli.network.assembly import (
    ModelDescription,
    Network,
    read_description,
    read_weights,
    require_words,
    restore_network,
    save_network,
    title_queries,
    write_model,
)
from plant_cli.network.design import Design, find_design
from plant_cli.network.tensors import read_tensors, write_tensors
from plant_cli.network.windows import restore_trainable, save_trainable
from plant_cli.registry import installed

SECTION = ModelSection(backbone=Choice(name="tiny", options={"hidden": 16}))
DESCRIPTION = ModelDescription(section=SECTION, backbone_changed=True, seed=7)
TENSORS = {"query": torch.arange(6.0).reshape(2, 3), "bias": torch.zeros(2)}
LABELS, TOKENIZER = "a" * 64, "b" * 64


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "run" / "finetune"
    write_model(path, TENSORS, DESCRIPTION, labels=LABELS, tokenizer=TOKENIZER)
    return path


def read(folder: Path, labels: str = LABELS, tokenizer: str = TOKENIZER) -> dict[str, torch.Tensor]:
    return read_weights(folder, labels=labels, tokenizer=tokenizer)


def test_weights_and_description_come_back(folder: Path) -> None:
    found = read(folder)
    assert found.keys() == TENSORS.keys()
    assert all(torch.equal(found[name], TENSORS[name]) for name in TENSORS)
    assert read_description(folder) == DESCRIPTION


def test_the_same_model_is_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    write_model(tmp_path, dict(reversed(TENSORS.items())), DESCRIPTION, labels=LABELS, tokenizer=TOKENIZER)
    for name in ("model.safetensors", "model.json"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize(
    ("wanted", "what", "against"),
    [({"labels": "c" * 64}, "label order", "{run}/corpus"), ({"tokenizer": "c" * 64}, "tokenizer", "what the backbone reads with now")],
)
def test_another_label_order_or_tokenizer_names_both_sides(folder: Path, wanted: dict[str, str], what: str, against: str) -> None:
    with pytest.raises(ArtefactError, match=f"the model was made for another {what}") as caught:
        read(folder, **wanted)
    assert str(folder / "model.safetensors") in caught.value.where
    assert f"{against.format(run=folder.parent)} (cccccccccccc)" in caught.value.where
    assert f"run the stage '{folder.name}' again with --force" in caught.value.todo


def test_another_format_is_refused(folder: Path) -> None:
    write_tensors(folder / "model.safetensors", TENSORS, {**stamp(labels=LABELS, tokenizer=TOKENIZER), "format": "2"})
    with pytest.raises(ArtefactError, match="the model has format 2") as caught:
        read(folder)
    assert "format 1" in caught.value.expected
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("content", [b"", b"\x00" * 64])
def test_truncated_weights_are_told(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(ArtefactError, match="the weights cannot be read"):
        read(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "model.json", "backbone.safetensors", "scorers.json"])
def test_a_flipped_bit_in_any_file_of_the_model_is_told(folder: Path, name: str) -> None:
    """Also in the numbers of the tensors, where every reader of the format would take it for another number."""
    for other in ("backbone.safetensors", "scorers.json"):
        (folder / other).write_bytes(b"0" * 64)
    record_outputs(folder, "finetune")
    read(folder)
    content = bytearray((folder / name).read_bytes())
    content[-2] ^= 2
    (folder / name).write_bytes(content)
    with pytest.raises(ArtefactError, match=f"the file '{name}' of the stage 'finetune' is damaged"):
        read(folder)


@pytest.mark.parametrize(
    "change", [{"decoder": None}, {"seed": "x"}, {"backbone": 3}, {"label_queries": "nothing"}], ids=["lacking", "seed", "type", "value"]
)
def test_a_damaged_description_is_told(folder: Path, change: dict[str, object]) -> None:
    path = folder / "model.json"
    content = {**json.loads(path.read_text()), **change}
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
    with pytest.raises(ArtefactError, match="description of the saved model is damaged"):
        read_description(folder)


def test_words_of_another_relevance_table_are_refused(tmp_path: Path) -> None:
    """A decoder that looks at words knows them by their row."""
    folder, words = tmp_path / "finetune", ["fever", "cough"]
    write_model(folder, TENSORS, replace(DESCRIPTION, words=hash_strings(words)), labels=LABELS, tokenizer=TOKENIZER)
    require_words(folder, words, "mig")
    with pytest.raises(ArtefactError, match="other words than the network") as caught:
        require_words(folder, words[::-1], "the-run/mig")
    assert "the-run/mig (2 words)" in caught.value.where


def test_other_decoders_know_no_words(folder: Path) -> None:
    assert "words" not in json.loads((folder / "model.json").read_text())
    require_words(folder, ["anything"], "mig")


Make = Callable[..., Any]


def score(network: Any) -> torch.Tensor:
    network.eval()
    with torch.no_grad():
        logits: torch.Tensor = network.decoder(
            Reading.of(*network.backbone.encode(network.backbone.tokenize(["a fever and a cough", "a leg"])))
        )
    return logits


@pytest.mark.parametrize("frozen", [False, True])
def test_what_was_saved_scores_the_same(small_network: Make, tmp_path: Path, frozen: bool) -> None:
    saved, other = small_network(seed=0), small_network(seed=1)
    if frozen:
        saved.freeze_backbone()
        other.backbone_module.load_state_dict(saved.backbone_module.state_dict())
    save_network(saved, tmp_path)
    assert (tmp_path / "backbone.safetensors").exists() is not frozen
    assert not torch.equal(score(saved), score(other))
    restore_network(other, tmp_path)
    assert torch.equal(score(saved), score(other))
    assert read_description(tmp_path).section == saved.section


def test_whoever_may_read_new_files_may_read_the_network(small_network: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adapters are written by a library, in a folder of their own and for their owner alone."""

    def save(folder: Path) -> None:
        (folder / "adapter").mkdir()
        (folder / "adapter" / "adapter_model.safetensors").touch(0o600)

    network = small_network()
    monkeypatch.setattr(network.backbone, "save", save)
    before = os.umask(0o022)
    try:
        save_network(network, tmp_path)
    finally:
        os.umask(before)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o644}


def test_another_label_order_names_both_sides(small_network: Make, tmp_path: Path) -> None:
    save_network(small_network(), tmp_path / "finetune")
    other = small_network()
    other.label_hash = "f" * 64
    with pytest.raises(ArtefactError, match="another label order") as caught:
        restore_network(other, tmp_path / "finetune")
    assert str(tmp_path / "finetune" / "model.safetensors") in caught.value.where
    assert str(tmp_path / "corpus") in caught.value.where


def test_another_tokenizer_is_refused(small_network: Make, tmp_path: Path) -> None:
    save_network(small_network(), tmp_path)
    with pytest.raises(ArtefactError, match="another tokenizer"):
        restore_network(small_network(buckets=128), tmp_path)


def test_weights_of_another_shape_are_refused(small_network: Make, tmp_path: Path) -> None:
    save_network(small_network(labels=4), tmp_path)
    other = small_network(labels=5)
    other.label_hash = small_network(labels=4).label_hash
    with pytest.raises(ArtefactError, match="do not fit the decoder"):
        restore_network(other, tmp_path)


def test_a_frozen_backbone_stays_in_evaluation_mode(small_network: Make) -> None:
    network = small_network()
    assert network.train().backbone_module.training
    network.freeze_backbone()
    network.train()
    assert (network.backbone_module.training, network.decoder.training, network.backbone_is_frozen) == (False, True, True)


def test_title_queries_are_means_of_hidden_states_whatever_the_batch(small_network: Make) -> None:
    labels = LabelTable(ids=["a", "b", "c"], titles=["cough and fever", None, "leg"], train_counts=[1, 1, 1])
    backbone = small_network().backbone
    together, alone = (title_queries(backbone, labels, batch=size) for size in (64, 1))
    assert torch.allclose(together, alone, atol=1e-6)
    hidden, _ = backbone.encode(backbone.tokenize(["b"]))
    assert torch.allclose(together[1], hidden[0].mean(0), atol=1e-6)


def test_a_folded_decoder_still_gets_its_words(small_network: Make) -> None:
    plain = small_network()

    class Looking(LabelAttention):
        needs_words = True

    decoder = Looking(LabelAttentionOptions(heads=2, pool=8), DecoderShape(hidden=16, labels=4))
    index = LabelTable(ids=list("abcd"), titles=[None] * 4, train_counts=[1] * 4)
    looking = Network(plain.backbone, decoder, plain.section, index)
    for network, expected in ((plain, False), (looking, True)):
        network.fold_decoder()
        assert not isinstance(network.decoder, WordDecoder)
        assert network.needs_words is expected


def test_designs_are_equal_however_few_options_are_named() -> None:
    short = find_design(ModelSection(backbone=Choice(name="tiny")), installed().resolve)
    whole = find_design(short.section, installed().resolve)
    assert short.section.backbone.name == "tiny"
    assert short.section.backbone.options["hidden"] > 0
    assert whole == short


def test_an_unknown_component_is_refused() -> None:
    with pytest.raises(ComponentError, match="tinny"):
        find_design(ModelSection(backbone=Choice(name="tinny")), installed().resolve)


class Folder(Options):
    folder: str | None = None


def design(**options: Any) -> Design:
    """A design whose backbone says which folder it was loaded from."""

    def load(given: Folder, machine: MachineSection) -> Any:
        return given.folder

    backbone = BackboneSpec(name="b", summary="B.", options=Folder, load=load, start=BackboneStart(stage="lm", option="folder"))
    decoder = DecoderSpec(name="d", summary="D.", build=lambda given, shape: None)  # type: ignore[arg-type,return-value]
    return Design(section=ModelSection(), backbone=(backbone, Folder(**options)), decoder=(decoder, NoOptions()))


def test_a_backbone_starts_from_the_stage_of_the_run() -> None:
    asked: list[str] = []
    started = design().start_from(lambda stage: asked.append(stage) or Path("run") / stage)  # type: ignore[func-returns-value]
    assert str(started.load_backbone(MachineSection())) == "run/lm"
    assert asked == ["lm"]
    assert started.backbone[1] == Folder()  # the run's own folder is no option: networks of two runs have one description


def test_a_folder_that_the_user_names_comes_first() -> None:
    named = design(folder="mine")
    assert named.start_from(lambda stage: pytest.fail("asked for the stage of the run")) is named
    assert str(named.load_backbone(MachineSection())) == "mine"


def test_other_backbones_ask_for_no_stage() -> None:
    plain = find_design(ModelSection(backbone=Choice(name="tiny")), installed().resolve)
    assert plain.start_from(lambda stage: pytest.fail("asked for a stage")) is plain


def make_layer(seed: int) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(3, 2)


def test_what_is_trained_comes_back_and_nothing_else(tmp_path: Path) -> None:
    saved, other = make_layer(0), make_layer(1)
    saved.bias.requires_grad_(False)
    bias = other.bias.detach().clone()
    save_trainable(saved, tmp_path / "backbone.safetensors")
    restore_trainable(other, tmp_path / "backbone.safetensors")
    assert torch.equal(other.weight, saved.weight)
    assert torch.equal(other.bias, bias)


def test_backbone_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    save_trainable(nn.Linear(4, 2), tmp_path / "backbone.safetensors")
    with pytest.raises(ArtefactError, match="parameter 'weight' of shape") as caught:
        restore_trainable(make_layer(0), tmp_path / "backbone.safetensors")
    assert caught.value.expected == "shape [2, 3]"


@pytest.mark.parametrize("content", [b"", b"\0" * 60, None])
def test_a_damaged_or_lost_file_is_told(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "backbone.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ArtefactError, match="the trained weights of the backbone cannot be read") as caught:
        restore_trainable(make_layer(0), path)
    assert caught.value.exit_code == 4


METADATA = {name: name.upper() for name in ("format", "label_hash", "tokenizer_hash", "weight", "centre")}
WRITER = f"""
import sys
from pathlib import Path
import numpy as np
from plant_cli.network.tensors import write_tensors
write_tensors(Path(sys.argv[1]), {{"b": np.arange(3.0), "a": np.ones(2)}}, {METADATA}, framework="np")
"""


def read_back(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    return read_tensors(path, "the weights", "train again")


def test_tensors_and_metadata_come_back(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1.5], dtype=torch.bfloat16)}
    write_tensors(tmp_path / "x.safetensors", tensors, METADATA)
    found, metadata = read_back(tmp_path / "x.safetensors")
    assert metadata == METADATA
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


def test_arrays_of_numpy_too_and_metadata_may_be_missing(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x.safetensors", {"a": np.arange(3)}, framework="np")
    found, metadata = read_tensors(tmp_path / "x.safetensors", "it", "", framework="np")
    assert isinstance(found["a"], np.ndarray)
    assert (found["a"].tolist(), metadata) == ([0, 1, 2], {})


def test_arrays_that_lie_otherwise_in_memory_come_back_as_they_were(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float16).reshape(2, 3)
    write_tensors(tmp_path / "a", {"transposed": array.T, "every second": array[:, ::2]}, framework="np")
    found, _ = read_tensors(tmp_path / "a", "the arrays", "", framework="np")
    np.testing.assert_array_equal(found["transposed"], array.T)
    np.testing.assert_array_equal(found["every second"], array[:, ::2])


def test_equal_content_gives_equal_bytes_in_every_process(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.safetensors" for number in range(4)]
    for file in files:
        subprocess.run([sys.executable, "-c", WRITER, str(file)], check=True)
    assert len({file.read_bytes() for file in files}) == 1


@pytest.mark.parametrize("content", [b"", b"\x10\0\0\0\0\0\0\0{}", None])
def test_a_damaged_or_missing_file_is_an_error_in_four_parts(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ArtefactError, match="the weights cannot be read") as caught:
        read_back(path)
    assert (caught.value.where, caught.value.todo) == (str(path), "train again")


def test_half_a_file_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    write_tensors(path, {"a": torch.arange(100.0)})
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ArtefactError, match="cannot be read"):
        read_back(path)
