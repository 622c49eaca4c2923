"""Texts in, best labels out: the trained network of a run with its lexical scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plant_cli.api import Corpus, Evidence, Reporter, StageContext
from plant_cli.inference.lexical import LexicalScores, Lexicon, load_lexicon
from plant_cli.inference.scoring import Keep, TopLabels, score_mixtures
from plant_cli.model.candidates import Candidates, measure_recall
from plant_cli.model.cuts import measure_cut
from plant_cli.model.hardware import Hardware, choose_hardware
from plant_cli.model.network import Network, restored
from plant_cli.model.reading import LiveReader, tokenize


@dataclass(frozen=True)
class TrainedModel:
    """A trained network that is loaded once and asked many times.

    Args:
        network: its decoder is folded: it cannot be trained further.
        lexicon: what its words say, if they vote.
        hardware: where it runs.
    """

    network: Network
    lexicon: Lexicon | None
    hardware: Hardware

    def __post_init__(self) -> None:
        with self.hardware.autocast():
            self.network.to(self.hardware.device).fold_decoder()

    def score(
        self,
        texts: Sequence[str],
        *,
        name: str,
        k: int,
        batch: int,
        reporter: Reporter,
        keep: Keep | None = None,
        candidates: Candidates | None = None,
        context: StageContext | None = None,
        evidence: Evidence | None = None,
    ) -> TopLabels:
        """The k best labels of each text.

        Args:
            texts: one a document.
            name: of the texts, for progress ("test").
            k: labels kept of each text.
            batch: texts scored at once.
            reporter: where progress goes.
            keep: told the rows of each batch and its logits for all labels.
            candidates: the labels of each text that are scored; None: all are.
            context: asked whether to stop.
            evidence: gold spans of the texts, to be looked for beyond what is read.

        Raises:
            Interrupted: the user stopped the command.
        """
        tokens = tokenize(self.network, texts, reporter, name, evidence=evidence)
        reader = LiveReader(self.network, tokens, self.hardware)
        top = score_mixtures(
            self.network,
            reader,
            self.hardware,
            k=k,
            batch=batch,
            reporter=reporter,
            description=f"scoring {name}",
            lexical=LexicalScores(self.lexicon, texts) if self.lexicon else None,
            keep=keep,
            context=context,
            candidates=candidates,
        )[0]
        recall = None if candidates is None else measure_recall(self.network, reader, self.hardware, candidates, k, batch=batch)
        return replace(top, shortlist_recall=recall, cut=measure_cut(tokens, evidence))


def load_model(context: StageContext, corpus: Corpus, folder: Path) -> TrainedModel:
    """The trained network of a `finetune` folder.

    Raises:
        ArtefactError: the network or its lexicon was made for another order of labels, or cannot be read.
    """
    hardware = choose_hardware(context.machine)
    return TrainedModel(restored(context, corpus, folder), load_lexicon(folder, corpus.labels.hash), hardware)
