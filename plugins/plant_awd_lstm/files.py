"""The files of a language model: its sizes, and the weights of each direction with the hash of their vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from plant_awd_lstm.network import Sizes
from plant_awd_lstm.options import Direction
from plant_awd_lstm.vocabulary import Vocabulary
from plant_cli.api import ArtefactError
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
