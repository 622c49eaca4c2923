"""Scoring in batches; of each document only its K best labels are kept, never an N x L array."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from plant_cli.api import Reading, TrainingError
from plant_cli.inference.top import Scoring, TopCollector, TopLabels
from plant_cli.model.hardware import Hardware
from plant_cli.model.label_scores import score_all, score_pairs
from plant_cli.model.network import Network
from plant_cli.model.reading import HiddenReader, Rows, lengths, sorted_batches
from plant_cli.runs.session import stopped

Mix = Callable[[Rows, Tensor], Tensor]
"""From rows [b] and the network's logits for them [b, L] to the logits that count [b, L]."""
WHOLE = "whole"


def keep_logits(rows: Rows, logits: Tensor) -> Tensor:
    """The network alone."""
    return logits


def add_logits(collected: TopCollector, rows: Rows, logits: Tensor, candidates: Tensor | None = None) -> None:
    """Take the best of the logits [b, L] of some documents, found where these are.

    Args:
        collected: takes them; its `keep` is given all logits.
        rows: the documents [b].
        logits: on any device.
        candidates: the pairs that were scored, bool [b, L]; None: all.
    """
    best, values = top_labels(logits, collected.labels.shape[1])
    pairs = logits.numel() if candidates is None else int(candidates.sum())
    collected.take(rows, best.cpu().numpy(), values.cpu().numpy(), assigned=int((logits >= 0).sum()), pairs=pairs)
    if collected.keep is not None:
        collected.keep(rows, logits.cpu().numpy())


def top_labels(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best of logits [B, L] as (indices, logits) [B, k]; equal scores by label index, also at rank k."""
    k = min(k, logits.shape[1])
    found = logits.topk(k, dim=1, sorted=False).indices.sort(dim=1).values
    lowest = logits.gather(1, found).amin(1, keepdim=True)
    for row in ((logits >= lowest).sum(1) > k).nonzero().squeeze(1):  # equal scores at rank k: the lower indices are taken
        found[row] = torch.sort(logits[row], descending=True, stable=True).indices[:k].sort().values
    values, order = torch.sort(logits.gather(1, found), dim=1, descending=True, stable=True)
    return found.gather(1, order), values


def _score(network: Network, reading: Reading, candidates: Tensor | None) -> Tensor:
    """Logits [B, L] of all labels, or of each document's candidates, bool [B, L]."""
    if candidates is None:
        return score_all(network.decoder, reading, network.labels)
    return score_pairs(network.decoder, reading, candidates)


@torch.no_grad()
def score_documents(
    network: Network,
    reader: HiddenReader,
    hardware: Hardware,
    scoring: Scoring,
    mixes: Mapping[str, Mix] | None = None,
) -> dict[str, TopLabels]:
    """The best labels of each document under each of several mixtures; the network is run once.

    Args:
        network: scores the documents.
        reader: gives the documents.
        hardware: the device, and the processes that share the documents.
        scoring: how; `keep` is given the logits under the first mixture, by each process those of its share.
        mixes: what becomes of the network's logits, by name (default: they stay as they are, as `WHOLE`).

    Raises:
        Interrupted: the user stopped the command.
        TrainingError: a logit is not a number.
    """
    network.eval()
    mixes = mixes or {WHOLE: keep_logits}
    sizes, stopping, wrong = lengths(reader.tokens), False, np.zeros(0, dtype=np.int64)
    collected = {
        name: TopCollector(len(sizes), min(scoring.k, network.labels), None if i else scoring.keep) for i, name in enumerate(mixes)
    }
    with scoring.reporter.progress(f"scoring {scoring.name}", len(sizes), "documents") as task:
        for rows in hardware.processes.share(sorted_batches(sizes, scoring.batch)):
            if stopping := scoring.should_stop():
                break
            reading = reader.read(rows)
            candidates = None if scoring.candidates is None else scoring.candidates.of(rows, reading.mask.device)
            with hardware.autocast():
                logits = _score(network, reading, candidates)
            for name, mix in mixes.items():  # one mixture is in memory at a time
                add_logits(collected[name], rows, mix(rows, logits), candidates)
            wrong = rows[np.isnan(next(iter(collected.values())).scores[rows, 0])]  # what is not a number comes first
            if len(wrong):
                break
            task.advance(len(rows) * hardware.processes.count)
    if hardware.processes.any(stopping):
        raise stopped("while scoring", f"scoring {scoring.name}", "all documents scored")
    if hardware.processes.any(len(wrong) > 0):
        _refuse_nan(network, scoring, wrong)
    for found in collected.values():  # each process has the rows of its share, and zeros elsewhere
        hardware.processes.add_arrays(found.labels, found.scores, found.counts)
    return {name: found.done() for name, found in collected.items()}


def _refuse_nan(network: Network, scoring: Scoring, rows: Rows) -> None:
    section = network.section
    raise TrainingError(
        f"the logits of the network ({section.decoder.name} on {section.backbone.name}) are not numbers",
        where=f"scoring {scoring.name}" + (f", document {rows[0] + 1}" if len(rows) else ", in another process"),
        expected="numbers",
        todo="train it again with lower rates or --precision fp32 (plant finetune --force)",
    )
