"""Texts in, best labels out: the trained network of a run with the votes of its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from plant_cli.api import Corpus, StageContext
from plant_cli.inference.lexical import LexicalVotes, load_lexicon
from plant_cli.inference.scoring import TopLabels, score_mixtures
from plant_cli.model.hardware import choose_hardware
from plant_cli.model.network import restored
from plant_cli.model.reading import LiveReader, Rows, tokenize


def score_texts(
    context: StageContext,
    corpus: Corpus,
    folder: Path,
    texts: Sequence[str],
    *,
    name: str,
    k: int,
    batch: int,
    keep: Callable[[Rows, npt.NDArray[np.float32]], None] | None = None,
) -> TopLabels:
    """The k best labels of each text.

    Args:
        context: of the stage that asks.
        corpus: gives the order of labels.
        folder: the `finetune` folder of the trained network.
        texts: one a document.
        name: of the texts, for progress ("test").
        k: labels kept of each text.
        batch: texts scored at once.
        keep: told the rows of each batch and its logits for all labels.

    Raises:
        ArtefactError: the network or its lexicon was made for another order of labels, or cannot be read.
        Interrupted: the user stopped the command.
    """
    hardware = choose_hardware(context.machine)
    network = restored(context, corpus, folder).to(hardware.device)
    lexicon = load_lexicon(folder, corpus.labels.hash)
    return score_mixtures(
        network,
        LiveReader(network, tokenize(network, texts, context.reporter, name), hardware),
        hardware,
        k=k,
        batch=batch,
        reporter=context.reporter,
        description=f"scoring {name}",
        votes=LexicalVotes(lexicon, texts) if lexicon else None,
        keep=keep,
        context=context,
    )[0]
