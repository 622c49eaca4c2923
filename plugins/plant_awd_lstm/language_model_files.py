"""Files of a language model: its weights, and published weights of others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from plant_awd_lstm import Direction
from plant_awd_lstm.language_model import (
    BEGIN,
    PAD,
    RESTORE_OR_PRETRAIN,
    SPECIAL,
    UNKNOWN,
    LanguageModel,
    Sizes,
    Vocabulary,
)
from plant_cli.api import ArtefactError, DataError, first_line
from plant_cli.api.errors import damaged_file
from plant_cli.kit import read_json, read_tensors, write_json, write_tensors

LANGUAGE_MODEL_FILE = "language-model.json"


def weights_path(folder: Path, direction: Direction) -> Path:
    """Where the weights of a direction lie."""
    return folder / f"awd-lstm-{direction}.safetensors"


def write_description(folder: Path, sizes: Sizes, perplexities: dict[str, float]) -> None:
    """Write the sizes, and the validation perplexity of each direction that was trained."""
    write_json(folder / LANGUAGE_MODEL_FILE, {**sizes, "perplexity": perplexities})


def read_language_model_description(folder: Path) -> tuple[Sizes, dict[str, float]]:
    """Sizes and perplexities of a language model."""
    what = "the description of the language model"
    known: Any = read_json(folder / LANGUAGE_MODEL_FILE, what)
    try:
        sizes = Sizes(
            embedding=int(known["embedding"]),
            hidden=int(known["hidden"]),
            layers=int(known["layers"]),
        )
        return sizes, {str(name): float(value) for name, value in known["perplexity"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        expected = "embedding, hidden, layers and perplexity, as the stage wrote them"
        raise damaged_file(
            what,
            "it lacks a key, or a value is no number",
            folder / LANGUAGE_MODEL_FILE,
            expected=expected,
            todo=RESTORE_OR_PRETRAIN,
        ) from error


def write_weights(
    folder: Path, direction: Direction, encoder: nn.Module, vocabulary: Vocabulary
) -> None:
    """Write all weights of an encoder."""
    tensors = {
        name: tensor.detach().contiguous().cpu() for name, tensor in encoder.state_dict().items()
    }
    write_tensors(weights_path(folder, direction), tensors, {"vocabulary": vocabulary.hash})


def read_language_model_weights(
    folder: Path, direction: Direction, encoder: nn.Module, vocabulary: Vocabulary
) -> None:
    """Read weights into an encoder; `ArtefactError` if they are missing or damaged, or of
    another vocabulary or other sizes.
    """
    path = weights_path(folder, direction)
    if not path.exists():
        raise ArtefactError(
            f"there is no language model that reads {direction}",
            where=str(path),
            expected=f"a pretrain-lm that trained the direction {direction}",
            todo=f"run plant pretrain-lm with --directions {direction} (or both), or --set "
            "model.backbone.direction=…",
        )
    tensors, marks = read_tensors(path, "the weights of the language model", RESTORE_OR_PRETRAIN)
    if marks.get("vocabulary") != vocabulary.hash:
        raise ArtefactError(
            "the language model was trained with another vocabulary",
            where=f"{path} ({str(marks.get('vocabulary'))[:12]}) against the vocabulary of "
            f"{vocabulary.hash[:12]}",
            expected="weights and vocabulary of one pretrain-lm",
            todo=RESTORE_OR_PRETRAIN,
        )
    wanted = encoder.state_dict()
    for name in sorted({*tensors, *wanted}):
        shape, needed = (
            list(weights[name].shape) if name in weights else None for weights in (tensors, wanted)
        )
        if shape != needed:
            raise ArtefactError(
                f"the weights '{name}' of the language model have shape {shape}, where the "
                f"network has {needed}",
                where=str(path),
                expected="weights of the sizes in language-model.json of the same folder",
                todo=RESTORE_OR_PRETRAIN,
            )
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(tensors[name])


THEIR_SPECIAL = {"xxpad": PAD, "xxunk": UNKNOWN, "xxbos": BEGIN}
EMBEDDING, BIAS = "encoder.embedding.weight", "output_bias"
PREFIXES = re.compile(r"^(?:module\.|model\.|0\.|1\.)+")
RECURRENT = re.compile(
    r"^rnns\.(\d+)\.(?:module\.)?(weight_ih|weight_hh|bias_ih|bias_hh)_l0(_raw)?$"
)
OUR_WEIGHTS = re.compile(
    r"^(?:encoder\.)?(embedding\.weight|layers\.\d+\.(?:weight|bias)_(?:ih|hh))$"
)
TO_SAFETENSORS = "save its tensors as safetensors where you trust the file, and give that one"


def import_weights(
    model: LanguageModel, vocabulary: Vocabulary, path: Path, words: Path
) -> tuple[int, int]:
    """Start a fresh language model from published weights, with the words of their rows; other
    words start from the mean embedding.

    Returns:
        Words of the vocabulary that have a published row, and words of the vocabulary.
    """
    published = _rename(read_published(path), path)
    known = read_words(words)
    wanted = dict(model.named_parameters())
    layers = {
        name: parameter for name, parameter in wanted.items() if name not in (EMBEDDING, BIAS)
    }
    for name, parameter in layers.items():
        _require_shape(name, published.get(name), list(parameter.shape), path)
    for name in sorted(published.keys() - wanted.keys()):
        raise DataError(
            f"the published weights '{name}' have no place in this network",
            where=str(path),
            expected="as many layers as the network has",
            todo="set --layers to the published number",
        )
    for name, tensor in sorted(published.items()):
        if not bool(torch.isfinite(tensor).all()):
            raise DataError(
                f"the published weights '{name}' hold what is not a finite number",
                where=str(path),
                expected="finite numbers",
                todo="get the file again, or train from scratch without --weights",
            )
    _require_shape(
        EMBEDDING, published[EMBEDDING], [len(known), wanted[EMBEDDING].shape[1]], path, rows=words
    )
    row_of = {word: row for row, word in reversed(list(enumerate(known)))}
    special = {ours: row_of[theirs] for theirs, ours in THEIR_SPECIAL.items() if theirs in row_of}
    rows = torch.tensor(
        [special.get(row, row_of.get(word, -1)) for row, word in enumerate(vocabulary.words)]
    )
    matched = int((rows[len(SPECIAL) :] >= 0).sum())
    if not matched:
        ours, theirs = (
            ", ".join(map(repr, some[len(SPECIAL) : len(SPECIAL) + 3]))
            for some in (vocabulary.words, known)
        )
        raise DataError(
            f"none of the {len(vocabulary) - len(SPECIAL):,} words of the corpus has a published "
            "embedding",
            where=f"{words}: {theirs}, …, where the corpus has {ours}, …",
            expected="words of the corpus's language, in lower case",
            todo="correct --words, give weights of this language, or train from scratch without "
            "--weights",
        )
    with torch.no_grad():
        for name, parameter in layers.items():
            parameter.copy_(published[name])
        wanted[EMBEDDING].copy_(_take(published[EMBEDDING], rows))
        wanted[EMBEDDING][PAD] = 0
        if BIAS in published:
            _require_shape(BIAS, published[BIAS], [len(known)], path, rows=words)
            wanted[BIAS].copy_(_take(published[BIAS], rows))
    return matched, len(vocabulary) - len(SPECIAL)


def read_published(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, or of a torch file that holds nothing that would run
    code.
    """
    if not path.exists():
        raise ArtefactError(
            "there are no published weights",
            where=str(path),
            expected="a file of weights",
            todo="correct --weights or --weights-backward",
        )
    if path.suffix == ".safetensors":
        return read_tensors(path, "the published weights", "get the file again")[0]
    try:
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file may raise anything
        raise ArtefactError(
            f"the published weights cannot be read as tensors alone: {first_line(error)}",
            where=str(path),
            expected="safetensors, or a file of torch.save with a mapping of names to tensors and "
            "nothing else",
            todo="get the file again; if it holds other objects, reading it would run its code: "
            f"{TO_SAFETENSORS}",
        ) from error
    content = content if isinstance(content, Mapping) else {}
    content = content["model"] if isinstance(content.get("model"), Mapping) else content
    tensors = {str(name): value for name, value in content.items() if isinstance(value, Tensor)}
    if not tensors:
        raise ArtefactError(
            "the file of published weights names no tensors",
            where=str(path),
            expected="names with tensors",
            todo=TO_SAFETENSORS,
        )
    return tensors


