from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from builders import record_outputs

from plant_cli.api import ArtefactError, Choice, ModelSection
from plant_cli.data.files import hash_strings
from plant_cli.data.records import stamp
from plant_cli.network.assembly import ModelDescription, read_description, read_weights, require_words, write_model
from plant_cli.network.tensors import write_tensors

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
