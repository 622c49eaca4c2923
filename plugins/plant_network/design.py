"""The components of a network and their options, as they are saved with its weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from plant_cli.api import (
    Backbone,
    BackboneSpec,
    Choice,
    DecoderSpec,
    MachineSection,
    ModelSection,
    Options,
)
from plant_cli.api.components import ComponentLookup
from plant_cli.runs.steps import write_out


@dataclass(frozen=True, kw_only=True)
class Design:
    """The components of a network, each with its options."""

    section: ModelSection  # the recipe section that names them, with all their options
    backbone: tuple[BackboneSpec, Options]
    decoder: tuple[DecoderSpec, Options]
    start: Path | None = None
    """Folder that the backbone starts from, if it starts from one (`BackboneSpec.start`) and
    the user names no other.
    """

    def load_backbone(self, machine: MachineSection) -> Backbone:
        """The backbone, from the folder that it starts from if it has one."""
        spec, options = self.backbone
        if spec.start is not None and self.start is not None:
            options = options.model_copy(update={spec.start.option: str(self.start)})
        return spec.load(options, machine)

    def start_from(self, stage_folder: Callable[[str], Path | None]) -> Design:
        """The same design with the folder that its backbone starts from; `stage_folder` is
        asked only if one is needed.
        """
        spec, options = self.backbone
        if spec.start is None or getattr(options, spec.start.option) is not None:
            return self
        return replace(self, start=stage_folder(spec.start.stage))


def find_design(section: ModelSection, component: ComponentLookup) -> Design:
    """The design of a model section; the section of the design names every option, so that one
    network is described in one way.
    """
    backbone, decoder = (
        component(BackboneSpec, section.backbone),
        component(DecoderSpec, section.decoder),
    )
    named = {
        kind: Choice(name=spec.name, options=write_out(options, None))
        for kind, (spec, options) in (("backbone", backbone), ("decoder", decoder))
    }
    return Design(section=section.model_copy(update=named), backbone=backbone, decoder=decoder)
