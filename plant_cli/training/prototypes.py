"""Label tables planted from prototypes: what the attention of each label gathers on its own training documents, against any others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

import numpy as np
import torch
from torch import Tensor

from plant_cli.api import ComponentError, Interrupted, PlantableDecoder, Reading
from plant_cli.model.hardware import Hardware
from plant_cli.model.network import Network
from plant_cli.model.reading import Rows
from plant_cli.runs.session import Session
from plant_cli.training.checkpoints import load_state, trained_state
from plant_cli.training.materials import Material

SCALE = 16.0
"""Logits from background to prototype: the label's average document starts at a probability of 1 − 3e-4, any other at 3e-4."""
BACKGROUND = 512
"""Training documents, drawn at random, over which the background of every label is averaged."""
NUMBERS = 1 << 26
"""Numbers held at a time."""
SHARPNESSES = (1.0, 0.5, 0.25, 0.125)
"""How sharp the planted attention may enter stage 2: factors on its scores, tried on validation."""


class Prototypes:
    """Plants the tables of a network's labels; reads training documents only.

    Args:
        network: whose tables are planted.
        train: the training documents.
        hardware: where it runs.
        seed: of the documents drawn for the background.
        batch: documents in memory at once.
        session: of the stage.

    Raises:
        ComponentError: the decoder cannot start its tables from prototypes.
    """

    def __init__(self, network: Network, train: Material, hardware: Hardware, *, seed: int, batch: int, session: Session) -> None:
        if not isinstance(network.decoder, PlantableDecoder):
            raise ComponentError(
                f"the decoder '{network.section.decoder.name}' cannot start its tables from prototypes",
                where="finetune, option prototypes",
                expected="a decoder with gather, sharpen and plant_tables (plant_cli.api.PlantableDecoder)",
                todo="--no-prototypes, or another --decoder",
            )
        self.network = network
        self.decoder: PlantableDecoder = network.decoder
        self.train = train
        self.hardware = hardware
        self.seed = seed
        self.batch = batch
        self.session = session
        self.reporter = session.reporter

    @torch.no_grad()
    def plant(self) -> None:
        """Start the tables from the prototypes of the attention as it is: one pass over train, for each document's own labels."""
        self.network.eval()
        background = self._background()
        self.decoder.plant_tables(self._prototypes(background), background, SCALE)

    def plant_sharpest(self, judge: Callable[[], dict[str, float]], monitor: str, factors: Sequence[float]) -> dict[str, float]:
        """Plant with the sharpness of attention that a validation figure likes best; leaves that network behind.

        Stage 1 learns an order of words; how sharply attention should follow it is another question, and how well its
        prototypes label documents that were not trained on answers it.

        Args:
            judge: validation figures of the network as it is.
            monitor: the one that decides, higher is better; the first of equals is kept.
            factors: on the scores of the attention that stage 1 left.

        Returns:
            The figures of the network that is left, and its `sharpness`.
        """
        names = frozenset(name for name, _ in self.network.named_parameters() if name.startswith("decoder."))
        start = best = trained_state(self.network, names)
        found: dict[float, dict[str, float]] = {}
        for factor in factors:
            load_state(self.network, start)
            self.decoder.sharpen(factor)
            self.plant()
            figures = judge()
            if not found or figures[monitor] > max(other[monitor] for other in found.values()):
                best, chosen = trained_state(self.network, names), factor
            found[factor] = figures
        load_state(self.network, best)
        shown = ", ".join(f"{factor:g}: {figures[monitor]:.4f}" for factor, figures in found.items())
        self.reporter.note(f"attention enters with sharpness {chosen:g} (validation {monitor} by sharpness: {shown})")
        return {**found[chosen], "sharpness": chosen}

    def _background(self) -> Tensor:
        documents = len(self.train.split)
        rows = np.sort(np.random.default_rng(self.seed).permutation(documents)[:BACKGROUND])
        total = torch.zeros(self.network.labels, self.decoder.gathered_size, device=self.hardware.device)
        with self.reporter.progress("prototypes: background", len(rows), "documents") as task:
            for batch in self._share(rows):
                reading = self.train.reader.read(batch)
                step = max(1, NUMBERS // (len(reading) * sum(reading.hidden.shape[1:])))
                blocks = torch.split(torch.arange(self.network.labels, device=total.device), step)
                total += torch.cat([self._gather(reading, labels).sum(0) for labels in blocks])
                task.advance(len(batch) * self.hardware.processes.count)
        self._finish(total)
        return total / len(rows)

    def _prototypes(self, background: Tensor) -> Tensor:
        gold = self.train.split.gold
        total = torch.zeros_like(background)
        with self.reporter.progress("prototypes: labels", gold.shape[0], "documents") as task:
            for rows in self._share(np.arange(gold.shape[0])):
                reading = self.train.reader.read(rows)
                owners, labels = gold[rows].nonzero()
                distinct, columns = np.unique(labels.astype(np.int64), return_inverse=True)
                chosen, column, owner = (torch.from_numpy(x).to(total.device) for x in (distinct, columns, owners.astype(np.int64)))
                if len(chosen):
                    total.index_add_(0, chosen[column], self._gather(reading, chosen)[owner, column])
                task.advance(len(rows) * self.hardware.processes.count)
        self._finish(total)
        count = torch.from_numpy(np.asarray(gold.sum(axis=0), dtype=np.float32)).to(total.device).unsqueeze(1)
        return torch.where(count > 0, total / count.clamp_min(1), background)

    def _share(self, rows: Rows) -> Iterator[Rows]:
        """Batches of this process's share, until the user asks to stop."""
        batches = [rows[start : start + self.batch] for start in range(0, len(rows), self.batch)]
        return takewhile(lambda _: not self.session.should_stop(), self.hardware.processes.share(batches))

    def _finish(self, total: Tensor) -> None:
        """Add up what the processes gathered, unless the user stopped one of them."""
        self.hardware.processes.add([total])
        if self.hardware.processes.any(self.session.should_stop()):
            raise Interrupted(
                "stopped while label prototypes were made",
                where=str(self.session.folder),
                expected="all prototypes, before training starts",
                todo="run the same command again with --resume",
            )

    def _gather(self, reading: Reading, labels: Tensor) -> Tensor:
        with self.hardware.autocast():
            return self.decoder.gather(reading, labels).float()
