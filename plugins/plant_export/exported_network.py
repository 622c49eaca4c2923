"""The network of an export: its backbone for other programs, its graphs of ONNX, and what the
card says of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plant_network.assembly import WEIGHTS, load_network

from plant_cli.api import (
    ComponentError,
    Corpus,
    ExportableBackbone,
    PlantError,
    Reporter,
    SplitName,
    StageContext,
)
from plant_export.onnx_graphs import (
    BEST_COMPARED,
    describe_windows,
    measure_graphs,
    quantise_graphs,
    require_onnx,
    write_graphs,
)

DECODER = f"finetune/{WEIGHTS}"
GRAPHS, GRAPHS_AGREE, TEXTS_COMPARED = "onnx", 1e-4, 64


class ExportedNetwork:
    """A network whose backbone has a layout that another program reads.

    Args:
        source: the stage's folder that holds the network.
        numbers: of the graphs of ONNX, `fp32` or `int8`; None: there are none.
    """

    def __init__(
        self, context: StageContext, source: Path, corpus: Corpus, numbers: str | None
    ) -> None:
        self.network = load_network(
            source, context.component, context.machine, corpus.labels, corpus.sizes["train"]
        )
        if not isinstance(self.network.backbone, ExportableBackbone):
            raise ComponentError(
                f"the backbone '{self.network.section.backbone.name}' has no layout that another "
                "program reads",
                where=f"{source}, backbone '{self.network.section.backbone.name}'",
                expected="a backbone that can be exported, as all Hugging Face models can",
                todo="use the network with `plant predict` or `plant suggest`; its weights are "
                f"in {source}",
            )
        self.backbone = self.network.backbone
        self.corpus = corpus
        self.numbers = numbers
        self.written: dict[str, Any] = {}
        """What the backbone says of the files that it wrote."""
        if numbers is not None:
            require_onnx(self.network)

    @property
    def needs_words(self) -> bool:
        """Whether it reads the relevance table."""
        return self.network.needs_words

    def write(self, folder: Path, *, merge: bool, reporter: Reporter) -> dict[str, Any]:
        """Write backbone and graphs; what the card says of the graphs."""
        graphs = {} if self.numbers is None else self._write_graphs(folder / GRAPHS, reporter)
        self.written = dict(self.backbone.export(folder, merge=merge))
        return graphs

    def describe(self) -> dict[str, Any]:
        """What the card says of the network, once it is written."""
        written = self.written
        base = (
            f"AutoModel.from_pretrained({written.get('base_model')!r}, "
            f"revision={written.get('revision')!r})"
        )
        adapted = (
            f"PeftModel.from_pretrained({base}, 'adapter')"
            if written.get("folder") == "adapter"
            else base
        )
        read_with = "AutoModel.from_pretrained('backbone')" if written.get("merged") else adapted
        return {
            "backbone": {**written, "read_with": read_with},
            "decoder": {
                "file": DECODER,
                "component": self.network.section.decoder.to_recipe(),
                "hidden": self.backbone.hidden_size,
                "reads": "hidden states of content tokens in fp32: special tokens and padding "
                "left out, overlaps of windows averaged",
            },
            "tokenizer_hash": self.backbone.tokenizer_hash,
        }

    def warn_of_base(self, reporter: Reporter) -> None:
        """Warn if others lack the weights that the backbone starts from."""
        base = Path(str(self.written.get("base_model")))
        if not self.written.get("merged") and base.is_dir():
            reporter.warn(
                f"the base model is a folder of this machine, {base}: pass it on as well, or use "
                "--merge, which includes it"
            )

    def _write_graphs(self, folder: Path, reporter: Reporter) -> dict[str, Any]:
        """Graphs of ONNX, and how they are to be read; it is said how far their scores are from
        the network's.
        """
        texts, source = _take_texts(self.corpus)
        write_graphs(self.network, folder)
        furthest, same = measure_graphs(self.network, folder, texts)
        if furthest > GRAPHS_AGREE:
            raise ComponentError(
                f"the ONNX graphs give other scores than the network: up to {furthest:.2g} apart",
                where=f"--onnx, {len(texts)} {source}",
                expected=f"probabilities within {GRAPHS_AGREE:g}",
                todo="export without --onnx",
            )
        if self.numbers == "int8":
            quantise_graphs(folder)
            furthest, same = measure_graphs(self.network, folder, texts)
        agree = (
            f"probabilities of the network move by {furthest:.2g} at most, and {same:.1%} of "
            f"its {BEST_COMPARED} best labels stay"
        )
        reporter.note(f"ONNX in {self.numbers}: {agree} ({len(texts)} {source})")
        return {
            "onnx": {
                "folder": GRAPHS,
                "numbers": self.numbers,
                "measured": f"{agree}, on {len(texts)} {source}",
                **describe_windows(self.network),
            }
        }


def _take_texts(corpus: Corpus) -> tuple[Sequence[str], str]:
    """Texts to compare scores on, and what they are."""
    split: SplitName = "validation" if corpus.has_split("validation") else "train"
    try:
        return next(iter(corpus.stream(split))).texts[:TEXTS_COMPARED], f"documents of {split}"
    except PlantError:  # an export has no corpus
        labels = corpus.labels
        named = [title or label for label, title in zip(labels.ids, labels.titles, strict=True)]
        return named[:TEXTS_COMPARED], "names of labels"
