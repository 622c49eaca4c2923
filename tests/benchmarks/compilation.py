"""What the compiler makes of the Triton kernels, with or without a graphics card: registers, stack and shared memory of each.

`python -m tests.benchmarks.compilation --capability 90 --json FILE`. A stack above 0 means that a program has more in hand than its
registers hold; shared memory above what a card has per program (99 KB on most, 227 KB on Hopper) that it cannot run there.
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
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from plant_cli.network import attention_kernels as attention
from plant_cli.network import ranking_kernels as ranking

TYPES = {"bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64}
SETTINGS = {"num_warps", "num_stages"}


def programs(kinds: list[str], sizes: list[int]) -> Iterator[tuple[str, Any, dict[str, str], dict[str, Any]]]:
    """Each kernel with a name, the types of its arguments, and the constants and settings that it is compiled for."""
    for kind in kinds:
        exact = "fp64" if kind == "fp64" else "fp32"
        types = {
            **dict.fromkeys(["queries", "directions", "keys", "values", "d_keys", "d_values"], f"*{kind}"),
            **dict.fromkeys(["means", "levels", "upstream", "d_queries", "d_directions"], f"*{exact}"),
            "mask": "*i1",
            "ends": "*i32",
            "selected": "*i64",
            "counts": "*i32",
            "labels": "i32",
            "positions": "i32",
        }
        for size in sizes:
            row = torch.empty(1, size, dtype=TYPES[kind])
            yield f"attention forward, {kind}, {size}", attention._forward, types, attention.constants(row, 1, backward=False)
            for part, kernel in (("labels", attention._label_gradients), ("positions", attention._position_gradients)):
                yield f"attention {part}, {kind}, {size}", kernel, types, attention.constants(row, 1, backward=True)
    for kind in sorted({*kinds} - {"bf16"}):
        pointers = ["scores", "relevance", "gains", "discounts", "losses", "ideals", "gradient"]
        types = {**dict.fromkeys(pointers, f"*{kind}"), "offsets": "*i64", "k": "i32"}
        yield f"ranking, {kind}", ranking._pair_sums, types, {"SIGMA": 1.0, **ranking.LAUNCH}


def compile_kernel(kernel: Any, types: dict[str, str], constants: dict[str, Any], capability: int) -> dict[str, int]:
    """Registers of a thread, stack of a thread (bytes) and shared memory of a program (bytes)."""
    signature = {name: "constexpr" if name in constants else types[name] for name in kernel.arg_names}
    values = {(place,): constants[name] for place, name in enumerate(kernel.arg_names) if name in constants}
    aligned = {(place,): [["tt.divisibility", 16]] for place, name in enumerate(kernel.arg_names) if signature[name].startswith("*")}
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
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.compilation", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--capability", type=int, default=90, help="of the card, times ten: 80 is A100, 89 RTX 4090, 90 H100 and H200")
    parser.add_argument("--types", choices=list(TYPES), nargs="+", default=list(TYPES))
    parser.add_argument("--sizes", type=int, nargs="+", default=[48, 128, 512], help="places of an attention head")
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
