"""A network is assembled, saved and read back; its files name what they belong to, and damage
is told.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from builders import record_outputs
from plant_decoders import LabelAttentionOptions
from plant_decoders.label_attention import LabelAttention
from plant_network.assembly import (
    EarlierNetwork,
    Network,
    read_model_description,
    require_words,
    restore_network,
    save_network,
    title_queries,
)
from plant_network.design import Design, find_design
from plant_network.trainable_layers import restore_trainable, save_trainable
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
from plant_cli.data.tensors import read_tensors, write_tensors
from plant_cli.registry import installed

Make = Callable[..., Any]
WEIGHTS, DESCRIPTION = "model.safetensors", "model.json"


@pytest.fixture
def folder(small_network: Make, tmp_path: Path) -> Path:
    """A saved network."""
    path = tmp_path / "run" / "finetune"
    path.mkdir(parents=True)
    save_network(small_network(), path)
    return path


def score(network: Any) -> torch.Tensor:
    network.eval()
    with torch.no_grad():
        tokens = network.backbone.tokenize(["a fever and a cough", "a leg"])
        logits: torch.Tensor = network.decoder(Reading.of(*network.backbone.encode(tokens)))
    return logits


@pytest.mark.parametrize("frozen", [False, True])
def test_what_was_saved_scores_the_same_from_the_same_bytes(
    small_network: Make, tmp_path: Path, frozen: bool
) -> None:
    saved, other = small_network(seed=0), small_network(seed=1)
    if frozen:
        saved.freeze_backbone()
        other.backbone_module.load_state_dict(saved.backbone_module.state_dict())
    for folder in (tmp_path, tmp_path / "again"):
        folder.mkdir(exist_ok=True)
        save_network(saved, folder)
    assert (tmp_path / "backbone.safetensors").exists() is not frozen
    assert not torch.equal(score(saved), score(other))
    restore_network(other, tmp_path)
    assert torch.equal(score(saved), score(other))
    description = read_model_description(tmp_path)
    assert (description.section, description.backbone_changed, description.seed) == (
        saved.section,
        not frozen,
        0,
    )
    for name in (WEIGHTS, DESCRIPTION):
        assert (tmp_path / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_whoever_may_read_new_files_may_read_the_network(
    small_network: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert [
        stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*") if path.is_file()
    ] == [0o644] * 3


@pytest.mark.parametrize(
    ("change", "said", "against"),
    [
        ({"label_hash": "c" * 64}, "made for another label order", "corpus (cccccccccccc)"),
        (
            {"tokenizer_hash": "c" * 64},
            "made for another tokenizer",
            "what the backbone reads with now (cccccccccccc)",
        ),
        ({"format": "2"}, "the model has format 2", ""),
        ({"labels": 5}, "do not fit the decoder", ""),
    ],
)
def test_weights_of_something_else_are_refused(
    small_network: Make, folder: Path, change: dict[str, Any], said: str, against: str
) -> None:
    other = small_network(labels=change.get("labels", 4))
    other.label_hash = change.get("label_hash", small_network().label_hash)
    other.backbone.tokenizer_hash = change.get("tokenizer_hash", other.backbone.tokenizer_hash)
    if "format" in change:
        tensors, marks = read_tensors(folder / WEIGHTS, "it", "")
        write_tensors(folder / WEIGHTS, tensors, marks | change)
    with pytest.raises(ArtefactError, match=said) as caught:
        restore_network(other, folder)
    assert str(folder / WEIGHTS) in caught.value.where
    assert against in caught.value.where
    assert "--force" in caught.value.todo


@pytest.mark.parametrize("name", [WEIGHTS, DESCRIPTION, "backbone.safetensors", "scorers.json"])
def test_a_flipped_bit_in_any_file_of_the_model_is_told(
    small_network: Make, folder: Path, name: str
) -> None:
    """Also in the numbers of the tensors, where every reader of the format would take it for
    another number.
    """
    (folder / "scorers.json").write_bytes(b"0" * 64)
    record_outputs(folder, "finetune")
    restore_network(small_network(), folder)
    content = bytearray((folder / name).read_bytes())
    content[-2] ^= 2
    (folder / name).write_bytes(content)
    with pytest.raises(
        ArtefactError, match=f"the file '{name}' of the stage 'finetune' is damaged"
    ):
        restore_network(small_network(), folder)


@pytest.mark.parametrize(
    "change",
    [{"decoder": None}, {"seed": "x"}, {"backbone": 3}, {"label_queries": "nothing"}],
    ids=["lacking", "seed", "type", "value"],
)
def test_a_damaged_description_is_told(folder: Path, change: dict[str, object]) -> None:
    path = folder / DESCRIPTION
    content = {**json.loads(path.read_text()), **change}
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
    with pytest.raises(ArtefactError, match="description of the saved model is damaged"):
        read_model_description(folder)


def test_words_of_another_relevance_table_are_refused(small_network: Make, folder: Path) -> None:
    """A decoder that looks at words knows them by their row; others know none."""
    assert "words" not in json.loads((folder / DESCRIPTION).read_text())
    require_words(folder, ["anything"], "mig")
    network, words = small_network(), ["fever", "cough"]
    network.word_hash = hash_strings(words)
    save_network(network, folder)
    require_words(folder, words, "mig")
    with pytest.raises(ArtefactError, match="other words than the network") as caught:
        require_words(folder, words[::-1], "the-run/mig")
    assert "the-run/mig (2 words)" in caught.value.where


def test_a_frozen_backbone_stays_in_evaluation_mode(small_network: Make) -> None:
    network = small_network()
    assert network.train().backbone_module.training
    network.freeze_backbone()
    network.train()
    assert (
        network.backbone_module.training,
        network.decoder.training,
        network.backbone_is_frozen,
    ) == (False, True, True)


def test_title_queries_are_means_of_hidden_states_whatever_the_batch(small_network: Make) -> None:
    labels = LabelTable(
        ids=["a", "b", "c"], titles=["cough and fever", None, "leg"], train_counts=[1, 1, 1]
    )
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
    assert short.section.backbone.options["hidden"] > 0
    assert find_design(short.section, installed().resolve) == short
    with pytest.raises(ComponentError, match="tinny"):
        find_design(ModelSection(backbone=Choice(name="tinny")), installed().resolve)


class Folder(Options):
    folder: str | None = None


def design(**options: Any) -> Design:
    """A design whose backbone's hash says which folder it was loaded from."""

    def load(given: Folder, machine: MachineSection) -> Any:
        nothing = dict.fromkeys(
            ("tokenize", "encode", "module", "layer_groups", "save", "restore"), print
        )
        return SimpleNamespace(hidden_size=1, max_length=1, tokenizer_hash=given.folder, **nothing)

    backbone = BackboneSpec(
        name="b",
        summary="B.",
        options=Folder,
        load=load,
        start=BackboneStart(stage="lm", option="folder"),
    )
    decoder = DecoderSpec(name="d", summary="D.", build=lambda given, shape: None)  # type: ignore[arg-type,return-value]
    return Design(
        section=ModelSection(),
        backbone=(backbone, Folder(**options)),
        decoder=(decoder, NoOptions()),
    )


