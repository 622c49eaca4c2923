"""Estimates of several stages over one corpus: documents are read once a tokenizer, the machine is timed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from plant_cli.api import Choice, Corpus, Options, QueryDecoder, ScorerSpec
from plant_cli.base.hashing import hash_json
from plant_cli.base.memory import available_memory, resident_memory
from plant_cli.measuring.rates import matrix_rate
from plant_cli.model.design import ComponentLookup
from plant_cli.model.hardware import Hardware
from plant_cli.planning.advice import advise
from plant_cli.planning.documents import Documents, read_documents
from plant_cli.planning.estimates import Estimate, Machine, estimate
from plant_cli.planning.jobs import Job
from plant_cli.planning.outline import outline
from plant_cli.planning.sharing import Sharing


class Planner:
    """Plans stages.

    Args:
        find: looks up components.
        corpus: the documents.
        hardware: where the stages will run.
        sharing: the processes that will share each stage.
        free: bytes of memory that are free for each process.
        timed: whether to measure time.
    """

    def __init__(self, find: ComponentLookup, corpus: Corpus, hardware: Hardware, sharing: Sharing, *, free: int, timed: bool) -> None:
        self.notes: list[str] = []
        self._find, self._corpus, self._sharing, self._free, self._timed = find, corpus, sharing, free, timed
        self._train = corpus.split("train")
        rate = matrix_rate(hardware.device, hardware.dtype)
        self._machine = Machine(hardware=hardware, rate=rate, process=resident_memory())
        self._documents: dict[str, Documents] = {}
        self._filled: set[str] = set()

    def plan(self, job: Job) -> Estimate:
        """Plan one stage that trains or scores, with what makes it fit."""
        found = self._estimate(job, timed=self._timed)
        if found.disk["cache"]:  # stages that read alike share the cache
            self._filled.add(_reader(job))
        return replace(found, changes=advise(job, found, self._free, self._estimate, self._find))

    def scorers(self, chosen: Sequence[Choice]) -> list[tuple[ScorerSpec, Options]]:
        """The scorers that a stage names, with their options."""
        return [self._find(ScorerSpec, one) for one in chosen]

    def _estimate(self, job: Job, *, timed: bool = False) -> Estimate:
        sketch = outline(self._find, job, self._corpus.labels)
        key = hash_json(job.model.backbone.to_recipe())
        if key not in self._documents:
            self._documents[key] = read_documents(self._train, sketch.network.backbone)
            self.notes.append(self._documents[key].describe())
        if job.drawn_epochs is not None and not isinstance(sketch.network.decoder, QueryDecoder):
            job = replace(job, epochs=job.drawn_epochs)
        filled = _reader(job) in self._filled
        return estimate(job, sketch, self._documents[key], self._machine, self._sharing, filled=filled, timed=timed)


def _reader(job: Job) -> str:
    return hash_json([job.model.backbone.to_recipe(), job.machine.seed, job.split])


def free_memory(hardware: Hardware, sharing: Sharing) -> int:
    """Bytes that are free for each process; on a processor what this process gives back when it ends is free, too."""
    if hardware.device.type == "cuda":
        return int(torch.cuda.mem_get_info(hardware.device)[0])
    return (available_memory() + resident_memory()) // sharing.neighbours
