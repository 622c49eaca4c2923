"""What a network is built from: the components that a model section names, found and with all their options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from plant_cli.api import BackboneSpec, Choice, DecoderSpec, ModelSection, Options
from plant_cli.api.components import SpecT
from plant_cli.recipe.components import write_out


class ComponentLookup(Protocol):
    """Finds components: `StageContext.component`, or `Registry.resolve`."""

    def __call__(self, kind: type[SpecT], chosen: Choice, /) -> tuple[SpecT, Options]:
        """The spec of a chosen component and its validated options."""
        ...


@dataclass(frozen=True, kw_only=True)
class Design:
    """The components of a network.

    Args:
        section: the recipe section that names them.
        backbone: the backbone and its options.
        decoder: the decoder and its options.
    """

    section: ModelSection
    backbone: tuple[BackboneSpec, Options]
    decoder: tuple[DecoderSpec, Options]

    def describe_backbone(self) -> dict[str, Any]:
        """The backbone's name and all its options, given or not, as plain JSON."""
        spec, options = self.backbone
        return {"name": spec.name, **write_out(options, None)}


def find_design(section: ModelSection, component: ComponentLookup) -> Design:
    """The design of a model section.

    Raises:
        ComponentError: a component is not known, or does not take the given options.
    """
    return Design(section=section, backbone=component(BackboneSpec, section.backbone), decoder=component(DecoderSpec, section.decoder))
