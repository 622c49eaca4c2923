"""The files of a language model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from plant_awd_lstm import AwdLstmOptions
from plant_awd_lstm.language_model import Encoder, Sizes, Vocabulary
from plant_awd_lstm.language_model_files import read_description, read_weights, weights_path

from plant_cli.api import ArtefactError

from .conftest import SIZES


def test_weights_come_back(language_model: Callable[..., Path], vocabulary: Vocabulary) -> None:
    folder = language_model()
    sizes, perplexities = read_description(folder)
    assert (sizes, perplexities) == (SIZES, {"forward": 12.5, "backward": 13.5})
    first, second = (Encoder(len(vocabulary), sizes, AwdLstmOptions()) for _ in range(2))
    read_weights(folder, "forward", first, vocabulary)
    read_weights(folder, "backward", second, vocabulary)
    torch.manual_seed(0)
    drawn = Encoder(len(vocabulary), sizes, AwdLstmOptions())
    assert torch.equal(first.embedding.weight, drawn.embedding.weight)
    assert not torch.equal(second.embedding.weight, drawn.embedding.weight)


def test_weights_of_another_vocabulary_are_refused(language_model: Callable[..., Path], vocabulary: Vocabulary) -> None:
    folder = language_model()
    other = Vocabulary((*vocabulary.words[:-1], "another"))
    with pytest.raises(ArtefactError, match="another vocabulary") as caught:
        read_weights(folder, "forward", Encoder(len(other), SIZES, AwdLstmOptions()), other)
    assert str(weights_path(folder, "forward")) in caught.value.where


def test_weights_of_other_sizes_are_refused(language_model: Callable[..., Path], vocabulary: Vocabulary) -> None:
    folder = language_model()
    with pytest.raises(ArtefactError, match=r"'layers.0.bias_hh' .* have shape \[36\], where the network has \[40\]"):
        read_weights(folder, "forward", Encoder(len(vocabulary), Sizes(embedding=6, hidden=10, layers=2), AwdLstmOptions()), vocabulary)


def test_a_direction_that_was_not_trained_is_named(language_model: Callable[..., Path], vocabulary: Vocabulary) -> None:
    folder = language_model()
    weights_path(folder, "backward").unlink()
    with pytest.raises(ArtefactError, match="no language model that reads backward") as caught:
        read_weights(folder, "backward", Encoder(len(vocabulary), SIZES, AwdLstmOptions()), vocabulary)
    assert "--directions backward" in caught.value.todo


@pytest.mark.parametrize("content", ["{}", "[]", json.dumps({"embedding": "x", "hidden": 1, "layers": 1, "perplexity": {}})])
def test_a_damaged_description_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "language-model.json").write_text(content)
    with pytest.raises(ArtefactError, match="damaged"):
        read_description(tmp_path)
