"""The scorer `dense`: the beginning of a document, compared with names of labels and with other
documents of theirs, in the space of a packaged encoder. It knows synonyms, and names in another
language than the text's.

Nothing is trained. `label_vectors` reads each name once, and at least one training document of each
label. The vector of a label is the sum of both, and a document is compared with all of them: with
40,000 labels this takes 2 ms, and reading the document 31 ms, so there is no index of near ones.
The nearest training documents themselves were measured as a further view, and added nothing.

It needs torch, and depends on `plant_backbones`, whose extras `multilingual` and `minilm` install
the encoders, and on `plant_network` for the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plant_cli.api import Options, ScorerSpec, hookimpl, option


class DenseOptions(Options):
    """Options of the scorer `dense`."""

    backbone: Literal["multilingual", "minilm"] = option(
        "multilingual",
        "Encoder that reads names and documents; minilm knows English alone, and is faster.",
    )
    words: int = option(
        24,
        "Words read of a document's first line, at most (texts often begin with a title).",
        ge=1,
    )
    examples: int = option(
        1,
        "Training documents of each label that are read, at least, for its vector; 0: names alone.",
        ge=0,
    )


@hookimpl
def plant_register_scorers() -> Sequence[ScorerSpec]:
    """`dense`, which nothing uses unless it is named."""
    return [
        ScorerSpec(
            name="dense",
            summary="Cosine of the document's beginning with the label's name and documents, by a "
            "packaged encoder (torch; off by default).",
            options=DenseOptions,
            source="mean states of multilingual-e5-small or all-MiniLM-L6-v2",
            fit="plant_dense.label_vectors:fit",
            load="plant_dense.label_vectors:DenseScorer.load",
            needs_texts=True,
            zero_shot=True,
        )
    ]
