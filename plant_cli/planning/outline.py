"""The network of a model section without its weights: all shapes and parts, in seconds even for the largest."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from plant_cli.api import ComponentError, DecoderShape, LabelIndex, MachineSection, ModelSection, StageContext
from plant_cli.api.specs import BackboneSpec, DecoderSpec
from plant_cli.kit.profile import HuggingFaceOptions
from plant_cli.kit.quantization import short_parameters
from plant_cli.model.hardware import Hardware
from plant_cli.model.network import Network


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the network: how many parameters, how many of them training may change, and their bytes."""

    name: str
    parameters: int
    trained: int
    size: int


@dataclass(frozen=True, kw_only=True)
class Outline:
    """A network of fake tensors and its parts.

    Args:
        network: all shapes, no values.
        parts: backbone, adapter, label tables and so on.
        short: bytes of weights that are held in few bits, each as it is held.
        eight_bits: whether these are 8-bit maps, which every process has whole.
    """

    network: Network
    parts: tuple[Part, ...]
    short: Mapping[nn.Parameter, int] = field(default_factory=dict)
    eight_bits: bool = False

    @property
    def unpacked(self) -> int:
        """Bytes of the largest weight that is held in few bits, as it computes; 0 if there is none."""
        return max((parameter.numel() * torch.bfloat16.itemsize for parameter in self.short), default=0)

    @property
    def size(self) -> int:
        """Bytes of all weights."""
        return sum(part.size for part in self.parts)

    def size_of(self, parameters: Iterable[nn.Parameter]) -> int:
        """Bytes of weights as they are held."""
        return sum(self.short.get(p, p.numel() * p.element_size()) for p in parameters)

    def shared(self, module: str) -> list[nn.Parameter]:
        """The weights of one module of the network that processes can share out."""
        return [p for p in getattr(self.network, module).parameters() if not (self.eight_bits and p in self.short)]


def outline(context: StageContext, section: ModelSection, machine: MachineSection, labels: LabelIndex, hardware: Hardware) -> Outline:
    """Build the network that `plant_cli.model.network.assemble` would build, without weights.

    Raises:
        ComponentError: the backbone cannot be built on torch's meta device.
    """
    backbone_spec, backbone_options = context.component(BackboneSpec, section.backbone)
    decoder_spec, decoder_options = context.component(DecoderSpec, section.decoder)
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)  # it logs what is raised anyway
    with torch.device("meta"):
        try:
            backbone = backbone_spec.load(backbone_options, machine)
        except (NotImplementedError, RuntimeError) as error:
            raise ComponentError(
                f"the backbone '{backbone_spec.name}' cannot be built without its weights: {str(error).splitlines()[0]}",
                where=f"backbone '{backbone_spec.name}', load under torch.device('meta')",
                expected="a backbone whose load makes tensors on torch's default device",
                todo="plan another backbone, or train it for one epoch and see `peak_memory_gb` in stage.json",
            ) from error
        shape = DecoderShape(hidden=backbone.hidden_size, labels=len(labels), prior=torch.empty(len(labels)))
        decoder = decoder_spec.build(decoder_options, shape)
        network = Network(backbone, decoder, section, labels)
    huggingface = backbone_options if isinstance(backbone_options, HuggingFaceOptions) else None
    short = short_parameters(network.backbone_module, huggingface) if huggingface else {}
    parts = _parts(network, short)
    names = {name: short[parameter] for name, parameter in network.backbone_module.named_parameters() if parameter in short}
    for parameter in short:
        parameter.data = parameter.data.to(torch.bfloat16)  # the format that they compute in
    with FakeTensorMode(allow_non_fake_inputs=True):
        network.to_empty(device=hardware.device)
    found = {network.backbone_module.get_parameter(name): size for name, size in names.items()}
    return Outline(network=network, parts=parts, short=found, eight_bits=huggingface is not None and huggingface.quantization == "int8")


def _parts(network: Network, short: dict[nn.Parameter, int]) -> tuple[Part, ...]:
    roles = network.decoder.parameter_roles()
    named = {"head": "head, shared by all labels", "boost": "label tables", "attention": "label attention", "value": "label attention"}
    adapter = any("lora_" in name for name, _ in network.backbone_module.named_parameters())
    groups: dict[str, list[nn.Parameter]] = {"backbone": [], **({"adapter": []} if adapter else {})}
    for parameter in network.backbone_module.parameters():
        groups["adapter" if adapter and parameter.requires_grad else "backbone"].append(parameter)
    for role, parameters in roles.items():
        for parameter in parameters:
            table = parameter.ndim > 1 and len(parameter) == network.labels
            groups.setdefault("label tables" if table else named.get(role, role), []).append(parameter)
    return tuple(
        Part(
            name=name,
            parameters=sum(p.numel() for p in found),
            trained=sum(p.numel() for p in found if p.requires_grad),
            size=sum(short.get(p, p.numel() * p.element_size()) for p in found),
        )
        for name, found in groups.items()
    )
