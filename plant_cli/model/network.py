"""The whole network: a backbone that reads, a decoder that scores labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
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
from plant_cli.base.files import read_json, replacing, share_files, write_json
from plant_cli.model.design import ComponentLookup, Design, find_design

FORMAT = "1"
WEIGHTS = "model.safetensors"
DESCRIPTION = "model.json"


if TYPE_CHECKING:

    class DecoderModule(nn.Module, Decoder):
        """A decoder as what it is, too: a module of torch. For type checkers; at runtime any module with a decoder's methods will do."""


class Network(nn.Module):
    """Backbone and decoder together.

    Args:
        backbone: reads texts; its module is registered as `backbone_module`.
        decoder: scores labels.
        section: the recipe section that describes both.
        labels: the label index; row i of every label table stands for label i.
        seed: the seed that fresh weights were drawn with.
    """

    decoder: DecoderModule

    def __init__(self, backbone: Backbone, decoder: Decoder, section: ModelSection, labels: LabelIndex, seed: int = 0) -> None:
        super().__init__()
        self.backbone = backbone
        self.backbone_module = backbone.module()
        self.decoder = cast("DecoderModule", decoder)
        self.section = section
        self.labels = len(labels)
        self.label_hash = labels.hash
        self.seed = seed

    @property
    def needs_words(self) -> bool:
        """Whether the decoder looks at the words of documents (`Reading.words`)."""
        return isinstance(self.decoder, WordDecoder) and self.decoder.needs_words

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


def assemble(design: Design, machine: MachineSection, labels: LabelIndex, documents: int, seed: int | None = None) -> Network:
    """Build a network with fresh weights.

    Args:
        design: its components.
        machine: precision and device that the backbone is loaded for.
        labels: the label index.
        documents: training documents, for the share of them that carries each label.
        seed: the weights follow from it (default: that of the machine section).
    """
    seed = machine.seed if seed is None else seed
    backbone_spec, backbone_options = design.backbone
    decoder_spec, decoder_options = design.decoder
    torch.manual_seed(seed)
    backbone = backbone_spec.load(backbone_options, machine)
    shape = DecoderShape(
        hidden=backbone.hidden_size,
        labels=len(labels),
        prior=torch.tensor(np.asarray(labels.train_counts) / max(1, documents), dtype=torch.float32),
        queries=title_queries(backbone, labels) if design.section.label_queries == "titles" else None,
    )
    torch.manual_seed(seed + 1)  # the decoder's weights do not depend on how many the backbone drew
    return Network(backbone, decoder_spec.build(decoder_options, shape), design.section, labels, seed)


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
    metadata = {"label_hash": network.label_hash, "tokenizer_hash": network.backbone.tokenizer_hash, "format": FORMAT}
    tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in network.decoder.state_dict().items()}
    with replacing(folder / WEIGHTS) as partial:
        save_file(tensors, str(partial), metadata=metadata)
    changed = not network.backbone_is_frozen
    if changed:
        network.backbone.save(folder)
        share_files(folder)
    section = network.section
    description: dict[str, Any] = {
        "backbone": section.backbone.to_recipe(),
        "decoder": section.decoder.to_recipe(),
        "label_queries": section.label_queries,
        "backbone_changed": changed,
        "seed": network.seed,
        **metadata,
    }
    write_json(folder / DESCRIPTION, description)


def described_section(folder: Path) -> ModelSection:
    """The model section that a saved network was built from."""
    known = _description(folder)
    return ModelSection(**{name: known[name] for name in ModelSection.model_fields})


def _description(folder: Path) -> dict[str, Any]:
    known = read_json(folder / DESCRIPTION, "the description of the saved model")
    if not (isinstance(known, dict) and {*ModelSection.model_fields, "backbone_changed"} <= known.keys()):
        raise ArtefactError(
            "the description of the saved model is damaged: it lacks a key",
            where=str(folder / DESCRIPTION),
            expected=f"{', '.join(ModelSection.model_fields)} and backbone_changed, as the stage wrote them",
            todo="restore the file, or run the stage again with --force",
        )
    return known


def restore_network(network: Network, folder: Path) -> None:
    """Read weights back into a network of the same description.

    Raises:
        ArtefactError: the file is damaged or of another format, or the weights belong to another label order, tokenizer or shape.
    """
    path = folder / WEIGHTS
    metadata, tensors = _read_weights(path)
    wanted = {"label_hash": network.label_hash, "tokenizer_hash": network.backbone.tokenizer_hash}
    for name, value in wanted.items():
        if metadata.get(name) != value:
            raise ArtefactError(
                f"the model and the run do not agree on the {name.replace('_hash', '')}s: their hashes differ",
                where=f"{path} ({metadata.get(name, 'no hash')[:12]}…) and {folder.parent / 'corpus'} ({value[:12]}…)",
                expected="a model of this corpus, in this label order, with this tokenizer",
                todo="use the run folder that the model was trained in, or train again with --force",
            )
    _load(network.decoder, tensors, path)
    if _description(folder)["backbone_changed"]:
        network.backbone.restore(folder)


def _read_weights(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    try:
        with safe_open(str(path), framework="pt") as stored:
            metadata = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118  (not a dict)
    except (SafetensorError, OSError) as error:
        raise ArtefactError(
            f"the weights cannot be read: {error}",
            where=str(path),
            expected="the file as the stage wrote it",
            todo="restore the file, or run the stage again with --force",
        ) from error
    if metadata.get("format") != FORMAT:
        raise ArtefactError(
            f"the weights have format {metadata.get('format', 'none')}",
            where=str(path),
            expected=f"format {FORMAT}, which this version of plant reads",
            todo="use the version of plant that wrote them, or run the stage again with --force",
        )
    return metadata, tensors


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

    Args:
        folder: of the stage.
        component: finds the backbone and the decoder.
        machine: precision and device that the backbone is loaded for.
        labels: the label index of the run's corpus.
        documents: training documents.

    Raises:
        ArtefactError: a file is missing or damaged, or the network belongs to another label order or tokenizer.
    """
    section = described_section(folder).model_copy(update={"label_queries": "random"})  # its weights are read, titles need not be
    network = assemble(find_design(section, component), machine, labels, documents, _description(folder).get("seed"))
    restore_network(network, folder)
    return network
