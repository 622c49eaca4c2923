"""What train says of words and labels: their relevance and their counts, read once and handed on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from plant_cli.api import Analyser, Corpus
from plant_cli.artefacts.relevance import count_documents, load_relevance, read_label_index, read_vocabulary
from plant_cli.relevance.table import RelevanceTable


@dataclass(frozen=True, kw_only=True)
class WordStatistics:
    """What is known of words and labels from train.

    Args:
        table: relevance of words for labels.
        docs_with_word: training documents with each word [V].
        docs_with_label: training documents with each label [L].
        documents: training documents N.
        analyser: finds words in texts as these were found.
    """

    table: RelevanceTable
    docs_with_word: npt.NDArray[np.int64]
    docs_with_label: npt.NDArray[np.int64]
    documents: int
    analyser: Analyser


def load_statistics(folder: Path, corpus: Corpus) -> WordStatistics:
    """Read the relevance of a run once, with the counts that go with it.

    Args:
        folder: of the stage `mig`.
        corpus: the run's corpus.

    Raises:
        ArtefactError: a file is missing or damaged, or was made for other labels.
    """
    return WordStatistics(
        table=load_relevance(folder, corpus.labels.hash),
        docs_with_word=read_vocabulary(folder)["docs_with_word"].to_numpy(),
        docs_with_label=read_label_index(folder)["docs_with_label"].to_numpy(),
        documents=count_documents(folder) or corpus.sizes["train"],
        analyser=corpus.analyser,
    )
