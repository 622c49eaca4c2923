"""What a stage of training is given: values, so that nothing below the stages knows of their context."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plant_cli.api import Corpus, MachineSection
from plant_cli.model.design import ComponentLookup, Design
from plant_cli.model.word_statistics import WordStatistics
from plant_cli.runs.session import Session


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What stage 1 and stage 2 work from.

    Args:
        corpus: the documents.
        design: the network's components.
        machine: device, precision and seed.
        session: of the stage.
        component: finds losses, metrics and shortlists.
        statistics: relevance of words for labels, with counts; None if the run has none.
        planted: folder of the stage 1 that stage 2 starts from; None for a random start.
    """

    corpus: Corpus
    design: Design
    machine: MachineSection
    session: Session
    component: ComponentLookup
    statistics: WordStatistics | None = None
    planted: Path | None = None
