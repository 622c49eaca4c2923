"""What leaves: `plant export` writes a trained model to a folder that is taken as a run, without
its corpus.

`export` writes the folder, `model_card` its card for the Hugging Face hub, and `onnx_graphs` an
encoder and its decoder as ONNX graphs. A model without a network is opened without torch.

Graphs need the extra `onnx` (onnx, onnxruntime), and are those of Hugging Face models: this plugin
depends on `plant_backbones.huggingface` and `plant_backbones.windows`. A network it opens with
`plant_network.assembly`. Of the core it uses fused
scorers (`scoring`), metrics for the card (`evaluation`), and run folders (`runs`, `data`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plant_cli.api import Options, StageSpec, hookimpl, option
from plant_cli.api.options import everyday


class ExportOptions(Options):
    """Options of `export`."""

    folder: str = option(
        help="The folder to write; made if it does not exist.", argument=True, min_length=1
    )
    merge: bool = everyday(
        False,
        "Write whole weights, with the adapter merged in. Default: the adapter and the id of its "
        "base.",
    )
    licence: str | None = option(
        None, "Licence of the model for its card, such as apache-2.0 (default: none is named)."
    )
    onnx: Literal["fp32", "int8"] | None = option(
        None, "Also write an encoder and its decoder as ONNX graphs (extra onnx)."
    )


@hookimpl
def plant_register_stages() -> Sequence[StageSpec]:
    """The export."""
    return [
        StageSpec(
            name="export",
            summary="Write the trained model to a folder of its own: a run without its corpus.",
            options=ExportOptions,
            run="plant_export.export:run",
            help="--merge writes whole weights with the adapter in them. Nothing is written to "
            "the run.",
            takes=("tag", "force"),
            sections=("machine",),
            writes=False,
            examples=(
                "plant export model-folder --merge",
                "plant export model-folder --tag baseline --force",
            ),
        ),
    ]
