"""The shortlist of stage 2: what it proposes for a split, and how many of the network's best labels that holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from plant_cli.api import Choice, SplitName, StageContext, UsageError
from plant_cli.model.candidates import Candidates, measure_recall, propose
from plant_cli.model.hardware import Hardware
from plant_cli.model.network import Network
from plant_cli.training.materials import Material


def propose_for(
    context: StageContext, chosen: Choice | None, materials: Mapping[SplitName, Material], hard_negatives: int
) -> dict[str, Candidates]:
    """The labels of each document among which hard negatives are looked for, by split; nothing if among all.

    Raises:
        UsageError: the loss looks at all labels anyway.
    """
    if chosen is None:
        return {}
    if not hard_negatives:
        raise UsageError(
            "a shortlist is of no use to a loss that looks at all labels",
            where="finetune, option shortlist",
            expected="a loss with hard negatives",
            todo="leave --shortlist out, or --set finetune.loss.hard_negatives=1000",
        )
    return propose(context, context.corpus(), chosen, {name: material.split.texts for name, material in materials.items()})


def recall_of(
    candidates: Candidates | None, network: Network, material: Material, hardware: Hardware, hard_negatives: int, batch: int
) -> Callable[[], dict[str, float]]:
    """Measures the share of the `hard_negatives` labels scored highest that the shortlist proposes; nothing where there is none."""
    if candidates is None:
        return dict
    return lambda: {
        f"shortlist recall@{hard_negatives}": measure_recall(network, material.reader, hardware, candidates, hard_negatives, batch=batch)
    }
