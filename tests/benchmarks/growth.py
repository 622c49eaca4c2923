"""How time grows with documents and labels: parts of a corpus, from file to ranked labels, by
several systems.

`python -m tests.benchmarks.growth --corpus FILE --documents 12500 25000 … --system
plant-without-network omikuji-bonsai --json FILE --figure FILE` takes so many training documents of
a file with a column `split`, always the first ones, and all of validation. Each system is measured
as `tests.benchmarks.whole` does; what the JSON file has is not measured again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from plant_report.drawing import Drawing

from tests.benchmarks import whole


def cut(corpus: Path, documents: int, folder: Path) -> tuple[Path, int]:
    """The first training documents and all of validation as a file, and how many labels these
    training documents have.
    """
    frame = pl.read_parquet(corpus)
    train = frame.filter(pl.col("split") == "train").head(documents)
    path = folder / "part.parquet"
    pl.concat([train, frame.filter(pl.col("split") == "validation")]).write_parquet(path)
    return path, train["labels"].explode().n_unique()


def draw(found: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Processor seconds by training documents, a line for each system; labels are written below
    the documents.
    """
    parts = sorted(found.values(), key=lambda part: part["documents"])
    systems = list(dict.fromkeys(name for part in parts for name in part["systems"]))

    def paint(axes: Any) -> None:
        for name in systems:
            points = [
                (part["documents"], part["systems"][name]["cpu_seconds"])
                for part in parts
                if name in part["systems"]
            ]
            axes.plot(
                *zip(*points, strict=True), label=whole.NAMES.get(name, name).replace("`", "")
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(
            [part["documents"] for part in parts],
            [f"{part['documents']:,}\n{part['labels']:,}" for part in parts],
            fontsize=8,
        )
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.minorticks_off()
        axes.set_xlabel("training documents, and their labels")
        axes.set_ylabel("processor seconds")

    drawn = Drawing(name="growth", title="Time from file to ranked labels", caption="", paint=paint)
    svg, png = drawn.render()
    path.write_bytes(png if path.suffix == ".png" else svg.encode())


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.growth", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--corpus", type=Path, required=True, help="a Parquet file with a column `split`"
    )
    parser.add_argument(
        "--documents", type=int, nargs="+", required=True, help="training documents of each part"
    )
    parser.add_argument("--system", choices=whole.SYSTEMS, nargs="+", required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--figure", type=Path, help="an SVG or PNG file")
    options = parser.parse_args(arguments)
    options.split, options.set = "validation", []
    found: dict[str, Any] = json.loads(options.json.read_text()) if options.json.exists() else {}
    for documents in options.documents:
        with tempfile.TemporaryDirectory() as scratch:
            part, labels = cut(options.corpus, documents, Path(scratch))
            kept = found.setdefault(
                str(documents), {"documents": documents, "labels": labels, "systems": {}}
            )
            for name in (name for name in options.system if name not in kept["systems"]):
                measured = whole.measure_system(name, options, part, Path(scratch) / name)
                if "failed" in measured:
                    print(measured["failed"])
                    continue
                kept["systems"][name] = measured
                options.json.write_text(json.dumps(found, indent=2) + "\n")
            whole.show(
                f"{documents:,} documents, {labels:,} labels", kept["systems"], options.split
            )
    if options.figure:
        draw(found, options.figure)


if __name__ == "__main__":
    main()
