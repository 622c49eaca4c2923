"""Twenty real steps of a stage on this machine, for a time that is measured instead of reckoned."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import cycle, islice

import torch

from plant_cli.api import Corpus, StageContext
from plant_cli.model.design import find_design
from plant_cli.model.hardware import Hardware
from plant_cli.model.network import assemble
from plant_cli.model.reading import pad_to_multiple
from plant_cli.planning.documents import Documents
from plant_cli.planning.estimates import Estimate
from plant_cli.planning.jobs import EQUAL
from plant_cli.planning.sharing import Shares
from plant_cli.training.batches import make_batches
from plant_cli.training.unfreezing import make_groups, make_optimizer

STEPS = 20
WARM_UP = 2  # steps that are not counted


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Seconds for one position of a padded batch: of a step, and of reading alone."""

    step: float
    reading: float

    def seconds(self, found: Estimate, documents: Documents, shares: Shares) -> float:
        """Of the whole stage, as its processes share it."""
        job = found.job
        epoch = self.step * found.tokens / (1 - found.padding)
        scoring = found.scoring / max(found.steps, found.scoring)  # as a share of the longer of the two, which was measured
        steps = float(found.steps > 0)
        read = (documents.train + documents.validation) * documents.mean if found.once else 0.0
        trained = job.epochs * epoch * (steps * shares.steps + scoring * shares.reading)
        return trained + (job.planting * epoch * (steps + scoring) + self.reading * read) * shares.reading


def probe(context: StageContext, corpus: Corpus, found: Estimate, documents: Documents, hardware: Hardware) -> Speed:
    """Build the network for real and train it for `STEPS` micro-batches of the sample; nothing of it is kept."""
    job = found.job
    design = find_design(job.model, context.component)
    network = assemble(design, job.machine, corpus.labels, corpus.sizes["train"]).to(hardware.device)
    _, learning = job.thaw(network)
    network.train(bool(learning))
    optimizer = make_optimizer([g for g in make_groups(network, EQUAL) if g.role in job.roles], 0.0) if learning else None
    batches = cycle(make_batches(documents.lengths, job.micro_batch, seed=job.machine.seed, epoch=0))
    clock = Clock(hardware)
    with context.reporter.progress(f"trying {job.name}", STEPS, "steps") as task:
        for number, rows in enumerate(islice(batches, STEPS)):
            with hardware.autocast(), torch.set_grad_enabled(found.reading == "trained" and bool(learning)):
                hidden, mask = pad_to_multiple(*network.backbone.encode(documents.tokens.select(rows)))
            read = clock.lap()
            with hardware.autocast(), torch.set_grad_enabled(bool(learning)):
                loss = job.judge(network, hidden, mask)
            if learning:
                loss.backward()  # type: ignore[no-untyped-call]
            if optimizer is not None and (number + 1) % max(1, job.batch // job.micro_batch) == 0:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            clock.count(read, clock.lap(), mask.numel(), counted=number >= WARM_UP)
            task.advance(1)
    reading, step = clock.reading / clock.positions, clock.step / clock.positions
    return Speed(step=step if found.reading == "cached" else step + reading, reading=reading)


class Clock:
    """Seconds of laps on a device, summed up."""

    def __init__(self, hardware: Hardware) -> None:
        self.reading = self.step = 0.0
        self.positions = 0
        self._device = hardware.device
        self._last = time.perf_counter()

    def lap(self) -> float:
        """Seconds since the last lap, work that a GPU still has to do included."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        before, self._last = self._last, time.perf_counter()
        return self._last - before

    def count(self, reading: float, step: float, positions: int, *, counted: bool) -> None:
        """Add a step."""
        if counted:
            self.reading, self.step, self.positions = self.reading + reading, self.step + step, self.positions + positions
