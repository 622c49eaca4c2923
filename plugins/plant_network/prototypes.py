"""Label tables planted from prototypes: what the attention of each label gathers on its own
training documents, against any others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

import numpy as np
import torch
from torch import Tensor

from plant_cli.api import ComponentError, GradedDecoder, PlantableDecoder, Reading
from plant_cli.runs.session import Session
from plant_cli.scoring.top_labels import Room
from plant_network.assembly import Network
from plant_network.checkpointing import load_state, trained_state
from plant_network.compute import send
from plant_network.hardware import Hardware
from plant_network.materials import Material
from plant_network.reading import lengths, sorted_batches

SCALE = 16.0
"""Logits from background to prototype: the label's average document starts at a probability of
1 − 3e-4, any other at 3e-4.
"""
BACKGROUND = 128
"""Training documents, drawn at random, over which the background of every label is averaged."""
NUMBERS_ADDED = 1 << 26
"""Numbers gathered at a time."""
TABLE_BYTES = 1 << 29
"""Numbers of prototypes and backgrounds held at a time: fewer sharpnesses in one pass where
labels are very many.
"""
Tables = tuple[Tensor, Tensor]
SHARPNESSES = (1.0, 0.5, 0.25, 0.125, 0.0)
"""How sharp the planted attention may enter stage 2: factors on its scores, tried on
validation; 0 is uniform attention.
"""
CLEAR = 0.003
"""Share of what a figure lacks to 1 that sharper attention must take away."""


class Prototypes:
    """Plants the tables of a network's labels; reads training documents only. `seed` draws
    those of the background.
    """

    def __init__(
        self,
        network: Network,
        train: Material,
        hardware: Hardware,
        *,
        seed: int,
        batch: Room | int,
        session: Session,
    ) -> None:
        if not isinstance(network.decoder, PlantableDecoder):
            raise ComponentError(
                f"the decoder '{network.section.decoder.name}' cannot start its tables from "
                "prototypes",
                where="finetune, option prototypes",
                expected="a decoder with gather, sharpen and plant_tables "
                "(plant_cli.api.PlantableDecoder)",
                todo="--head random, or another --decoder",
            )
        self.network, self.train, self.hardware, self.batch, self.session = (
            network,
            train,
            hardware,
            batch,
            session,
        )
        self.decoder: PlantableDecoder = network.decoder
        drawn = np.random.default_rng(seed).permutation(len(train.split))[:BACKGROUND]
        self.sampled = np.zeros(
            len(train.split), dtype=bool
        )  # training documents that the background is averaged over [N]
        self.sampled[drawn] = True

    @torch.no_grad()
    def choose_sharpness(
        self, judge: Callable[[], dict[str, float]], monitor: str, factors: Sequence[float]
    ) -> dict[str, float]:
        """Plant with flat attention, unless sharper attention is clearly better on validation;
        leaves that network behind.

        Stage 1 learns an order of words; how sharply attention should follow it is another
        question, and how well its prototypes label documents that were not trained on answers it.
        Flat attention learns more in stage 2, so it needs no lead. `judge` gives validation figures
        of the network as it is, `monitor` names the one that decides; `factors` are on the scores
        of the attention that stage 1 left. Gives the figures of the network that is left, and its
        `sharpness`.
        """
        names = frozenset(
            name for name, _ in self.network.named_parameters() if name.startswith("decoder.")
        )
        start = best = trained_state(self.network, names)
        found: dict[float, dict[str, float]] = {}
        rising = sorted(factors)
        chosen = rising[0]
        for factor, tables in self._tables(rising, start):
            load_state(self.network, start)
            self.decoder.sharpen(factor)
            self.decoder.plant_tables(*tables, SCALE)
            found[factor] = judge()
            value, other = found[factor][monitor], found[chosen][monitor]
            if factor == chosen or value - other > CLEAR * (1 - other):
                best, chosen = trained_state(self.network, names), factor
        load_state(self.network, best)
        shown = ", ".join(
            f"{factor:g}: {100 * figures[monitor]:.2f}" for factor, figures in found.items()
        )
        edges = (
            {
                rising[-1]: ", the sharpest that was offered",
                rising[0]: ", the flattest that was offered",
            }
            if len(rising) > 1
            else {}
        )
        self.session.reporter.note(
            f"attention enters with sharpness {chosen:g}{edges.get(chosen, '')} (validation "
            f"{monitor} by sharpness: {shown})"
        )
        return {**found[chosen], "sharpness": chosen}

    def _tables(
        self, factors: Sequence[float], start: dict[str, Tensor]
    ) -> Iterator[tuple[float, Tables]]:
        """Prototypes and background under each sharpness: as many in one pass over train as the
        decoder can gather and memory holds.
        """
        together = 1
        if isinstance(self.decoder, GradedDecoder):
            together = max(1, TABLE_BYTES // (2 * self.network.labels * self.decoder.gathered_size))
        for first in range(0, len(factors), together):
            group = factors[first : first + together]
            load_state(self.network, start)
            if isinstance(self.decoder, GradedDecoder):
                yield from zip(group, self._gather_tables(group), strict=True)
            else:
                self.decoder.sharpen(group[0])
                yield group[0], self._gather_tables((1.0,))[0]

    def _gather_tables(self, factors: Sequence[float]) -> list[Tables]:
        """Prototypes [L, V] and background [L, V] under each sharpness, from one pass over
        train.
        """
        self.network.eval()
        gold, processes = self.train.split.gold, self.hardware.processes
        shape = (len(factors), self.network.labels, self.decoder.gathered_size)
        prototypes, background = (torch.zeros(shape, device=self.hardware.device) for _ in range(2))
        with self.session.reporter.progress("prototypes", gold.shape[0], "documents") as task:
            batches = processes.share(sorted_batches(lengths(self.train.reader.tokens), self.batch))
            for rows in takewhile(lambda _: not self.session.should_stop(), batches):
                reading = self.train.reader.read(rows)
                for number, row in enumerate(rows):
                    alone = reading.select(slice(number, number + 1))
                    every = torch.arange(
                        self.network.labels if self.sampled[row] else 0, device=prototypes.device
                    )
                    self._add(alone, every, factors, background)
                    self._add(
                        alone,
                        send(torch.from_numpy(gold[[row]].indices.astype(np.int64)), every.device),
                        factors,
                        prototypes,
                    )
                task.advance(len(rows) * processes.count)
        processes.add([prototypes, background])
        self.session.check(
            "while label prototypes were made",
            "all prototypes, before training starts",
            processes.any,
        )
        background /= max(1, int(self.sampled.sum()))
        count = (
            torch.from_numpy(np.asarray(gold.sum(axis=0), dtype=np.float32))
            .to(prototypes.device)
            .unsqueeze(1)
        )
        prototypes = torch.where(count > 0, prototypes / count.clamp_min(1), background)
        return list(zip(prototypes, background, strict=True))

    def _add(self, alone: Reading, labels: Tensor, factors: Sequence[float], total: Tensor) -> None:
        """Add what distinct labels [l], perhaps none, gather from one document to the totals
        [F, L, V].
        """
        step = max(1, NUMBERS_ADDED // (total.shape[0] * total.shape[2] + alone.mask.shape[1]))
        for some in torch.split(labels, step) if len(labels) else ():
            with self.hardware.autocast():
                if isinstance(self.decoder, GradedDecoder):
                    gathered = self.decoder.gather_sharpened(alone, some, factors)
                else:
                    gathered = self.decoder.gather(alone, some).unsqueeze(0)
            total.index_add_(1, some, gathered[:, 0].float())
