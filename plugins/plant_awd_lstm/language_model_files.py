"""Files of a language model: its weights, and published weights of others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from plant_awd_lstm import Direction
from plant_awd_lstm.language_model import BEGIN, PAD, SPECIAL, UNKNOWN, LanguageModel, Sizes, Vocabulary
from plant_cli.api import ArtefactError, DataError, first_line
from plant_cli.kit import read_json, read_tensors, write_json, write_tensors

DESCRIPTION = "language-model.json"
AGAIN = "restore the file, or run plant pretrain-lm again with --force"


def weights_path(folder: Path, direction: Direction) -> Path:
    """Where the weights of a direction lie."""
    return folder / f"awd-lstm-{direction}.safetensors"


def write_description(folder: Path, sizes: Sizes, perplexities: dict[str, float]) -> None:
    """Write the sizes, and the validation perplexity of each direction that was trained."""
    write_json(folder / DESCRIPTION, {**sizes, "perplexity": perplexities})


def read_description(folder: Path) -> tuple[Sizes, dict[str, float]]:
    """What `write_description` wrote.

    Raises:
        ArtefactError: the file is missing or damaged.
    """
    known: Any = read_json(folder / DESCRIPTION, "the description of the language model")
    try:
        sizes = Sizes(embedding=int(known["embedding"]), hidden=int(known["hidden"]), layers=int(known["layers"]))
        perplexities = {str(name): float(value) for name, value in known["perplexity"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArtefactError(
            "the description of the language model is damaged: it lacks a key, or a value is no number",
            where=str(folder / DESCRIPTION),
            expected="embedding, hidden, layers and perplexity, as the stage wrote them",
            todo=AGAIN,
        ) from error
    return sizes, perplexities


def write_weights(folder: Path, direction: Direction, encoder: nn.Module, vocabulary: Vocabulary) -> None:
    """Write all weights of an encoder."""
    tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in encoder.state_dict().items()}
    write_tensors(weights_path(folder, direction), tensors, {"vocabulary": vocabulary.hash})


def read_weights(folder: Path, direction: Direction, encoder: nn.Module, vocabulary: Vocabulary) -> None:
    """Read weights into an encoder.

    Raises:
        ArtefactError: the file is missing or damaged, or belongs to another vocabulary or to other sizes.
    """
    path = weights_path(folder, direction)
    if not path.exists():
        raise ArtefactError(
            f"there is no language model that reads {direction}",
            where=str(path),
            expected=f"a pretrain-lm that trained the direction {direction}",
            todo=f"run plant pretrain-lm with --directions {direction} (or both), or --set model.backbone.direction=…",
        )
    tensors, marks = read_tensors(path, "the weights of the language model", AGAIN)
    if marks.get("vocabulary") != vocabulary.hash:
        raise ArtefactError(
            "the language model was trained with another vocabulary",
            where=f"{path} ({str(marks.get('vocabulary'))[:12]}) against the vocabulary of {vocabulary.hash[:12]}",
            expected="weights and vocabulary of one pretrain-lm",
            todo=AGAIN,
        )
    wanted = encoder.state_dict()
    for name in sorted({*tensors, *wanted}):
        found, needed = (list(found[name].shape) if name in found else None for found in (tensors, wanted))
        if found != needed:
            raise ArtefactError(
                f"the weights '{name}' of the language model have shape {found}, where the network has {needed}",
                where=str(path),
                expected="weights of the sizes in language-model.json beside them",
                todo=AGAIN,
            )
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(tensors[name])


THEIR_SPECIAL = {"xxpad": PAD, "xxunk": UNKNOWN, "xxbos": BEGIN}
EMBEDDING, BIAS = "encoder.embedding.weight", "output_bias"
PREFIXES = re.compile(r"^(?:module\.|model\.|0\.|1\.)+")
RECURRENT = re.compile(r"^rnns\.(\d+)\.(?:module\.)?(weight_ih|weight_hh|bias_ih|bias_hh)_l0(_raw)?$")
OWN = re.compile(r"^(?:encoder\.)?(embedding\.weight|layers\.\d+\.(?:weight|bias)_(?:ih|hh))$")
TO_SAFETENSORS = "save its tensors as safetensors where you trust the file, and give that one"


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What was taken from a file.

    Args:
        matched: words of the vocabulary that have a row in the file.
        words: words of the vocabulary.
    """

    matched: int
    words: int


