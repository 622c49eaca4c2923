"""What every stage of training works from; imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from plant_cli.api import Corpus, Documents, MachineSection, SplitName
from plant_cli.network.design import ComponentLookup
from plant_cli.runs.session import Session
from plant_cli.runs.word_store import open_words


@dataclass(frozen=True, kw_only=True)
class StageInputs:
    """What a stage works from, with a network or without one: `Inputs` adds the network."""

    corpus: Corpus
    machine: MachineSection  # the seed; for a network, device and precision, too
    session: Session
    component: ComponentLookup  # finds scorers, losses, metrics and shortlists

    def words(self, name: SplitName) -> Documents:
        """The words of a split."""
        return open_words(self.session, self.corpus, name, check=self._check).documents

    def _check(self) -> None:
        self.session.check("while words were counted", "all words counted")
