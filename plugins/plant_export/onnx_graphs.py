"""A network as graphs of ONNX: the encoder reads a window of a document, the decoder scores the
joined hidden states of all windows.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import torch
from plant_backbones.windows import join_windows
from plant_network.assembly import Network
from torch import Tensor, nn

from plant_cli.api import ComponentError, Reading
from plant_cli.api.errors import first_line, missing_package

if TYPE_CHECKING:
    from plant_backbones.huggingface import (
        HuggingFaceBackbone,
    )  # with transformers, which takes seconds to import

ENCODER_GRAPH, DECODER_GRAPH = "encoder.onnx", "decoder.onnx"
OPSET = 17
TEXTS_SCORED = 8
BEST_COMPARED = 10  # labels of each text


def require_onnx(network: Network) -> None:
    """Refuse a network that has no graphs, and a machine without the packages that write and
    check them.
    """
    backbone: Any = network.backbone
    encodes = (
        hasattr(backbone, "profile")
        and backbone.profile.kind == "encoder"
        and backbone.short is None
    )
    if not encodes or network.needs_words:
        raise ComponentError(
            f"a network with the backbone '{network.section.backbone.name}' has no ONNX graphs",
            where="--onnx",
            expected="an encoder whose weights are not quantised, and a decoder that needs no "
            "relevance table",
            todo="export without --onnx",
        )
    for name in ("onnx", "onnxruntime"):
        if find_spec(name) is None:
            raise missing_package(
                name, "which graphs are written and checked with", "onnx", where="--onnx"
            )


class _EncoderGraph(nn.Module):
    """Hidden states [W, S, H] of windows."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states: Tensor = self.network(
            input_ids=input_ids, attention_mask=attention_mask
        ).last_hidden_state
        return states


class _DecoderGraph(nn.Module):
    """Logits [B, L] of documents."""

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        logits: Tensor = self.decoder(Reading.of(hidden, mask))
        return logits


@torch.no_grad()
def write_graphs(network: Network, folder: Path) -> None:
    """Write both graphs and the tokenizer; the decoder can only score after that.

    Raises:
        ComponentError: a part of the network cannot be written as a graph.
    """
    backbone = cast("HuggingFaceBackbone", network.backbone)
    network.eval()
    network.fold_decoder()
    folder.mkdir()
    backbone.tokenizer.save_pretrained(str(folder))
    ids, hidden = torch.ones((2, 6), dtype=torch.long), torch.zeros((2, 5, backbone.hidden_size))
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]).bool()
    _write(
        _EncoderGraph(backbone.network),
        (ids, torch.ones_like(ids)),
        folder / ENCODER_GRAPH,
        ["input_ids", "attention_mask"],
        "hidden",
    )
    _write(
        _DecoderGraph(network.decoder),
        (hidden, mask),
        folder / DECODER_GRAPH,
        ["hidden", "mask"],
        "logits",
    )


def _write(
    module: nn.Module, example: tuple[Tensor, ...], path: Path, inputs: list[str], output: str
) -> None:
    axes = {name: {0: "batch", 1: "length"} for name in inputs} | {
        output: {0: "batch", **({1: "length"} if output == "hidden" else {})}
    }
    try:
        with warnings.catch_warnings(action="ignore"):  # of the tracer: sizes are axes of the graph
            torch.onnx.export(
                module.eval(),
                example,
                str(path),
                input_names=inputs,
                output_names=[output],
                dynamic_axes=axes,
                opset_version=OPSET,
                dynamo=False,
            )
    except (RuntimeError, torch.onnx.errors.OnnxExporterError, NotImplementedError) as error:
        raise ComponentError(
            f"the network cannot be written as a graph: {first_line(error)}",
            where="--onnx",
            expected="an encoder and a decoder whose operations ONNX has, as minilm and "
            "label-attention",
            todo="export without --onnx",
        ) from error


def describe_windows(network: Network) -> dict[str, Any]:
    """How a reader of the graphs cuts documents."""
    backbone = cast("HuggingFaceBackbone", network.backbone)
    special = {
        "prefix": list(backbone.prefix),
        "suffix": list(backbone.suffix),
        "pad": backbone.pad,
    }
    return {
        "window": backbone.window,
        "overlap": backbone.overlap,
        "max_tokens": backbone.max_length,
        **special,
    }


def quantise_graphs(folder: Path) -> None:
    """Hold the weights of both graphs in 8 bits, in place; activations are quantised as they
    come (onnxruntime).
    """
    quantization = import_module("onnxruntime.quantization")
    for name in (ENCODER_GRAPH, DECODER_GRAPH):
        whole = folder / f"whole-{name}"
        (folder / name).rename(whole)
        logging.disable(logging.WARNING)  # it advises steps that encoders do not need
        try:
            quantization.quantize_dynamic(
                str(whole), str(folder / name), weight_type=quantization.QuantType.QInt8
            )
        finally:
            logging.disable(logging.NOTSET)
        whole.unlink()


class GraphNetwork:
    """The graphs of a folder, run by onnxruntime, with the windows of a backbone."""

    def __init__(self, folder: Path, backbone: HuggingFaceBackbone) -> None:
        runtime: Any = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        names = (ENCODER_GRAPH, DECODER_GRAPH)
        self._encoder, self._decoder = (
            runtime.InferenceSession(
                str(folder / name), options, providers=["CPUExecutionProvider"]
            )
            for name in names
        )
        self._backbone = backbone

    def score(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Logits [B, L]."""
        backbone = self._backbone
        windows = backbone.cut(backbone.tokenize(texts))
        given = {"input_ids": windows.ids.numpy(), "attention_mask": windows.mask.long().numpy()}
        hidden, mask = join_windows(torch.from_numpy(self._encoder.run(None, given)[0]), windows)
        logits: npt.NDArray[np.float32] = self._decoder.run(
            None, {"hidden": hidden.numpy(), "mask": mask.numpy()}
        )[0]
        return logits


@torch.no_grad()
def measure_graphs(network: Network, folder: Path, texts: Sequence[str]) -> tuple[float, float]:
    """How far the graphs' probabilities are from the network's at most, and which share of its
    `BEST_COMPARED` labels are theirs, too.
    """
    graphs, backbone = (
        GraphNetwork(folder, cast("HuggingFaceBackbone", network.backbone)),
        network.backbone,
    )
    network.eval()
    furthest, same = 0.0, []
    for start in range(0, len(texts), TEXTS_SCORED):
        some = texts[start : start + TEXTS_SCORED]
        ours = network.decoder(Reading.of(*backbone.encode(backbone.tokenize(some)))).float()
        theirs = torch.from_numpy(graphs.score(some))
        furthest = max(furthest, float((ours.sigmoid() - theirs.sigmoid()).abs().max()))
        best, others = (
            one.topk(min(BEST_COMPARED, one.shape[1])).indices for one in (ours, theirs)
        )
        same.append((best[:, :, None] == others[:, None]).any(2).float().mean(1))
    return furthest, float(torch.cat(same).mean())