def import_weights(model: LanguageModel, vocabulary: Vocabulary, path: Path, words: Path) -> Imported:
    """Start a language model from published weights; words that they lack start from the mean embedding.

    Args:
        model: fresh, of the published sizes.
        vocabulary: of the corpus.
        path: the published weights.
        words: the words of their rows.

    Raises:
        ArtefactError: the file cannot be read, holds more than tensors, or lacks a weight.
        DataError: a weight has another shape than the network's, no place in it, or is not a number, or the list of words does not fit,
            or has none of the corpus's words.
    """
    found = _rename(read_published(path), path)
    known = read_words(words)
    wanted = dict(model.named_parameters())
    for name, parameter in wanted.items():
        if name not in (EMBEDDING, BIAS):
            _require_shape(name, found.get(name), list(parameter.shape), path)
    _refuse_further_layers(found, wanted, path)
    _require_finite(found, path)
    _require_shape(EMBEDDING, found[EMBEDDING], [len(known), wanted[EMBEDDING].shape[1]], path, rows=words)
    rows = _match(vocabulary, known)
    taken = Imported(matched=int((rows[len(SPECIAL) :] >= 0).sum()), words=len(vocabulary) - len(SPECIAL))
    if not taken.matched:
        _refuse_other_words(vocabulary, known, words)
    with torch.no_grad():
        for name, parameter in wanted.items():
            if name not in (EMBEDDING, BIAS):
                parameter.copy_(found[name])
        wanted[EMBEDDING].copy_(_take(found[EMBEDDING], rows))
        wanted[EMBEDDING][PAD] = 0
        if BIAS in found:
            _require_shape(BIAS, found[BIAS], [len(known)], path, rows=words)
            wanted[BIAS].copy_(_take(found[BIAS], rows))
    return taken