def test_a_backbone_starts_from_the_stage_of_the_run() -> None:
    asked: list[str] = []
    started = design().start_from(lambda stage: asked.append(stage) or Path("run") / stage)  # type: ignore[func-returns-value]
    assert started.load_backbone(MachineSection()).tokenizer_hash == "run/lm"
    assert asked == ["lm"]
    assert (
        started.backbone[1] == Folder()
    )  # the run's own folder is no option: networks of two runs have one description


def test_a_named_folder_comes_first_and_other_backbones_ask_for_no_stage() -> None:
    named, plain = (
        design(folder="mine"),
        find_design(ModelSection(backbone=Choice(name="tiny")), installed().resolve),
    )
    for unchanged in (named, plain):
        assert (
            unchanged.start_from(lambda stage: pytest.fail("asked for the stage of the run"))
            is unchanged
        )
    assert named.load_backbone(MachineSection()).tokenizer_hash == "mine"


def make_layer(seed: int, size: int = 3) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(size, 2)


def test_what_is_trained_comes_back_and_nothing_else(tmp_path: Path) -> None:
    saved, other = make_layer(0), make_layer(1)
    saved.bias.requires_grad_(False)
    bias = other.bias.detach().clone()
    save_trainable(saved, tmp_path / "backbone.safetensors")
    restore_trainable(other, tmp_path / "backbone.safetensors")
    assert torch.equal(other.weight, saved.weight)
    assert torch.equal(other.bias, bias)
    save_trainable(make_layer(0, 4), tmp_path / "backbone.safetensors")
    with pytest.raises(ArtefactError, match="parameter 'weight' of shape") as caught:
        restore_trainable(other, tmp_path / "backbone.safetensors")
    assert caught.value.expected == "shape [2, 3]"


