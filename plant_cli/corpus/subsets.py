"""Parts of a corpus, as options of the section `data` ask for: split again, without duplicates and leaks, a share of train, some labels.

They are applied in that order. Labels are chosen by their training documents alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import polars as pl

from plant_cli.api.corpus import SPLITS, Dataset, SplitName
from plant_cli.api.errors import DataError, UsageError, near_names
from plant_cli.api.sections import DataSection
from plant_cli.corpus.digests import TEXT_KEY
from plant_cli.corpus.frames import explode_labels, read_frame, tidy
from plant_cli.corpus.labels import count_labels
from plant_cli.corpus.splitting import split_documents
from plant_cli.kit.labels import trim
from plant_cli.kit.tables import collect

Parts = dict[SplitName, pl.DataFrame]
GROUP = "group"
_RANKED = re.compile(r"(top|rare):(\d+)")
_RANGE = re.compile(r"(\d+)-(\d*)")


def take_subset(dataset: Dataset, data: DataSection) -> tuple[Dataset, list[str]]:
    """The part of a dataset that the section asks for, and what was left out; the dataset itself if it asks for nothing.

    Raises:
        UsageError: an option is not understood.
        DataError: there is no such column, or nothing is left.
    """
    steps = _choose_steps(data)
    if not steps:
        return dataset, []
    parts = {name: _read(dataset, name, data) for name in SPLITS if name in dataset.splits}
    remarks = []
    for step in steps:
        parts, said = step(parts, data)
        remarks += said
    if not parts.get("train", pl.DataFrame()).height:
        raise DataError(
            "no training document is left",
            where=str(data.path),
            expected="a part of the corpus that is not empty",
            todo="ask for less: see --keep-labels, --train-share, --duplicates and --leaks",
        )
    remarks += [f"no document of {name} is left" for name, part in parts.items() if not part.height]
    kept = {name: part.drop(GROUP, strict=False) for name, part in parts.items() if part.height}
    return replace(dataset, splits={name: part.lazy() for name, part in kept.items()}, evidence=_restrict(dataset.evidence, kept)), remarks


def select_labels(counts: pl.DataFrame, wanted: str) -> pl.Series:
    """The labels that an option such as `top:50`, `rare:50`, `1-5` or `10-` names.

    Args:
        counts: `label` and `count`, the training documents of each, at least 1.
        wanted: the option; ties go by the label's id.
    """
    ranked, between = _RANKED.fullmatch(wanted), _RANGE.fullmatch(wanted)
    if ranked:
        order = counts.sort("count", "label", descending=[ranked[1] == "top", False])
        return order.head(int(ranked[2]))["label"]
    if between:
        low, high = int(between[1]), int(between[2]) if between[2] else None
        return counts.filter((pl.col("count") >= low) & (pl.lit(high is None) | (pl.col("count") <= (high or 0))))["label"]
    raise UsageError(
        f"'{wanted}' names no labels",
        where="--keep-labels",
        expected="top:50, rare:50, or a range of training documents such as 1-5 or 10-",
        todo="correct it",
    )


def split_again(dataset: Dataset, data: DataSection, shares: Mapping[SplitName, float], seed: int) -> Parts:
    """All documents of a dataset in other splits.

    Args:
        dataset: its splits are pooled.
        data: the sampling and the column of groups.
        shares: of the splits other than train.
        seed: equal seeds give equal splits.
    """
    pooled = pl.concat(_read(dataset, name, data) for name in SPLITS if name in dataset.splits)
    parts = split_documents(pooled, shares, seed=seed, method=data.sampling, groups=_groups(pooled))
    return {name: part.drop(GROUP, strict=False) for name, part in parts.items()}


def _choose_steps(data: DataSection) -> list[Callable[[Parts, DataSection], tuple[Parts, list[str]]]]:
    steps = {
        _resplit: data.resplit,
        _hold_out_groups: data.group_column is not None and not data.resplit,
        _drop_duplicates: data.duplicates == "drop",
        _drop_leaks: data.leaks == "drop",
        _thin_train: data.train_share < 1,
        _keep_labels: data.keep_labels is not None,
    }
    return [step for step, wanted in steps.items() if wanted]


def _read(dataset: Dataset, name: SplitName, data: DataSection) -> pl.DataFrame:
    frame = tidy(read_frame(dataset, name))
    if data.group_column is None:
        return frame
    columns = dataset.splits[name].collect_schema().names()
    if data.group_column not in columns:
        raise DataError(
            f"there is no column '{data.group_column}'",
            where=f"split {name} of {', '.join(dataset.files) or 'the dataset'}",
            expected=near_names(data.group_column, columns),
            todo="name the column of the groups (patients, authors) with --group-column",
        )
    groups = collect(dataset.splits[name].select(pl.col(data.group_column).cast(pl.String)), name).to_series()
    return frame.with_columns(groups.alias(GROUP))


def _resplit(parts: Parts, data: DataSection) -> tuple[Parts, list[str]]:
    pooled = pl.concat(parts.values())
    if data.validation_share + data.test_share >= 1:
        raise UsageError(
            f"test {data.test_share} and validation {data.validation_share} leave no document to train on",
            where="--test-share, --validation-share",
            expected="shares whose sum is below 1",
            todo="lower one of them",
        )
    shares: dict[SplitName, float] = {"test": data.test_share, "validation": data.validation_share}
    found = split_documents(pooled, shares, seed=data.subset_seed, method=data.sampling, groups=_groups(pooled))
    return found, [f"split again ({data.sampling}): {_sizes(found)}"]


def _hold_out_groups(parts: Parts, data: DataSection) -> tuple[Parts, list[str]]:
    """Refuse nothing, but say how many groups occur in several splits; make a validation split that keeps groups together."""
    places = pl.concat(part.select(GROUP, split=pl.lit(name)) for name, part in parts.items()).drop_nulls().unique()
    shared = places.filter(pl.col(GROUP).is_duplicated())[GROUP].n_unique()
    remarks = [f"{shared:,} groups of {data.group_column} occur in more than one split"] if shared else []
    if "validation" in parts:
        return parts, remarks
    train = parts["train"]
    share = min(max(data.validation_share, data.validation_minimum / max(1, train.height)), 0.2)
    found = split_documents(train, {"validation": share}, seed=data.subset_seed, method=data.sampling, groups=_groups(train))
    if "train" not in found or not found["train"].height:  # a single group
        return parts, [*remarks, "no validation split: no group can be held out without all of train"]
    held_out = found["validation"].height if "validation" in found else 0
    remarks.append(f"no validation split: {held_out:,} training documents are held out, whole groups")
    return {**found, **{name: part for name, part in parts.items() if name != "train"}}, remarks


def _drop_duplicates(parts: Parts, data: DataSection) -> tuple[Parts, list[str]]:
    kept, remarks = {}, []
    for name, part in parts.items():
        keyed = part.with_columns(key=TEXT_KEY)
        kept[name] = keyed.unique("key", keep="first", maintain_order=True).drop("key")
        dropped = part.height - kept[name].height
        if dropped:
            remarks.append(f"{name}: {dropped:,} documents repeat a text but for case, blanks and punctuation, and are left out")
    return kept, remarks


def _drop_leaks(parts: Parts, data: DataSection) -> tuple[Parts, list[str]]:
    others = [part.select(key=TEXT_KEY) for name, part in parts.items() if name != "train"]
    if not others or "train" not in parts:
        return parts, []
    train = (
        parts["train"].with_columns(key=TEXT_KEY).join(pl.concat(others).unique(), on="key", how="anti", maintain_order="left").drop("key")
    )
    dropped = parts["train"].height - train.height
    remarks = [f"{dropped:,} training documents have a text of another split and are left out of train"] if dropped else []
    return {**parts, "train": train}, remarks


def _thin_train(parts: Parts, data: DataSection) -> tuple[Parts, list[str]]:
    train = parts["train"]
    # the part that is kept is the one that is split off, so that shares are met from the kept side
    halves = split_documents(train, {"test": data.train_share}, seed=data.subset_seed, method=data.sampling, groups=_groups(train))
    kept = halves.get("test", train.clear())
    return {**parts, "train": kept}, [f"{kept.height:,} of {train.height:,} training documents are used ({data.sampling} sample)"]


def _keep_labels(parts: Parts, data: DataSection) -> tuple[Parts, list[str]]:
    counts = count_labels(parts["train"])
    wanted = select_labels(counts, str(data.keep_labels))
    has_one = pl.col("labels").list.eval(pl.element().is_in(wanted.implode())).list.any()
    restricted = {}
    for name, part in parts.items():
        labels = pl.col("labels").list.eval(pl.element().filter(pl.element().is_in(wanted.implode())))
        chosen = part if data.keep_unlabelled else part.filter(has_one)
        restricted[name] = chosen.with_columns(labels) if data.label_scope == "targets" else chosen
    before = {name: part.height for name, part in parts.items()}
    lost = ", ".join(f"{name} {before[name] - part.height:,}" for name, part in restricted.items())
    return restricted, [f"{wanted.len():,} of {counts.height:,} labels of train are kept ({data.keep_labels}); documents left out: {lost}"]


def _restrict(evidence: pl.LazyFrame | None, parts: Parts) -> pl.LazyFrame | None:
    """Spans of the documents and labels that are left."""
    if evidence is None:
        return None
    pairs = pl.concat(explode_labels(part).select("doc_id", "label") for part in parts.values())
    return evidence.with_columns(trim(pl.col("label"))).join(pairs.lazy(), on=["doc_id", "label"], how="semi", maintain_order="left")


def _groups(documents: pl.DataFrame) -> pl.Series | None:
    return None if GROUP not in documents.columns else documents[GROUP]


def _sizes(parts: Parts) -> str:
    return ", ".join(f"{name} {part.height:,}" for name, part in parts.items())
