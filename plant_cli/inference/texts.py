"""Texts in, best labels out: the trained network of a run with the votes of its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from plant_cli.api import Choice, Corpus, StageContext
from plant_cli.inference.lexical import LexicalVotes, load_lexicon
from plant_cli.inference.scoring import TopLabels, score_mixtures
from plant_cli.model.candidates import measure_recall, propose
from plant_cli.model.hardware import choose_hardware
from plant_cli.model.network import restored
from plant_cli.model.reading import LiveReader, tokenize


def score_texts(
    context: StageContext,
    corpus: Corpus,
    folder: Path,
    texts: Sequence[str],
    *,
    name: str,
    k: int,
    batch: int,
    shortlist: Choice | None = None,
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
        shortlist: proposes the labels that are scored; None: all are.

    Raises:
        ArtefactError: the network or its lexicon was made for another order of labels, or cannot be read.
        Interrupted: the user stopped the command.
    """
    hardware = choose_hardware(context.machine)
    network = restored(context, corpus, folder).to(hardware.device)
    lexicon = load_lexicon(folder, corpus.labels.hash)
    reader = LiveReader(network, tokenize(network, texts, context.reporter, name), hardware)
    candidates = propose(context, corpus, shortlist, texts, name) if shortlist else None
    top = score_mixtures(
        network,
        reader,
        hardware,
        k=k,
        batch=batch,
        reporter=context.reporter,
        description=f"scoring {name}",
        votes=LexicalVotes(lexicon, texts) if lexicon else None,
        context=context,
        candidates=candidates,
    )[0]
    if candidates is None:
        return top
    return replace(top, shortlist_recall=measure_recall(network, reader, hardware, candidates, k, batch=batch))
