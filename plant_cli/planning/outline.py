"""The network of a model section without its weights: all shapes and parts, in seconds even for the largest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn

from plant_cli.api import ComponentError, LabelIndex, first_line
from plant_cli.kit.profile import HuggingFaceOptions
from plant_cli.kit.quantization import short_parameters
from plant_cli.model.design import ComponentLookup, find_design
from plant_cli.model.network import Network, assemble
from plant_cli.planning.jobs import Job


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the network: how many parameters, how many of them training may change, and their bytes as they are held."""

    name: str
    parameters: int
    trained: int
    size: int


@dataclass(frozen=True, kw_only=True)
class Outline:
    """A network on torch's meta device, with the parameters unfrozen that the job trains.

    Args:
        network: all shapes, no values.
        parts: backbone, adapter, label tables and so on.
        changed: bytes of what training changes in any epoch.
        learning: bytes of what it changes in the last epoch.
        fixed: whether the backbone stays as it is in every epoch; when scoring, whether no stage trained it.
        unpacked: bytes of the largest weight that is held in 4 or 8 bits, in the format in which it computes; 0 if there is none.
    """

    network: Network
    parts: tuple[Part, ...]
    changed: int
    learning: int
    fixed: bool
    unpacked: int

    @property
    def size(self) -> int:
        """Bytes of all weights as they are held."""
        return sum(part.size for part in self.parts)


def outline(find: ComponentLookup, job: Job, labels: LabelIndex) -> Outline:
    """Build a job's network without weights.

    Args:
        find: looks up backbone and decoder.
        job: the stage.
        labels: the label index.

    Raises:
        ComponentError: the backbone cannot be built on torch's meta device.
    """
    section = job.model.model_copy(update={"label_queries": "random"})  # titles need not be read
    design = find_design(section, find)
    spec, options = design.backbone
    with torch.device("meta"):
        try:
            network = assemble(design, job.machine, labels, documents=1)
        except (NotImplementedError, RuntimeError) as error:
            raise ComponentError(
                f"the backbone '{spec.name}' cannot be built without its weights: {first_line(error)}",
                where=f"backbone '{spec.name}', load under torch.device('meta')",
                expected="a backbone whose load makes tensors on torch's default device",
                todo="plan another backbone, or train it for one epoch and see `peak_memory_gb` in stage.json",
            ) from error
    short = short_parameters(network.backbone_module, options) if isinstance(options, HuggingFaceOptions) else {}
    parts = _parts(network, short)
    for parameter in short:
        parameter.data = parameter.data.to(torch.bfloat16)  # the format in which they compute
    read_alike = network.backbone_is_frozen or bool(job.roles)  # what another stage trained is read as it is now
    changed, learning = job.unfreeze(network)
    return Outline(
        network=network,
        parts=parts,
        changed=size_of(changed),
        learning=size_of(learning),
        fixed=read_alike and not {id(p) for p in changed} & {id(p) for p in network.backbone_module.parameters()},
        unpacked=max(map(size_of_one, short), default=0),
    )


def size_of_one(parameter: nn.Parameter) -> int:
    """Bytes of a parameter as it computes."""
    return parameter.numel() * parameter.element_size()


def size_of(parameters: Iterable[nn.Parameter]) -> int:
    """Bytes of parameters as they compute."""
    return sum(map(size_of_one, parameters))


def _parts(network: Network, short: dict[nn.Parameter, int]) -> tuple[Part, ...]:
    named = {"head": "head, shared by all labels", "boost": "label tables", "attention": "label attention", "value": "label attention"}
    adapter = any("lora_" in name for name, _ in network.backbone_module.named_parameters())
    groups: dict[str, list[nn.Parameter]] = {"backbone": [], **({"adapter": []} if adapter else {})}
    for parameter in network.backbone_module.parameters():
        groups["adapter" if adapter and parameter.requires_grad else "backbone"].append(parameter)
    for role, parameters in network.decoder.parameter_roles().items():
        for parameter in parameters:
            table = parameter.ndim > 1 and len(parameter) == network.labels
            groups.setdefault("label tables" if table else named.get(role, role), []).append(parameter)
    return tuple(
        Part(
            name=name,
            parameters=sum(p.numel() for p in found),
            trained=sum(p.numel() for p in found if p.requires_grad),
            size=sum(short.get(p, size_of_one(p)) for p in found),
        )
        for name, found in groups.items()
    )
