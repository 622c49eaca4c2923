"""Texts in, best labels out: the trained network of a run with its lexical scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plant_cli.api import Analyser, Corpus, Evidence, MachineSection, Reporter
from plant_cli.artefacts.model import require_words
from plant_cli.artefacts.relevance import read_vocabulary
from plant_cli.inference.lexical import LexicalScores, Lexicon, load_lexicon
from plant_cli.inference.scoring import Keep, TopLabels, score_mixtures
from plant_cli.model.candidates import Candidates, measure_recall
from plant_cli.model.cuts import measure_cut
from plant_cli.model.design import ComponentLookup
from plant_cli.model.hardware import Hardware, choose_hardware
from plant_cli.model.network import Network, load_network
from plant_cli.model.reading import LiveReader, tokenize
from plant_cli.model.token_words import find_token_words
from plant_cli.runs.session import never


@dataclass(frozen=True)
class TrainedModel:
    """A trained network that is loaded once and asked many times.

    Args:
        network: its decoder is folded: it cannot be trained further.
        lexicon: lexical scores that are added; None if there are none.
        hardware: where it runs.
        analyser: finds the words of texts.
        vocabulary: the words of the run's relevance table, for decoders that look at words.
    """

    network: Network
    lexicon: Lexicon | None
    hardware: Hardware
    analyser: Analyser
    vocabulary: Sequence[str] = ()

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
        should_stop: Callable[[], bool] = never,
        evidence: Evidence | None = None,
    ) -> TopLabels:
        """The k best labels of each text.

        Args:
            texts: one a document.
            name: of the texts, for progress ("test").
            k: labels kept of each text.
            batch: texts scored at once.
            reporter: where progress goes.
            keep: called with the rows of each batch and its logits for all labels.
            candidates: the labels of each text that are scored; None: all are.
            should_stop: true once the user asked to stop.
            evidence: gold spans of the texts, to be looked for beyond what is read.

        Raises:
            Interrupted: the user stopped the command.
        """
        tokens = tokenize(self.network, texts, reporter, name, evidence=evidence)
        words = find_token_words(texts, tokens, self.vocabulary, self.analyser) if self.network.needs_words else None
        reader = LiveReader(self.network, tokens, self.hardware, words)
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
            should_stop=should_stop,
            candidates=candidates,
        )[0]
        recall = None if candidates is None else measure_recall(self.network, reader, self.hardware, candidates, k, batch=batch)
        return replace(top, shortlist_recall=recall, cut=measure_cut(tokens, evidence))


def load_model(
    folder: Path, corpus: Corpus, component: ComponentLookup, machine: MachineSection, relevance: Callable[[], Path | None] = lambda: None
) -> TrainedModel:
    """The trained network of a `finetune` folder.

    Args:
        folder: of the stage.
        corpus: the run's corpus.
        component: finds backbone and decoder.
        machine: where it is to run.
        relevance: gives the run's folder `mig`, if it has one; asked only if the decoder looks at words.

    Raises:
        ArtefactError: the network or its lexicon was made for another order of labels, or cannot be read.
    """
    hardware = choose_hardware(machine)
    network = load_network(folder, component, machine, corpus.labels, corpus.sizes["train"])
    words = relevance() if network.needs_words else None
    vocabulary = () if words is None else read_vocabulary(words)["word"].to_list()
    if network.needs_words:
        require_words(folder, vocabulary, words or "a run without relevance")
    lexicon = load_lexicon(folder, corpus.labels.hash, corpus.analyser)
    return TrainedModel(network, lexicon, hardware, corpus.analyser, vocabulary)