def read_words(path: Path) -> list[str]:
    """The words of published weights, from a JSON list or a text with one a line."""
    if path.suffix == ".json":
        words = read_json(path, "the list of words of the published weights")
    else:
        try:
            words = (
                path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
            )  # splitlines() would split words that hold U+2028
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(
                f"the words of the published weights cannot be read: {error}",
                where=str(path),
                expected="a JSON list, or UTF-8 text with one word a line",
                todo="correct --words; a pickled list (itos.pkl) must be written out as text first",
            ) from error
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise DataError(
            "the words of the published weights are no list of texts",
            where=str(path),
            expected="[…]",
            todo="correct --words",
        )
    return words


def _rename(tensors: Mapping[str, Tensor], path: Path) -> dict[str, Tensor]:
    """Our names; a dropped copy of the recurrent weights gives way to the raw ones."""
    renamed: dict[str, Tensor] = {}
    for name in sorted(tensors):
        bare = PREFIXES.sub("", name)
        recurrent, ours = RECURRENT.match(bare), OUR_WEIGHTS.match(bare)
        if recurrent:
            layer = f"encoder.layers.{recurrent[1]}.{recurrent[2]}"
            renamed[layer] = tensors[name] if recurrent[3] else renamed.get(layer, tensors[name])
        elif bare in ("encoder.weight", "embedding.weight") or (
            ours and ours[1] == "embedding.weight"
        ):
            renamed[EMBEDDING] = tensors[name]
        elif bare in ("decoder.bias", BIAS):
            renamed[BIAS] = tensors[name]
        elif ours:
            renamed[f"encoder.{ours[1]}"] = tensors[name]
    if EMBEDDING not in renamed or "encoder.layers.0.weight_hh" not in renamed:
        raise ArtefactError(
            "the file holds no AWD-LSTM that is known here",
            where=f"{path}: {', '.join(sorted(tensors)[:6])}, …",
            expected="names as fastai writes them (0.encoder.weight, 0.rnns.0.weight_hh_l0_raw, "
            "…) or as plant does",
            todo="rename the tensors, or train from scratch without --weights",
        )
    return renamed


def _require_shape(
    name: str, found: Tensor | None, wanted: list[int], path: Path, rows: Path | None = None
) -> None:
    if found is not None and list(found.shape) == wanted:
        return
    shape = "no place" if found is None else f"shape {list(found.shape)}"
    raise DataError(
        f"the published weights '{name}' have {shape}, where this network needs {wanted}",
        where=str(path),
        expected=f"{wanted}"
        + (f": one row for each of the {wanted[0]:,} words of {rows}" if rows else ""),
        todo="set --embedding, --hidden and --layers to the published sizes, and give the list "
        "of words that came with the weights",
    )


def _take(table: Tensor, rows: Tensor) -> Tensor:
    """The rows of a published table, the mean of all where there is none."""
    taken = table.float()[rows.clamp_min(0)].clone()
    taken[rows < 0] = table.float().mean(0)
    return taken
