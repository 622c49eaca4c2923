"""Models that were trained: loaded, and texts scored with them. Torch is imported only where a
model has a network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from plant_cli.api import Analyser, Corpus, Documents, MachineSection, NetworkSpec, Reporter
from plant_cli.api.components import ComponentLookup
from plant_cli.data.words import split_texts
from plant_cli.scoring.fused_scorers import Combination, FusedScorers, score_parts
from plant_cli.scoring.score_sums import explain_labels
from plant_cli.scoring.scorer_files import read_scorers
from plant_cli.scoring.sparse_scores import DOCUMENTS_BETWEEN_CHECKS
from plant_cli.scoring.top_labels import Logits, Rows, Scoring, TopLabels, raise_if_stopped

Floats = npt.NDArray[np.float64]
DESIGN_FILE = "model.json"  # of a network, in the folder of the stage that trained it
EXCLUDED_LOGIT = -1e4  # logit of an excluded label, where every logit is kept


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """Where a trained model is loaded from, and what for."""

    folder: Path  # of the stage `finetune`
    corpus: Corpus
    component: ComponentLookup  # finds backbone, decoder and scorers
    networks: Callable[[], NetworkSpec]  # the plugin that opens networks, where there is one
    machine: MachineSection  # where it is to run
    relevance: Callable[[], Path | None] = lambda: (
        None
    )  # the run's folder `mig`; asked only if the decoder looks at words


@dataclass(frozen=True, kw_only=True)
class TokenEvidence:
    """What a network says of a text of T tokens and some labels [k]."""

    labels: Sequence[int]  # their rows of the index
    logits: Floats  # of all labels [L]
    spans: npt.NDArray[np.int64]  # of its tokens in code points, end exclusive [T, 2]
    # what the logit of each label loses without each token, or else its attention on them [k, T]
    weights: Floats
    exact: bool  # whether it is what the logit loses


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A model that is loaded once and asked many times: scorers without a network.
    `NetworkModel` has one.
    """

    combination: (
        Combination | None
    )  # the scorers and the calibration; None for a network that was saved without calibration
    analyser: Analyser  # finds the words of texts
    reads_pieces: ClassVar[bool] = (
        False  # whether something of it reads words that train has not, by their parts
    )

    @property
    def scorers(self) -> FusedScorers | None:
        """The scorers, if it has any."""
        return None if self.combination is None else self.combination.scorers

    @property
    def common(self) -> Set[str]:
        """Words that so many training documents have that they are no reasons."""
        if self.scorers is not None and self.scorers.known is not None:
            return self.scorers.known.common
        return frozenset() if self.combination is None else self.combination.common

    def split(self, texts: Sequence[str]) -> Documents:
        """Texts as words, one a document."""
        return split_texts(texts, self.analyser)

    def _words(self, texts: Sequence[str], scoring: Scoring) -> Documents:
        if scoring.words is None:
            return self.split(texts)
        return replace(scoring.words(), texts=texts)

    def score(self, texts: Sequence[str], scoring: Scoring) -> TopLabels:
        """The k best labels of each text that are not excluded."""
        excluded = np.array(
            sorted({*scoring.excluded, *(self.combination.excluded if self.combination else ())}),
            dtype=np.int64,
        )
        if not len(excluded):
            return self._score(texts, scoring)

        def keep(rows: Rows, logits: Logits) -> None:
            left = logits.copy()
            left[:, excluded] = EXCLUDED_LOGIT
            assert scoring.keep is not None  # else nothing is kept
            scoring.keep(rows, left)

        wider = replace(
            scoring, k=scoring.k + len(excluded), keep=None if scoring.keep is None else keep
        )
        return self._score(texts, wider).bar(excluded, scoring.k)

    def _score(self, texts: Sequence[str], scoring: Scoring) -> TopLabels:
        assert self.combination is not None  # there is nothing else to score with
        assert self.scorers is not None
        found, said = list[TopLabels](), (scoring.reporter, scoring.name)
        first = 0
        for scored in (
            self.scorers.score_some(self._words(texts, scoring), *said)
            if scoring.scored is None
            else [scoring.scored]
        ):
            logits = self.combination.calibrate(scored)
            top = TopLabels.of(logits, scoring.k, scoring.should_stop)
            if scoring.keep is not None:
                for start in range(0, len(scored), DOCUMENTS_BETWEEN_CHECKS):
                    raise_if_stopped(scoring.should_stop)
                    rows = np.arange(start, min(start + DOCUMENTS_BETWEEN_CHECKS, len(scored)))
                    scoring.keep(first + rows, logits.dense(rows))
            parts = score_parts(scored, scoring.k) if scoring.parts else {}
            reasons = (
                explain_labels(scored, self.combination, top.labels) if scoring.reasons else ()
            )
            found.append(replace(top, trust=scored.trust, parts=parts, reasons=reasons))
            first += len(scored)
        return TopLabels.join(found)

    def weigh_tokens(
        self,
        text: str,
        words: Documents,
        choose: Callable[[Floats], Sequence[int]],
        reporter: Reporter,
    ) -> TokenEvidence | None:
        """The logits of a text, and what those of the labels that are chosen by them lose
        without each token; None without a network.
        """
        return None

    def compare_tokens(
        self, text: str, words: Documents, labels: Sequence[int]
    ) -> tuple[npt.NDArray[np.int64], Mapping[str, Floats]]:
        """The spans of a network's tokens [T, 2], and by each other way to weigh them what each
        is worth for some labels [k, T].
        """
        return np.zeros((0, 2), dtype=np.int64), {}


def has_network(folder: Path) -> bool:
    """Whether a trained model in the folder of a stage has a network."""
    return (folder / DESIGN_FILE).exists()


def load_model(source: ModelSource) -> TrainedModel:
    """A trained model."""
    combination = read_scorers(
        source.folder, source.corpus.labels, source.corpus.analyser, source.component
    )
    if (
        not has_network(source.folder)
        and combination is not None
        and combination.scorers is not None
    ):
        return TrainedModel(combination=combination, analyser=source.corpus.analyser)
    model: TrainedModel = source.networks().load(source, combination)
    return model
