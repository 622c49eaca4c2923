"""The files of a language model, and published weights: names of fastai, rows by word, shapes
that do not fit.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from plant_awd_lstm import AwdLstmOptions
from plant_awd_lstm.language_model import (
    BEGIN,
    PAD,
    UNKNOWN,
    Encoder,
    LanguageModel,
    Sizes,
    Vocabulary,
)
from plant_awd_lstm.language_model_files import (
    import_weights,
    read_language_model_description,
    read_language_model_weights,
    read_words,
    weights_path,
)
from safetensors.torch import save_file
from torch import Tensor

from plant_cli.api import ArtefactError, DataError

from .conftest import SIZES


def test_weights_come_back(language_model: Callable[..., Path], vocabulary: Vocabulary) -> None:
    folder = language_model()
    sizes, perplexities = read_language_model_description(folder)
    assert (sizes, perplexities) == (SIZES, {"forward": 12.5, "backward": 13.5})
    first, second = (Encoder(len(vocabulary), sizes, AwdLstmOptions()) for _ in range(2))
    read_language_model_weights(folder, "forward", first, vocabulary)
    read_language_model_weights(folder, "backward", second, vocabulary)
    torch.manual_seed(0)
    drawn = Encoder(len(vocabulary), sizes, AwdLstmOptions())
    assert torch.equal(first.embedding.weight, drawn.embedding.weight)
    assert not torch.equal(second.embedding.weight, drawn.embedding.weight)


def test_weights_that_do_not_belong_here_are_refused(
    language_model: Callable[..., Path], vocabulary: Vocabulary
) -> None:
    folder = language_model()
    other = Vocabulary((*vocabulary.words[:-1], "another"))
    with pytest.raises(ArtefactError, match="another vocabulary") as caught:
        read_language_model_weights(
            folder, "forward", Encoder(len(other), SIZES, AwdLstmOptions()), other
        )
    assert str(weights_path(folder, "forward")) in caught.value.where
    larger = Encoder(len(vocabulary), Sizes(embedding=6, hidden=10, layers=2), AwdLstmOptions())
    with pytest.raises(
        ArtefactError,
        match=r"'layers.0.bias_hh' .* have shape \[36\], where the network has \[40\]",
    ):
        read_language_model_weights(folder, "forward", larger, vocabulary)
    weights_path(folder, "backward").unlink()
    with pytest.raises(ArtefactError, match="no language model that reads backward") as caught:
        read_language_model_weights(folder, "backward", larger, vocabulary)
    assert "--directions backward" in caught.value.todo


@pytest.mark.parametrize(
    "content",
    ["{}", "[]", json.dumps({"embedding": "x", "hidden": 1, "layers": 1, "perplexity": {}})],
)
def test_a_damaged_description_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "language-model.json").write_text(content)
    with pytest.raises(ArtefactError, match="damaged"):
        read_language_model_description(tmp_path)


WORDS = ["xxunk", "xxpad", "xxbos", "zebra", "fever", "cough"]


@pytest.fixture
def model(vocabulary: Vocabulary) -> LanguageModel:
    torch.manual_seed(3)
    return LanguageModel(Encoder(len(vocabulary), SIZES, AwdLstmOptions()))


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("\n".join(WORDS), encoding="utf-8")
    return path


def fastai() -> dict[str, Tensor]:
    """Tensors as fastai names them, of the sizes of `SIZES`."""
    torch.manual_seed(4)
    found = {
        "0.encoder.weight": torch.randn(len(WORDS), 6),
        "1.decoder.bias": torch.randn(len(WORDS)),
    }
    found["0.encoder_dp.emb.weight"] = found["1.decoder.weight"] = found["0.encoder.weight"].clone()
    for number, (size, hidden) in enumerate([(6, 9), (9, 6)]):
        raw = torch.randn(4 * hidden, hidden)
        found[f"0.rnns.{number}.weight_hh_l0_raw"] = raw
        found[f"0.rnns.{number}.module.weight_hh_l0"] = torch.zeros_like(raw)  # a dropped copy
        found[f"0.rnns.{number}.module.weight_ih_l0"] = torch.randn(4 * hidden, size)
        found[f"0.rnns.{number}.module.bias_ih_l0"] = torch.randn(4 * hidden)
        found[f"0.rnns.{number}.module.bias_hh_l0"] = torch.randn(4 * hidden)
    return found


def save(kind: str, tensors: dict[str, Tensor], folder: Path) -> Path:
    path = folder / f"published.{'safetensors' if kind == 'safetensors' else 'pth'}"
    if kind == "safetensors":
        save_file({name: tensor.clone() for name, tensor in tensors.items()}, path)
    else:
        torch.save(
            {"model": tensors, "opt": {"lr": 1.0}} if kind == "with optimiser" else tensors, path
        )
    return path


@pytest.mark.parametrize("kind", ["safetensors", "torch", "with optimiser"])
def test_rows_are_matched_by_word(
    kind: str, model: LanguageModel, vocabulary: Vocabulary, words: Path, tmp_path: Path
) -> None:
    given = fastai()
    taken = import_weights(model, vocabulary, save(kind, given, tmp_path), words)
    assert taken == (2, len(vocabulary) - 3)
    embedding, theirs = model.encoder.embedding.weight, given["0.encoder.weight"]
    for word, row in (("fever", 4), ("cough", 5)):
        assert torch.equal(embedding[vocabulary.rows[word]], theirs[row])
        assert model.output_bias[vocabulary.rows[word]] == given["1.decoder.bias"][row]
    torch.testing.assert_close(embedding[vocabulary.rows["patient"]], theirs.mean(0))
    assert torch.equal(embedding[UNKNOWN], theirs[0])
    assert torch.equal(embedding[BEGIN], theirs[2])
    assert not bool(embedding[PAD].any())
    for number, layer in enumerate(model.encoder.layers):
        assert torch.equal(
            layer.get_parameter("weight_hh"), given[f"0.rnns.{number}.weight_hh_l0_raw"]
        )
        assert torch.equal(
            layer.get_parameter("weight_ih"), given[f"0.rnns.{number}.module.weight_ih_l0"]
        )


def test_own_weights_are_read_too(
    language_model: Callable[..., Path], model: LanguageModel, vocabulary: Vocabulary
) -> None:
    folder = language_model(seed=9)
    import_weights(
        model, vocabulary, folder / "awd-lstm-forward.safetensors", folder / "vocabulary.json"
    )
    torch.manual_seed(9)
    drawn = Encoder(len(vocabulary), SIZES, AwdLstmOptions())
    assert torch.equal(
        model.encoder.layers[1].get_parameter("weight_hh"),
        drawn.layers[1].get_parameter("weight_hh"),
    )
    assert torch.equal(model.encoder.embedding.weight[1:], drawn.embedding.weight[1:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"0.rnns.0.weight_hh_l0_raw": (36, 10)},
            r"'encoder.layers.0.weight_hh' have shape \[36, 10\], where this network needs \[36, 9\]",
        ),
        (
            {"0.rnns.1.module.weight_ih_l0": None},
            r"'encoder.layers.1.weight_ih' have no place, where this network needs \[24, 9\]",
        ),
        (
            {"0.encoder.weight": (6, 7)},
            r"'encoder.embedding.weight' have shape \[6, 7\], where this network needs \[6, 6\]",
        ),
        (
            {"0.encoder.weight": (8, 6)},
            r"'encoder.embedding.weight' have shape \[8, 6\], where this network needs \[6, 6\]",
        ),
        (
            {"0.rnns.2.weight_hh_l0_raw": (24, 6)},
            "'encoder.layers.2.weight_hh' have no place in this network",
        ),
        (
            {"0.rnns.1.module.bias_hh_l0": -torch.inf},
            "'encoder.layers.1.bias_hh' hold what is not a finite number",
        ),
        (
            {"0.encoder.weight": torch.inf},
            "'encoder.embedding.weight' hold what is not a finite number",
        ),
        (
            {"1.decoder.bias": (7,)},
            r"'output_bias' have shape \[7\], where this network needs \[6\]",
        ),
    ],
    ids=lambda change: next(iter(change)) if isinstance(change, dict) else "",
)
def test_weights_that_do_not_fit_are_refused_with_what_and_where(
    change: dict[str, Any],
    message: str,
    model: LanguageModel,
    vocabulary: Vocabulary,
    words: Path,
    tmp_path: Path,
) -> None:
    given = fastai()
    for name, value in change.items():
        old = given.pop(name, None)
        if isinstance(value, tuple):
            given[name] = torch.zeros(value)
        elif value is not None and old is not None:
            given[name] = torch.full_like(old, value)
    path = save("safetensors", given, tmp_path)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    with pytest.raises(DataError, match=message) as caught:
        import_weights(model, vocabulary, path, words)
    assert str(path) in caught.value.where
    assert "8, 6" not in message or "one row for each of the 6 words" in caught.value.expected
    if "1.decoder.bias" not in change:
        assert all(torch.equal(before[n], p) for n, p in model.named_parameters())


def test_only_line_feeds_end_words(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes("xxunk\r\nxxpad\n\x85\na\u2028b\nthe\n".encode())
    assert read_words(path) == ["xxunk", "xxpad", "\x85", "a\u2028b", "the"]


def test_words_of_another_language_are_refused(
    model: LanguageModel, vocabulary: Vocabulary, tmp_path: Path
) -> None:
    """Every embedding would start from one and the same mean."""
    words = tmp_path / "words.txt"
    words.write_text("xxunk\nxxpad\nxxbos\nder\ndie\ndas\n")
    with pytest.raises(
        DataError, match=r"none of the [0-9]+ words of the corpus has a published embedding"
    ) as caught:
        import_weights(model, vocabulary, save("safetensors", fastai(), tmp_path), words)
    assert str(words) in caught.value.where
    assert (
        f"'der', 'die', 'das', …, where the corpus has {vocabulary.words[3]!r}, "
        in caught.value.where
    )


class Trap:
    """Would write a file if it were unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_file_that_would_run_code_is_refused(
    model: LanguageModel, vocabulary: Vocabulary, words: Path, tmp_path: Path
) -> None:
    path = tmp_path / "published.pth"
    torch.save({**fastai(), "trap": Trap(tmp_path / "ran")}, path)
    with pytest.raises(ArtefactError, match="cannot be read as tensors alone"):
        import_weights(model, vocabulary, path, words)
    assert not (tmp_path / "ran").exists()


def test_other_files_are_refused(
    model: LanguageModel, vocabulary: Vocabulary, words: Path, tmp_path: Path
) -> None:
    with pytest.raises(ArtefactError, match="no published weights"):
        import_weights(model, vocabulary, tmp_path / "absent.pth", words)
    with pytest.raises(ArtefactError, match="no AWD-LSTM"):
        import_weights(
            model, vocabulary, save("torch", {"bert.weight": torch.zeros(2)}, tmp_path), words
        )
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(ArtefactError, match="names no tensors"):
        import_weights(model, vocabulary, tmp_path / "list.pth", words)
    (tmp_path / "words.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(DataError, match="no list of texts"):
        import_weights(
            model, vocabulary, save("torch", fastai(), tmp_path), tmp_path / "words.json"
        )
    (tmp_path / "itos.pkl").write_bytes(b"\x80\x04\x95")
    with pytest.raises(DataError, match="cannot be read") as caught:
        import_weights(model, vocabulary, save("torch", fastai(), tmp_path), tmp_path / "itos.pkl")
    assert "pickled list" in caught.value.todo
