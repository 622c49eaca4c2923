"""Estimates of several stages over one corpus: documents are read once a tokenizer, the machine is timed once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from plant_cli.api import Choice, Corpus, Options, StageContext
from plant_cli.api.kinds import KINDS
from plant_cli.base.hashing import hash_json
from plant_cli.model.hardware import Hardware
from plant_cli.planning.advice import Change, advise
from plant_cli.planning.documents import Documents, read_documents
from plant_cli.planning.estimates import READING_BATCH, Estimate, estimate
from plant_cli.planning.jobs import Job
from plant_cli.planning.outline import Outline, Part, outline
from plant_cli.planning.probe import STEPS, probe
from plant_cli.planning.rates import REACHED, matrix_rate
from plant_cli.planning.sharing import Shares, Sharing
from plant_cli.planning.words import CELLS_A_SECOND, PROBED_LABELS, TrainWords, WordsEstimate, WordsJob, plan_words
from plant_cli.relevance.terms import Terms


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A stage's estimate, the parts of its network, and time.

    Args:
        seconds: of the longest of the processes that share it.
        alone: seconds of one process without others.
        host: bytes of host memory beside a device's own: what is copied there to be saved; 0 where the device is the host.
        peaks: bytes of memory of one process, alone and in either way of sharing; empty where nothing is shared.
    """

    estimate: Estimate
    parts: tuple[Part, ...]
    seconds: float
    alone: float
    host: int
    peaks: Mapping[str, int]


class Planner:
    """Plans stages.

    Args:
        context: finds components, and reports.
        corpus: the documents.
        hardware: where the stages will run.
        sharing: the processes that will share each stage.
    """

    def __init__(self, context: StageContext, corpus: Corpus, hardware: Hardware, sharing: Sharing) -> None:
        self.context = context
        self.corpus = corpus
        self.hardware = hardware
        self.sharing = sharing
        self.told: list[str] = []
        self._train = corpus.split("train")
        self._words: TrainWords | None = None
        self._documents: dict[str, Documents] = {}
        self._cached: set[str] = set()
        self._rate = 0.0

    def plan(self, make_job: Callable[[int], Job], *, probe: bool) -> Planned:
        """Plan one stage that trains or scores.

        Args:
            make_job: the stage, once the most labels of a document are known.
            probe: whether to time real steps.
        """
        positives = int(np.diff(self._train.gold.indptr).max())
        job = make_job(positives)
        sketch, documents = self._look(job)
        found = estimate(job, sketch, documents, self.hardware, self.sharing)
        peaks = {name: estimate(job, sketch, documents, self.hardware, way).memory.peak for name, way in self._ways().items()}
        if found.reading == "cached":  # stages that read alike share the cache
            key = hash_json([job.model.backbone.to_recipe(), job.machine.seed])
            found = replace(found, once=0.0, cache=0) if key in self._cached else found
            self._cached.add(key)
        host = found.memory.saving if self.hardware.device.type != "cpu" else 0
        clock = self._clock(found, documents, real=probe)
        seconds = clock(self.sharing.shares(job, self.hardware))
        return Planned(estimate=found, parts=sketch.parts, seconds=seconds, alone=clock(Shares()), host=host, peaks=peaks)

    def plan_words(self, job: WordsJob, count: Callable[[Sequence[str]], Terms], *, probe: bool) -> WordsEstimate:
        """Plan a stage `mig`.

        Args:
            job: the stage.
            count: counts the words of texts, rare ones too.
            probe: whether to score and write a sample of the labels.
        """
        if self._words is None:
            began = time.perf_counter()
            terms = count(self._train.texts)
            self._words = TrainWords(terms, self._train.gold, self._train.texts, time.perf_counter() - began)
        scored = f"a sample of {PROBED_LABELS} labels was scored" if probe else f"a thread scores {CELLS_A_SECOND:,.0f} cells a second"
        self._once(f"words of mig are counted, and that was timed; cells are reckoned from their frequencies, and {scored}")
        plan = partial(plan_words, job, self._words, self.corpus.labels, hardware=self.hardware)
        peaks = {name: plan(sharing=way, probe=False).memory.peak for name, way in self._ways().items()}
        return replace(plan(sharing=self.sharing, probe=probe), peaks=peaks)

    def advise(self, planned: Planned, free: int) -> list[Change]:
        """What makes a stage fit into so many bytes; nothing if it does."""
        return advise(planned.estimate, free, self._again, self._options)

    def _ways(self) -> dict[str, Sharing]:
        return self.sharing.ways() if self.sharing.processes > 1 else {}

    def _again(self, job: Job) -> Estimate:
        sketch, documents = self._look(job)
        return estimate(job, sketch, documents, self.hardware, self.sharing)

    def _options(self, kind: str, chosen: Choice) -> Options:
        return self.context.component(KINDS[kind].spec, chosen)[1]

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

    def _clock(self, found: Estimate, documents: Documents, *, real: bool) -> Callable[[Shares], float]:
        """Gives the stage's seconds, as processes share it."""
        if real:
            speed = probe(self.context, self.corpus, found, documents, self.hardware)
            self._once(f"hours are measured: {STEPS} steps of each stage on this machine")
            return lambda shares: speed.seconds(found, documents, shares)
        if not self._rate:
            self._rate = matrix_rate(self.hardware)
        self._once(
            f"hours are reckoned, not measured: matrix products run at {self._rate / 1e9:,.0f} GFLOP/s here, and steps of training are "
            f"taken to reach {100 * REACHED:.0f}% of that; --probe measures"
        )
        return lambda shares: found.waited(shares) / (REACHED * self._rate)

    def _once(self, text: str) -> None:
        if text not in self.told:
            self.told.append(text)
