"""Labels that a shortlist proposes for the documents of a split, and how many of the network's best are among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch

from plant_cli.api import Options, Reporter, ShortlistInput, ShortlistSpec
from plant_cli.corpus.words import count_words
from plant_cli.model.hardware import Hardware
from plant_cli.model.label_scores import score_all
from plant_cli.model.network import Network
from plant_cli.model.reading import HiddenReader
from plant_cli.model.word_statistics import WordStatistics

Rows = npt.NDArray[np.int64]
BATCH = 256  # documents proposed for at a time
SAMPLE = 64  # documents on which recall is measured: all their labels must be scored


class Candidates:
    """What a shortlist proposes for each document of a split, [N] arrays of label indices."""

    def __init__(self, found: Sequence[Rows]) -> None:
        self.found = found

    def __len__(self) -> int:
        return len(self.found)

    def of(self, rows: Rows, device: torch.device) -> list[torch.Tensor]:
        """Those of the given documents."""
        return [torch.from_numpy(self.found[row]).to(device) for row in rows]


def propose(
    shortlist: tuple[ShortlistSpec, Options], statistics: WordStatistics, splits: Mapping[str, Sequence[str]], reporter: Reporter
) -> dict[str, Candidates]:
    """Build a shortlist, and ask it for the labels of every text of some splits.

    Args:
        shortlist: the component and its options.
        statistics: of train; the shortlist is built from them.
        splits: texts, one a document, by the name of the split.
        reporter: where progress goes.
    """
    spec, options = shortlist
    table = statistics.table
    given = ShortlistInput(
        words=table.words,
        relevance=table.matrix,
        docs_with_word=statistics.docs_with_word,
        train_counts=statistics.docs_with_label,
        documents=statistics.documents,
    )
    built = spec.build(options, given)
    columns = {word: column for column, word in enumerate(table.words)}
    proposed: dict[str, Candidates] = {}
    for name, texts in splits.items():
        found: list[Rows] = []
        with reporter.progress(f"shortlist {spec.name}: {name}", len(texts), "documents") as task:
            for start in range(0, len(texts), BATCH):
                part = texts[start : start + BATCH]
                found.extend(built.propose(part, count_words(part, columns, statistics.analyser)))
                task.advance(len(part))
        proposed[name] = Candidates(found)
    return proposed


@torch.no_grad()
def measure_recall(network: Network, reader: HiddenReader, hardware: Hardware, candidates: Candidates, m: int, *, batch: int) -> float:
    """Share of the m labels that the network scores highest that the shortlist proposes, mean over at most `SAMPLE` documents.

    The network scores every label of these documents, so the figure is exact for them; they are spread evenly over the split.
    """
    network.eval()
    rows = np.unique(np.linspace(0, len(candidates) - 1, num=min(SAMPLE, len(candidates)), dtype=np.int64))
    m = min(m, network.labels)
    shares: list[float] = []
    for start in range(0, len(rows), batch):
        part = rows[start : start + batch]
        reading = reader.read(part)
        with hardware.autocast():
            best = score_all(network.decoder, reading, network.labels).topk(m, dim=1).indices
        proposed = candidates.of(part, best.device)
        shares += [float(torch.isin(top, labels).float().mean()) for top, labels in zip(best, proposed, strict=True)]
    return float(np.mean(shares)) if shares else 0.0
