"""Estimates of several stages over one corpus: documents are read once a tokenizer, the machine is timed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from plant_cli.api import Choice, Corpus, Options, StageContext
from plant_cli.api.hashing import hash_json
from plant_cli.model.hardware import Hardware
from plant_cli.planning.advice import Change, advise
from plant_cli.planning.documents import Documents, read_documents
from plant_cli.planning.estimates import READING_BATCH, Estimate, estimate
from plant_cli.planning.jobs import Job
from plant_cli.planning.outline import Outline, Part, outline
from plant_cli.planning.probe import STEPS, probe
from plant_cli.planning.rates import REACHED, matrix_rate


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A stage's estimate, the parts of its network, and seconds.

    Args:
        host: bytes of host memory beside a device's own: what is copied there to be saved; 0 where the device is the host.
    """

    estimate: Estimate
    parts: tuple[Part, ...]
    seconds: float
    host: int


class Planner:
    """Plans stages.

    Args:
        context: finds components, and reports.
        corpus: the documents.
        hardware: where the stages will run.
    """

    def __init__(self, context: StageContext, corpus: Corpus, hardware: Hardware) -> None:
        self.context = context
        self.corpus = corpus
        self.hardware = hardware
        self.told: list[str] = []
        self._train = corpus.split("train")
        self._documents: dict[str, Documents] = {}
        self._cached: set[str] = set()
        self._rate = 0.0

    def plan(self, make_job: Callable[[int], Job], *, probe: bool) -> Planned:
        """Plan one stage.

        Args:
            make_job: the stage, once the most labels of a document are known.
            probe: whether to time real steps.
        """
        positives = int(np.diff(self._train.gold.indptr).max())
        job = make_job(positives)
        sketch, documents = self._look(job)
        found = estimate(job, sketch, documents, self.hardware)
        if found.reading == "cached":  # stages that read alike share the cache
            key = hash_json([job.model.backbone.to_recipe(), job.machine.seed])
            found = replace(found, once=0.0, cache=0) if key in self._cached else found
            self._cached.add(key)
        host = found.memory.saving if self.hardware.device.type != "cpu" else 0
        return Planned(estimate=found, parts=sketch.parts, seconds=self._seconds(found, documents, real=probe), host=host)

    def advise(self, planned: Planned, free: int) -> list[Change]:
        """What makes a stage fit into so many bytes; nothing if it does."""
        return advise(planned.estimate, free, self._again, self._options)

    def _again(self, job: Job) -> Estimate:
        sketch, documents = self._look(job)
        return estimate(job, sketch, documents, self.hardware)

    def _options(self, kind: str, chosen: Choice) -> Options:
        return self.context.component(kind, chosen)[1]

    def _look(self, job: Job) -> tuple[Outline, Documents]:
        """A fresh outline of the job's network, and the documents as its backbone reads them."""
        sketch = outline(self.context, job.model, job.machine, self.corpus.labels, self.hardware)
        key = hash_json(job.model.backbone.to_recipe())
        if key not in self._documents:
            most = max(READING_BATCH, job.micro_batch)
            self._documents[key] = read_documents(self.corpus, sketch.network.backbone, self._train, most)
            self._tell(self._documents[key])
        return sketch, self._documents[key]

    def _tell(self, documents: Documents) -> None:
        sampled = len(documents.tokens)
        many = f"a sample of {sampled:,} of" if sampled < documents.train else "all"
        self.told.append(
            f"tokens are those of {many} {documents.train:,} training documents: {documents.mean:,.0f} each, at most "
            f"{max(len(ids) for ids in documents.longest.ids):,}; {100 * documents.cut:.0f}% are longer than the backbone reads"
        )

    def _seconds(self, found: Estimate, documents: Documents, *, real: bool) -> float:
        if real:
            speed = probe(self.context, self.corpus, found, documents, self.hardware)
            self._once(f"hours are measured: {STEPS} steps of each stage on this machine")
            return speed.seconds(found, documents)
        if not self._rate:
            self._rate = matrix_rate(self.hardware)
        self._once(
            f"hours are reckoned, not measured: matrix products run at {self._rate / 1e9:,.0f} GFLOP/s here, and steps of training are "
            f"taken to reach {100 * REACHED:.0f}% of that; --probe measures"
        )
        return found.operations / (REACHED * self._rate)

    def _once(self, text: str) -> None:
        if text not in self.told:
            self.told.append(text)
