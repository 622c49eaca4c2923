"""What the compiler makes of the Triton kernels, with or without a graphics card: registers, stack
and shared memory of each.

`python -m tests.benchmarks.compilation --capability 90 --json FILE`. A stack above 0 means that a
program has more in hand than its registers hold; shared memory above what a card has per program
(99 KB on most, 227 KB on Hopper) that it cannot run there.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import triton
from plant_decoders import attention_kernels as attention
from plant_losses import ranking_kernels as ranking
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TYPES = {"bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64}
SETTINGS = {"num_warps", "num_stages"}


def programs(
    kinds: list[str], sizes: list[int]
) -> Iterator[tuple[str, Any, dict[str, str], dict[str, Any]]]:
    """Each kernel with a name, the types of its arguments, and the constants and settings that
    it is compiled for.
    """
    for kind in kinds:
        exact = "fp64" if kind == "fp64" else "fp32"
        inputs = [
            "queries",
            "directions",
            "keys",
            "values",
            "kept_keys",
            "kept_values",
            "to_scores",
            "to_worths",
            "real_keys",
            "real_values",
        ]
        outputs = ["means", "levels", "upstream", "d_keys", "d_values", "scores", "worths", "marks"]
        outputs += ["lined_means", "lined_levels", "lined_marks"]
        types = {
            **dict.fromkeys(inputs, f"*{kind}"),
            **dict.fromkeys(outputs, f"*{exact}"),
            "mask": "*i1",
            "padding": "*fp32",
            "ends": "*i32",
            "lined": "*i64",
            "counts": "*i32",
        }
        yield (
            f"preparation, {kind}",
            attention._prepare,
            types,
            {"ROWS": 16, "ACROSS": 128, "BLOCK": attention.ROOM},
        )
        yield (
            f"choice of labels, {kind}",
            attention._line_up_labels,
            types,
            {"AVERAGES": True, "BLOCK": 1024},
        )
        of_rows = {"ALL": False, "FACTOR": 1.0, "SCALE": 1.0, "ROWS": 4, "ACROSS": 512}
        for part, kernel in (
            ("forward", attention._average_rows),
            ("backward", attention._pull_rows),
        ):
            yield (
                f"products {part}, {kind}",
                kernel,
                types,
                {name: of_rows[name] for name in kernel.arg_names if name in of_rows},
            )
        for size in sizes if TYPES[kind] in attention.FUSED_TYPES else []:
            forward, labels, positions = attention.FUSED[
                min(wide for wide in attention.FUSED if wide >= size)
            ]
            shared = attention.constants(1, size)
            yield (
                f"fused forward, {size}",
                attention._average_tile,
                types,
                {**shared, "ALL": True, **forward.settings},
            )
            for part, tile in (("labels", labels), ("positions", positions)):
                constants = {**shared, "SCALE": 1.0, "OF_LABELS": part == "labels", **tile.settings}
                yield f"fused {part}, {size}", attention._pull_tile, types, constants
    for kind in sorted({*kinds} - {"bf16"}):
        pointers = ["scores", "relevance", "gains", "discounts", "losses", "ideals", "gradient"]
        types = {**dict.fromkeys(pointers, f"*{kind}"), "offsets": "*i64"}
        yield f"ranking, {kind}", ranking._pair_sums, types, {"SIGMA": 1.0, **ranking.LAUNCH}


def compile_kernel(
    kernel: Any, types: dict[str, str], constants: dict[str, Any], capability: int
) -> dict[str, int]:
    """Registers of a thread, stack of a thread (bytes) and shared memory of a program (bytes)."""
    signature = {
        name: "constexpr" if name in constants else types.get(name, "i32")
        for name in kernel.arg_names
    }
    values = {
        (place,): constants[name]
        for place, name in enumerate(kernel.arg_names)
        if name in constants
    }
    aligned = {
        (i,): [["tt.divisibility", 16]]
        for i, x in enumerate(kernel.arg_names)
        if signature[x][0] == "*" or x in ("positions", "hidden")
    }
    source = ASTSource(fn=kernel, signature=signature, constexprs=values, attrs=aligned)
    settings = {name: value for name, value in constants.items() if name in SETTINGS}
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=settings)
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "kernel.cubin"
        binary.write_bytes(compiled.asm["cubin"])
        command = [triton.knobs.nvidia.cuobjdump.path, "--dump-resource-usage", str(binary)]
        listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {key: int(value) for key, value in re.findall(r"(REG|STACK):(\d+)", listing)}
    return {"registers": found["REG"], "stack": found["STACK"], "shared": compiled.metadata.shared}


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.compilation", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--capability",
        type=int,
        default=90,
        help="of the card, times ten: 80 is A100, 89 RTX 4090, 90 H100 and H200",
    )
    parser.add_argument("--types", choices=list(TYPES), nargs="+", default=list(TYPES))
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[48, 128, 256], help="places of an attention head"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    figures = {}
    print(f"{'':32}{'registers':>10}{'stack':>8}{'shared':>8}")
    for name, kernel, types, constants in programs(options.types, options.sizes):
        found = figures[name] = compile_kernel(kernel, types, constants, options.capability)
        print(f"{name:32}{found['registers']:10}{found['stack']:8}{found['shared']:8}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
