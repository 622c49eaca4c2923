"""The network: backbone and decoder joined, described, saved and read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import torch
from pydantic import ValidationError
from scipy.sparse import csr_array
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
from plant_cli.api.components import ComponentLookup
from plant_cli.api.errors import damaged_file
from plant_cli.data.files import hash_strings, read_json, share_files, write_json
from plant_cli.data.records import require_recorded, require_same, stamp
from plant_cli.data.tensors import read_tensors, write_tensors
from plant_cli.runs.steps import require_titles
from plant_cli.scoring.cuts import tokenize
from plant_cli.scoring.models import DESIGN_FILE
from plant_network.answers import encode
from plant_network.design import Design, find_design

WEIGHTS = "model.safetensors"
RUN_STAGE_AGAIN = "run the stage again with --force"


@dataclass(frozen=True, kw_only=True)
class ModelDescription:
    """The content of `model.json`."""

    section: ModelSection  # the recipe section that the network was built from
    backbone_changed: (
        bool  # whether the backbone was trained; its weights are then saved with the decoder's
    )
    seed: int  # of the fresh weights
    words: str | None = (
        None  # hash of the relevance table's words, for a decoder that looks at words
    )


def read_model_description(folder: Path) -> ModelDescription:
    """The description of a saved network; `ArtefactError` if it is missing, damaged or changed."""
    require_recorded(folder, DESIGN_FILE)
    known = read_json(folder / DESIGN_FILE, "the description of the saved model")
    try:
        section = ModelSection(**{name: known[name] for name in ModelSection.model_fields})
        changed, seed, words = (
            bool(known["backbone_changed"]),
            int(known["seed"]),
            known.get("words"),
        )
        return ModelDescription(
            section=section,
            backbone_changed=changed,
            seed=seed,
            words=None if words is None else str(words),
        )
    except (KeyError, TypeError, ValueError, ValidationError) as error:
        raise damaged_file(
            "the description of the saved model",
            "it lacks a key, or a value is not valid",
            folder / DESIGN_FILE,
            expected=f"{', '.join(ModelSection.model_fields)}, backbone_changed and seed, as the "
            "stage wrote them",
            todo=f"restore the file, or {RUN_STAGE_AGAIN}",
        ) from error


def require_words(folder: Path, words: Sequence[str], table: Path | str) -> None:
    """Refuse a relevance table whose words have other rows than those that the network of a
    folder knows.
    """
    known = read_model_description(folder).words
    if known is not None and known != hash_strings(words):
        raise ArtefactError(
            "the relevance table has other words than the network was trained with",
            where=f"{folder / DESIGN_FILE} ({known[:12]}) against {table} ({len(words):,} words)",
            expected="the words of the same `plant mig`, in the same order",
            todo=RUN_STAGE_AGAIN,
        )


if TYPE_CHECKING:

    class DecoderModule(nn.Module, Decoder):
        """For type checkers: a decoder is a module of torch, too."""


class Network(nn.Module):
    """Backbone and decoder together; row i of every label table is label i of the index.

    `needs_words` says whether the decoder looks at the words of documents (`Reading.words`). For
    such a decoder training sets `word_hash`, the hash of the relevance table's words.
    `keeps_backbone`: the backbone is saved even if it was not trained, as no other file holds it.
    """

    decoder: DecoderModule

    def __init__(
        self,
        backbone: Backbone,
        decoder: Decoder,
        section: ModelSection,
        labels: LabelIndex,
        seed: int = 0,
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
        """Make the decoder ready for scoring only, if it can be folded; it cannot be trained
        any more after that.
        """
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
    planted: bool = True,
) -> Network:
    """Build a network with fresh weights, for labels of so many training documents; a decoder
    may start from relevance [L, V], unless attention is not `planted`.
    """
    seed = machine.seed if seed is None else seed
    decoder_spec, decoder_options = design.decoder
    if decoder_spec.check is not None:
        decoder_spec.check(decoder_options, labels)
    torch.manual_seed(seed)
    backbone = design.load_backbone(machine)
    shape = DecoderShape(
        hidden=backbone.hidden_size,
        labels=len(labels),
        prior=torch.tensor(
            np.asarray(labels.train_counts) / max(1, documents), dtype=torch.float32
        ),
        queries=title_queries(backbone, labels)
        if design.section.label_queries == "titles"
        else None,
        label_ids=labels.ids,
        parents=[next(iter(above), None) for above in labels.parents]
        if any(labels.parents)
        else (),
        relevance=relevance,
        planted=planted,
    )
    torch.manual_seed(seed + 1)  # the decoder's weights do not depend on how many the backbone drew
    decoder = decoder_spec.build(decoder_options, shape)
    return Network(
        backbone,
        decoder,
        design.section,
        labels,
        seed,
        keeps_backbone=design.backbone[0].start is not None,
    )


@torch.no_grad()
def title_queries(backbone: Backbone, labels: LabelIndex, batch: int = 64) -> Tensor:
    """Mean hidden state [L, H] of each label's title (the id where there is none), fp32;
    `batch` titles are read at once.
    """
    require_titles(labels)
    texts = [title or label for label, title in zip(labels.ids, labels.titles, strict=True)]
    backbone.module().eval()
    rows: list[Tensor] = []
    for start in range(0, len(texts), batch):
        hidden, mask = encode(backbone, tokenize(backbone, texts[start : start + batch]))
        weight = mask.unsqueeze(-1).to(hidden.dtype)
        rows.append(((hidden * weight).sum(1) / weight.sum(1).clamp(min=1)).float().cpu())
    return torch.cat(rows)


def save_network(network: Network, folder: Path) -> None:
    """Write decoder weights, the backbone's changes and a description; each file atomically."""
    section, changed = network.section, network.keeps_backbone or not network.backbone_is_frozen
    if changed:
        network.backbone.save(folder)
        share_files(folder)
    marks = stamp(labels=network.label_hash, tokenizer=network.backbone.tokenizer_hash)
    weights = {
        name: tensor.detach().contiguous().cpu()
        for name, tensor in network.decoder.state_dict().items()
    }
    write_tensors(folder / WEIGHTS, weights, marks)
    content = {
        "backbone": section.backbone.to_recipe(),
        "decoder": section.decoder.to_recipe(),
        "label_queries": section.label_queries,
        "backbone_changed": changed,
        "seed": network.seed,
        **({} if network.word_hash is None else {"words": network.word_hash}),
    }
    write_json(folder / DESIGN_FILE, {**content, **marks})