METADATA = {
    name: name.upper() for name in ("format", "label_hash", "tokenizer_hash", "weight", "centre")
}
WRITER = f"""
import sys
from pathlib import Path
import numpy as np
from plant_cli.data.tensors import write_tensors
write_tensors(Path(sys.argv[1]), {{"b": np.arange(3.0), "a": np.ones(2)}}, {METADATA}, framework="np")
"""


def test_tensors_and_metadata_come_back(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1.5], dtype=torch.bfloat16)}
    write_tensors(tmp_path / "x", tensors, METADATA)
    found, metadata = read_tensors(tmp_path / "x", "the weights", "")
    assert metadata == METADATA
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


def test_arrays_come_back_however_they_lie_in_memory_and_metadata_may_be_missing(
    tmp_path: Path,
) -> None:
    array = np.arange(6, dtype=np.float16).reshape(2, 3)
    write_tensors(
        tmp_path / "a", {"transposed": array.T, "every second": array[:, ::2]}, framework="np"
    )
    found, metadata = read_tensors(tmp_path / "a", "the arrays", "", framework="np")
    np.testing.assert_array_equal(found["transposed"], array.T)
    np.testing.assert_array_equal(found["every second"], array[:, ::2])
    assert metadata == {}


@pytest.mark.parametrize("framework", ["pt", "np"])
def test_tensors_of_what_is_no_number_are_refused(tmp_path: Path, framework: Any) -> None:
    bad = np.array([1.0, np.nan], dtype=np.float32)
    given = torch.from_numpy(bad) if framework == "pt" else bad
    write_tensors(tmp_path / "a", {"one": given}, framework=framework)
    with pytest.raises(ArtefactError, match="the weights cannot be read: 'one' has values that"):
        read_tensors(tmp_path / "a", "the weights", "", framework=framework)


def test_equal_content_gives_equal_bytes_in_every_process(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.safetensors" for number in range(4)]
    for file in files:
        subprocess.run([sys.executable, "-c", WRITER, str(file)], check=True)
    assert len({file.read_bytes() for file in files}) == 1


@pytest.mark.parametrize(
    "damage", [lambda content: b"", lambda content: b"\0" * 64, lambda content: content[:200], None]
)
def test_a_damaged_or_lost_file_is_told_in_four_parts(
    tmp_path: Path, damage: Callable[[bytes], bytes] | None
) -> None:
    path = tmp_path / "backbone.safetensors"
    write_tensors(path, {"a": torch.arange(100.0)})
    content = path.read_bytes()
    path.unlink()
    if damage is not None:
        path.write_bytes(damage(content))
    with pytest.raises(ArtefactError, match="the weights cannot be read") as caught:
        read_tensors(path, "the weights", "train again")
    assert (caught.value.where, caught.value.todo) == (str(path), "train again")
    with pytest.raises(ArtefactError, match="the trained weights of the backbone cannot be read"):
        restore_trainable(make_layer(0), path)


def test_an_earlier_network_gives_known_labels_their_rows(
    small_network: Callable[..., Any], tmp_path: Path
) -> None:
    earlier, network = small_network(seed=1, labels=3), small_network(seed=2, labels=4)
    save_network(earlier, tmp_path)
    before, fresh = (
        earlier.decoder.state_dict(),
        {name: value.clone() for name, value in network.decoder.state_dict().items()},
    )
    EarlierNetwork(folder=tmp_path, labels=3, rows=np.array([2, -1, 0, 1])).carry_over(network)
    after = network.decoder.state_dict()
    assert torch.equal(after["queries"][[0, 2, 3]], before["queries"][[2, 0, 1]])
    assert torch.equal(after["queries"][1], fresh["queries"][1])
    shared = [name for name, value in before.items() if value.shape == after[name].shape]
    assert shared
    assert all(torch.equal(after[name], before[name]) for name in shared)
    with pytest.raises(ArtefactError, match="another decoder"):
        EarlierNetwork(folder=tmp_path, labels=2, rows=np.array([0, 1, -1, -1])).carry_over(network)