def read_published(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, or of a torch file that holds nothing that would run code."""
    if not path.exists():
        raise ArtefactError(
            "there are no published weights", where=str(path), expected="a file of weights", todo="correct --weights or --weights-backward"
        )
    if path.suffix == ".safetensors":
        return read_tensors(path, "the published weights", "get the file again")[0]
    try:
        found: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a damaged file makes of its reader
        raise ArtefactError(
            f"the published weights cannot be read as tensors alone: {first_line(error)}",
            where=str(path),
            expected="safetensors, or a file of torch.save that holds a mapping of names to tensors and nothing else",
            todo=f"get the file again; if it holds other objects, reading it would run its code: {TO_SAFETENSORS}",
        ) from error
    if isinstance(found, Mapping) and isinstance(found.get("model"), Mapping):
        found = found["model"]
    tensors = {str(name): value for name, value in found.items() if isinstance(value, Tensor)} if isinstance(found, Mapping) else {}
    if not tensors:
        raise ArtefactError(
            "the file of published weights names no tensors", where=str(path), expected="names with tensors", todo=TO_SAFETENSORS
        )
    return tensors


def read_words(path: Path) -> list[str]:
    """The words of published weights, from a JSON list or a text with one a line."""
    if path.suffix == ".json":
        words = read_json(path, "the list of words of the published weights")
    else:
        try:
            words = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")  # splitlines() would split words that hold U+2028
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(
                f"the words of the published weights cannot be read: {error}",
                where=str(path),
                expected="a JSON list, or UTF-8 text with one word a line",
                todo="correct --words; a pickled list (itos.pkl) must be written out as text first",
            ) from error
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise DataError("the words of the published weights are no list of texts", where=str(path), expected="[…]", todo="correct --words")
    return words


def _rename(tensors: Mapping[str, Tensor], path: Path) -> dict[str, Tensor]:
    """Our names; a dropped copy of the recurrent weights gives way to the raw ones."""
    found: dict[str, Tensor] = {}
    for name in sorted(tensors):
        bare = PREFIXES.sub("", name)
        recurrent, own = RECURRENT.match(bare), OWN.match(bare)
        if recurrent:
            found[f"encoder.layers.{recurrent[1]}.{recurrent[2]}"] = _pick(found, recurrent, tensors[name])
        elif bare in ("encoder.weight", "embedding.weight") or (own and own[1] == "embedding.weight"):
            found[EMBEDDING] = tensors[name]
        elif bare in ("decoder.bias", BIAS):
            found[BIAS] = tensors[name]
        elif own:
            found[f"encoder.{own[1]}"] = tensors[name]
    if EMBEDDING not in found or "encoder.layers.0.weight_hh" not in found:
        raise ArtefactError(
            "the file holds no AWD-LSTM that is known here",
            where=f"{path}: {', '.join(sorted(tensors)[:6])}, …",
            expected="names as fastai writes them (0.encoder.weight, 0.rnns.0.weight_hh_l0_raw, …) or as plant does",
            todo="rename the tensors, or train from scratch without --weights",
        )
    return found


def _pick(found: Mapping[str, Tensor], match: re.Match[str], tensor: Tensor) -> Tensor:
    before = found.get(f"encoder.layers.{match[1]}.{match[2]}")
    return tensor if before is None or match[3] else before


def _require_shape(name: str, found: Tensor | None, wanted: list[int], path: Path, rows: Path | None = None) -> None:
    if found is not None and list(found.shape) == wanted:
        return
    shape = "no place" if found is None else f"shape {list(found.shape)}"
    raise DataError(
        f"the published weights '{name}' have {shape}, where this network needs {wanted}",
        where=str(path),
        expected=f"{wanted}" + (f": one row for each of the {wanted[0]:,} words of {rows}" if rows else ""),
        todo="set --embedding, --hidden and --layers to the published sizes, and give the list of words that came with the weights",
    )


def _refuse_further_layers(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], path: Path) -> None:
    name = next((name for name in sorted(found) if name not in wanted), None)
    if name is not None:
        raise DataError(
            f"the published weights '{name}' have no place in this network",
            where=str(path),
            expected="as many layers as the network has",
            todo="set --layers to the published number",
        )


def _require_finite(found: Mapping[str, Tensor], path: Path) -> None:
    name = next((name for name, tensor in sorted(found.items()) if not bool(torch.isfinite(tensor).all())), None)
    if name is not None:
        raise DataError(
            f"the published weights '{name}' hold what is not a finite number",
            where=str(path),
            expected="finite numbers",
            todo="get the file again, or train from scratch without --weights",
        )


def _refuse_other_words(vocabulary: Vocabulary, known: list[str], path: Path) -> None:
    theirs = [word for word in known if not word.startswith("xx")]
    first = [", ".join(map(repr, words[:3])) for words in (vocabulary.words[len(SPECIAL) :], theirs)]
    raise DataError(
        f"none of the {len(vocabulary) - len(SPECIAL):,} words of the corpus has a published embedding",
        where=f"{path}: {first[1]}, …, where the corpus has {first[0]}, …",
        expected="words of the corpus's language, in lower case",
        todo="correct --words, give weights of this language, or train from scratch without --weights",
    )


def _match(vocabulary: Vocabulary, known: list[str]) -> Tensor:
    """For each word of the vocabulary its row in the published weights, or −1."""
    places = {word: row for row, word in reversed(list(enumerate(known)))}
    special = {own: places[theirs] for theirs, own in THEIR_SPECIAL.items() if theirs in places}
    return torch.tensor([special.get(row, places.get(word, -1)) for row, word in enumerate(vocabulary.words)])


def _take(table: Tensor, rows: Tensor) -> Tensor:
    """The rows of a published table, the mean of all where there is none."""
    taken = table.float()[rows.clamp_min(0)].clone()
    taken[rows < 0] = table.float().mean(0)
    return taken