def restore_network(network: Network, folder: Path) -> None:
    """Read weights back into a network of the same description; afterwards every file of the folder
    is known to be as it was written.

    Raises:
        ArtefactError: a file is damaged or of another format, or the weights belong to another
            label order, tokenizer or shape.
    """
    path, again = folder / WEIGHTS, f"run the stage '{folder.name}' again with --force"
    tensors, marks = read_tensors(path, "the weights", f"restore the file, or {RUN_STAGE_AGAIN}")
    elsewhere = f"use the run folder that it was trained in, or {again}"
    require_same(
        marks,
        path=path,
        what="the model",
        todo=elsewhere,
        labels=network.label_hash,
        against=folder.parent / "corpus",
    )
    before = f"{again}, or put back the tokenizer or the language model that it was trained with"
    reads_with = network.backbone.tokenizer_hash
    require_same(
        marks,
        path=path,
        what="the model",
        todo=before,
        tokenizer=reads_with,
        against="what the backbone reads with now",
    )
    require_recorded(folder)
    try:
        network.decoder.load_state_dict(tensors)
    except RuntimeError as error:
        raise ArtefactError(
            f"the weights do not fit the decoder: {str(error).splitlines()[-1].strip()}",
            where=str(path),
            expected="the decoder and options that the stage was run with (model.json in the same "
            "folder)",
            todo="run the stage again with --force, or set the options back",
        ) from error
    if read_model_description(folder).backbone_changed:
        network.backbone.restore(folder)


@dataclass(frozen=True, kw_only=True)
class EarlierNetwork:
    """A trained network of a corpus that has grown since."""

    folder: Path  # of its weights
    labels: int  # how many it has
    rows: npt.NDArray[
        np.int64
    ]  # of each present label its row in the earlier label tables; −1: it is new [L]
    stays: bool = (
        False  # whether it is not trained further: new labels get rows, and nothing else changes
    )

    @property
    def new_labels(self) -> int:
        """How many labels it does not know."""
        return int((self.rows < 0).sum())

    @torch.no_grad()
    def carry_over(self, network: Network) -> None:
        """Give a network its weights; new labels keep the rows that they have in the label tables,
        whose first axis is that of labels.

        What a decoder holds of the relevance table stays that of the corpus as it is now.

        Raises:
            ArtefactError: a file is damaged, or the weights belong to another tokenizer or decoder.
        """
        path, todo = (
            self.folder / WEIGHTS,
            "train the network from the beginning: plant finetune --force",
        )
        tensors, marks = read_tensors(path, "the weights", todo)
        reads_with = network.backbone.tokenizer_hash
        require_same(
            marks,
            path=path,
            what="the earlier model",
            todo=todo,
            tokenizer=reads_with,
            against="what the backbone reads with now",
        )
        require_recorded(self.folder)
        if self.labels == len(self.rows) == network.backbone.hidden_size and self.new_labels:
            return  # which axis is that of labels cannot be told
        known = torch.from_numpy(self.rows >= 0)
        state = {name: tensor.clone() for name, tensor in network.decoder.state_dict().items()}
        fixed = {name for name, _ in network.decoder.named_buffers()} if network.needs_words else ()
        for name, tensor in state.items():
            if name in fixed:
                continue
            before = tensors.get(name)
            sizes = [] if before is None else [found.shape[:1] for found in (before, tensor)]
            of_labels = sizes == [(self.labels,), (len(self.rows),)]
            if before is None or (before.shape[1:] if of_labels else before.shape) != (
                tensor.shape[1:] if of_labels else tensor.shape
            ):
                raise ArtefactError(
                    "the earlier network has another decoder than the one to be trained",
                    where=f"{path}, {name}",
                    expected="the same backbone, decoder and options",
                    todo=todo,
                )
            if of_labels:
                tensor[known.to(tensor.device)] = before[torch.from_numpy(self.rows)[known]].to(
                    tensor
                )
            else:
                tensor.copy_(before)
        network.decoder.load_state_dict(state)
        if read_model_description(self.folder).backbone_changed:
            network.backbone.restore(self.folder)


def load_network(
    folder: Path,
    component: ComponentLookup,
    machine: MachineSection,
    labels: LabelIndex,
    documents: int,
) -> Network:
    """The trained network of a finished stage, built as its description says.

    A backbone that was not trained is not stored; one with random weights is drawn again from its
    seed.
    """
    description = read_model_description(folder)
    section = description.section.model_copy(
        update={"label_queries": "random"}
    )  # its weights are read, titles need not be
    design = replace(find_design(section, component), start=folder)
    network = assemble(design, machine, labels, documents, description.seed)
    restore_network(network, folder)
    return network
