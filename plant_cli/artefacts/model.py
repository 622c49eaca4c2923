"""`model.safetensors` and `model.json`: the weights of a trained decoder, and which network they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from plant_cli.api.errors import ArtefactError
from plant_cli.api.sections import ModelSection
from plant_cli.artefacts.guard import require_same, stamp
from plant_cli.artefacts.integrity import require_recorded
from plant_cli.base.files import read_json, write_json
from plant_cli.base.hashing import hash_strings
from plant_cli.base.tensors import read_tensors, write_tensors

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS = "model.safetensors"
DESCRIPTION = "model.json"
AGAIN = "run the stage again with --force"


@dataclass(frozen=True, kw_only=True)
class ModelDescription:
    """What `model.json` says.

    Args:
        section: the recipe section that the network was built from.
        backbone_changed: whether the backbone was trained; its weights then lie beside the decoder's.
        seed: the seed that fresh weights were drawn with.
        words: hash of the relevance table's words, whose rows a decoder that looks at words knows; None for any other decoder.
    """

    section: ModelSection
    backbone_changed: bool
    seed: int
    words: str | None = None


def write_model(folder: Path, tensors: Mapping[str, Tensor], description: ModelDescription, *, labels: str, tokenizer: str) -> None:
    """Write both files, each atomically.

    Args:
        folder: of the stage.
        tensors: the decoder's weights by name, contiguous and in main memory.
        description: of the network.
        labels: hash of the ordered label ids.
        tokenizer: hash of the tokenizer.
    """
    marks = stamp(labels=labels, tokenizer=tokenizer)
    write_tensors(folder / WEIGHTS, tensors, marks)
    section = description.section
    content = {
        "backbone": section.backbone.to_recipe(),
        "decoder": section.decoder.to_recipe(),
        "label_queries": section.label_queries,
        "backbone_changed": description.backbone_changed,
        "seed": description.seed,
        **({} if description.words is None else {"words": description.words}),
    }
    write_json(folder / DESCRIPTION, {**content, **marks})


def read_description(folder: Path) -> ModelDescription:
    """What `model.json` of a stage's folder says; `ArtefactError` if it is missing, damaged or changed."""
    require_recorded(folder, DESCRIPTION)
    known = read_json(folder / DESCRIPTION, "the description of the saved model")
    try:
        section = ModelSection(**{name: known[name] for name in ModelSection.model_fields})
        words = known.get("words")
        return ModelDescription(
            section=section,
            backbone_changed=bool(known["backbone_changed"]),
            seed=int(known["seed"]),
            words=None if words is None else str(words),
        )
    except (KeyError, TypeError, ValueError, ValidationError) as error:
        raise ArtefactError(
            "the description of the saved model is damaged: it lacks a key, or a value is not valid",
            where=str(folder / DESCRIPTION),
            expected=f"{', '.join(ModelSection.model_fields)}, backbone_changed and seed, as the stage wrote them",
            todo=f"restore the file, or {AGAIN}",
        ) from error


def require_words(folder: Path, words: Sequence[str], table: Path | str) -> None:
    """Refuse a relevance table whose words have other rows than those that the network of a folder knows.

    Args:
        folder: of the stage that trained the network.
        words: of the relevance table, in the order of its rows.
        table: where it lies, for the message.

    Raises:
        ArtefactError: they differ.
    """
    known = read_description(folder).words
    if known is not None and known != hash_strings(words):
        raise ArtefactError(
            "the relevance table has other words than the network was trained with",
            where=f"{folder / DESCRIPTION} ({known[:12]}) against {table} ({len(words):,} words)",
            expected="the words of the same `plant mig`, in the same order",
            todo=AGAIN,
        )


def read_weights(folder: Path, *, labels: str, tokenizer: str) -> dict[str, Tensor]:
    """The decoder's weights by name; afterwards every file of the folder is known to be what the stage wrote.

    Args:
        folder: of the stage.
        labels: hash of the ordered label ids of the run.
        tokenizer: hash of the backbone's tokenizer.

    Raises:
        ArtefactError: a file is missing or damaged, of another format, or of another label order or tokenizer.
    """
    path = folder / WEIGHTS
    tensors, marks = read_tensors(path, "the weights", f"restore the file, or {AGAIN}")
    again = f"run the stage '{folder.name}' again with --force"
    elsewhere = f"use the run folder that it was trained in, or {again}"
    require_same(marks, path=path, what="the model", todo=elsewhere, labels=labels, against=folder.parent / "corpus")
    before = f"{again}, or put back the tokenizer or the language model that it was trained with"
    require_same(marks, path=path, what="the model", todo=before, tokenizer=tokenizer, against="what the backbone reads with now")
    require_recorded(folder)
    return tensors
