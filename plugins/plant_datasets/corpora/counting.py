"""Whether a corpus is the one that its card describes: its counts beside those that are expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from plant_cli.api import Dataset, DatasetCard
from plant_cli.kit import find_used_labels


def with_card(dataset: Dataset, card: DatasetCard) -> Dataset:
    """The dataset with licence and citation, and a remark on which version of the corpus it is, or that it is none that is known."""
    remarks = [*dataset.remarks, *describe_counts(count(dataset), card)]
    return replace(dataset, licence=card.licence, citation=card.citation, remarks=remarks)


def count(dataset: Dataset) -> dict[str, int]:
    """Documents of each split, `labels` that documents have, and `label names`, of a table of labels."""
    found: dict[str, int] = {name: int(frame.select(pl.len()).collect().item()) for name, frame in dataset.splits.items()}
    found["labels"] = find_used_labels(dataset.splits.values(), ", ".join(dataset.files) or "the dataset").len()
    if dataset.labels is not None:
        found["label names"] = int(dataset.labels.select(pl.len()).collect().item())
    return found


def fits(found: Mapping[str, int], expected: Mapping[str, int]) -> bool:
    """Whether all counts of a variant agree; labels may be those that are used, or those that have a name."""
    labels = (found.get("labels"), found.get("label names"))
    splits = {name for name in found if name not in ("labels", "label names")}
    wanted = {name: number for name, number in expected.items() if name not in ("labels", "documents")}
    agree = all(found.get(name) == number for name, number in wanted.items()) and (not wanted or splits == set(wanted))
    agree = agree and expected.get("documents") in (None, sum(found[name] for name in splits))
    return agree and ("labels" not in expected or expected["labels"] in labels)


def describe_counts(found: Mapping[str, int], card: DatasetCard) -> list[str]:
    """What to say of the counts: the variant, where there are several; what differs, where none fits."""
    name = next((name for name, expected in card.variants.items() if fits(found, expected)), None)
    if name is not None:
        return [f"{card.title.split(':')[0]}, {name}: {_show(found)}"] if len(card.variants) > 1 else []
    if not card.variants:
        return []
    known = "; ".join(f"{name}: {_show(expected)}" for name, expected in card.variants.items())
    return [f"the counts are of no known version of {card.title.split(':')[0]}: {_show(found)}; expected {known}"]


def _show(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in counts.items())
