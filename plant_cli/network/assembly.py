"""The network: backbone and decoder joined, described, saved and read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from plant_cli.api import (
    ArtefactError,
    Backbone,
    Decoder,
    DecoderShape,
    FoldableDecoder,
    LabelIndex,
    MachineSection,
    ModelSection,
    WordDecoder,
)
from plant_cli.data.files import hash_strings, read_json, share_files, write_json
from plant_cli.data.records import require_recorded, require_same, stamp
from plant_cli.network.design import DESCRIPTION, ComponentLookup, Design, find_design
from plant_cli.network.tensors import read_tensors, write_tensors

if TYPE_CHECKING:
    from torch import Tensor


WEIGHTS = "model.safetensors"
AGAIN = "run the stage again with --force"


@dataclass(frozen=True, kw_only=True)
class ModelDescription:
    """What `model.json` says."""

    section: ModelSection  # the recipe section that the network was built from
    backbone_changed: bool  # whether the backbone was trained; its weights then lie beside the decoder's
    seed: int  # the seed that fresh weights were drawn with
    words: str | None = None
    """Hash of the relevance table's words, whose rows a decoder that looks at words knows; None for any other decoder."""


def write_model(folder: Path, tensors: Mapping[str, Tensor], description: ModelDescription, *, labels: str, tokenizer: str) -> None:
    """Write both files, each atomically."""
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


if TYPE_CHECKING:
    from scipy.sparse import csr_array

    class DecoderModule(nn.Module, Decoder):
        """A decoder as what it is, too: a module of torch. For type checkers; at runtime any module with a decoder's methods will do."""


class Network(nn.Module):
    """Backbone and decoder together.

    Args:
        labels: the label index; row i of every label table stands for label i.
        seed: the seed that fresh weights were drawn with.
        keeps_backbone: whether the backbone is saved even if it was not trained: nothing but the run holds its weights.

    `needs_words` says whether the decoder looks at the words of documents (`Reading.words`); `word_hash` is that of the relevance table's
    words, set by training for such a decoder.
    """

    decoder: DecoderModule

    def __init__(
        self,
        backbone: Backbone,
        decoder: Decoder,
        section: ModelSection,
        labels: LabelIndex,
        seed: int = 0,
        *,
        keeps_backbone: bool = False,
    ) -> None:
        super().__init__()
        self.keeps_backbone = keeps_backbone
        self.word_hash: str | None = None
        self.needs_words = isinstance(decoder, WordDecoder) and decoder.needs_words
        self.backbone = backbone
        self.backbone_module = backbone.module()
        self.decoder = cast("DecoderModule", decoder)
        self.section = section
        self.labels = len(labels)
        self.label_hash = labels.hash
        self.seed = seed

    def freeze_backbone(self) -> None:
        """Keep the backbone as it is: no gradients, no dropout."""
        self.backbone_module.requires_grad_(False)
        self.backbone_module.eval()

    @torch.no_grad()
    def fold_decoder(self) -> None:
        """Make the decoder ready for scoring only, if it can be folded; it cannot be trained any more after that."""
        if isinstance(self.decoder, FoldableDecoder):
            self.decoder = cast("DecoderModule", self.decoder.fold())

    @property
    def backbone_is_frozen(self) -> bool:
        """Whether nothing in the backbone can be trained."""
        return not any(p.requires_grad for p in self.backbone_module.parameters())

    def train(self, mode: bool = True) -> Network:
        """Training mode; a frozen backbone stays in evaluation mode."""
        super().train(mode)
        if self.backbone_is_frozen:
            self.backbone_module.eval()
        return self


def assemble(
    design: Design,
    machine: MachineSection,
    labels: LabelIndex,
    documents: int,
    seed: int | None = None,
    relevance: csr_array | None = None,
) -> Network:
    """Build a network with fresh weights.

    Args:
        documents: training documents, for the share of them that carries each label.
        relevance: of words for labels [L, V], for a decoder that starts from it.
    """
    seed = machine.seed if seed is None else seed
    decoder_spec, decoder_options = design.decoder
    torch.manual_seed(seed)
    backbone = design.load_backbone(machine)
    shape = DecoderShape(
        hidden=backbone.hidden_size,
        labels=len(labels),
        prior=torch.tensor(np.asarray(labels.train_counts) / max(1, documents), dtype=torch.float32),
        queries=title_queries(backbone, labels) if design.section.label_queries == "titles" else None,
        label_ids=labels.ids,
        parents=[next(iter(above), None) for above in labels.parents] if any(labels.parents) else (),
        relevance=relevance,
    )
    torch.manual_seed(seed + 1)  # the decoder's weights do not depend on how many the backbone drew
    decoder = decoder_spec.build(decoder_options, shape)
    return Network(backbone, decoder, design.section, labels, seed, keeps_backbone=design.backbone[0].start is not None)


@torch.no_grad()
def title_queries(backbone: Backbone, labels: LabelIndex, batch: int = 64) -> Tensor:
    """Mean hidden state [L, H] of each label's title (the id where there is none), fp32; `batch` titles are read at once."""
    texts = [title or label for label, title in zip(labels.ids, labels.titles, strict=True)]
    backbone.module().eval()
    rows: list[Tensor] = []
    for start in range(0, len(texts), batch):
        hidden, mask = backbone.encode(backbone.tokenize(texts[start : start + batch]))
        weight = mask.unsqueeze(-1).to(hidden.dtype)
        rows.append(((hidden * weight).sum(1) / weight.sum(1).clamp(min=1)).float().cpu())
    return torch.cat(rows)


def save_network(network: Network, folder: Path) -> None:
    """Write decoder weights, the backbone's changes and a description; each file atomically."""
    changed = network.keeps_backbone or not network.backbone_is_frozen
    if changed:
        network.backbone.save(folder)
        share_files(folder)
    write_model(
        folder,
        {name: tensor.detach().contiguous().cpu() for name, tensor in network.decoder.state_dict().items()},
        ModelDescription(section=network.section, backbone_changed=changed, seed=network.seed, words=network.word_hash),
        labels=network.label_hash,
        tokenizer=network.backbone.tokenizer_hash,
    )


def restore_network(network: Network, folder: Path) -> None:
    """Read weights back into a network of the same description.

    Raises:
        ArtefactError: the file is damaged or of another format, or the weights belong to another label order, tokenizer or shape.
    """
    tensors = read_weights(folder, labels=network.label_hash, tokenizer=network.backbone.tokenizer_hash)
    _load(network.decoder, tensors, folder / WEIGHTS)
    if read_description(folder).backbone_changed:
        network.backbone.restore(folder)


def _load(module: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        raise ArtefactError(
            f"the weights do not fit the decoder: {str(error).splitlines()[-1].strip()}",
            where=str(path),
            expected="the decoder and options that the stage was run with (model.json beside the weights)",
            todo="run the stage again with --force, or set the options back",
        ) from error


def load_network(folder: Path, component: ComponentLookup, machine: MachineSection, labels: LabelIndex, documents: int) -> Network:
    """The trained network of a finished stage, built as its description says.

    A backbone that was not trained is not stored; one with random weights is drawn again from the seed that it was drawn from.

    Raises:
        ArtefactError: a file is missing or damaged, or the network belongs to another label order or tokenizer.
    """
    description = read_description(folder)
    section = description.section.model_copy(update={"label_queries": "random"})  # its weights are read, titles need not be
    design = replace(find_design(section, component), start=folder)
    network = assemble(design, machine, labels, documents, description.seed)
    restore_network(network, folder)
    return network
