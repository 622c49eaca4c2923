"""From a dataset to a run's corpus: check, hold out validation, index the labels of train,
record hashes and statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl

from plant_cli.api import (
    SPLITS,
    DataError,
    DataSection,
    Dataset,
    Reporter,
    SplitName,
    WordRule,
)
from plant_cli.api.errors import first_names
from plant_cli.data.blocks import stop_if_asked
from plant_cli.data.changed_labels import read_label_edits
from plant_cli.data.checks import REQUIRED, Finding, examine_documents, find_unseen_labels
from plant_cli.data.corpus_files import (
    DOCUMENTS_FILE,
    EVIDENCE_FILE,
    EXCLUDED_FILE,
    GOLD_FILE,
    LABELS_FILE,
    PARENTS_FILE,
    CorpusRecord,
    SplitRecord,
    write_tables,
)
from plant_cli.data.documents import (
    FirstReading,
    Frames,
    SplitTexts,
    first_documents,
    read_first,
    tidy,
)
from plant_cli.data.evidence import read_evidence
from plant_cli.data.files import hash_strings
from plant_cli.data.growth import EarlierReading, Growth, describe_drift, describe_leaks
from plant_cli.data.labels import (
    count_labels,
    describe_corpus,
    find_further_parents,
    read_excluded,
    tabulate_gold,
)
from plant_cli.data.store import StoredCorpus, open_corpus
from plant_cli.data.vocabularies import find_titled, read_titles, warn_untitled
from plant_cli.data.word_analysis import choose_analyser
from plant_cli.data.words import DEFAULT_RULE

TEXTS_LOOKED_AT = 100  # for letters
DOCUMENTS_SHOWN, LETTERS_SHOWN, LABELS_SHOWN = 3, 60, 6  # documents, and what is shown of each


def prepare(
    dataset: Dataset,
    section: DataSection,
    folder: Path,
    reporter: Reporter,
    earlier: EarlierReading | None = None,
    *,
    show: bool = False,
) -> StoredCorpus:
    """Make a run's corpus of a dataset; documents of an `earlier` reading keep their splits, and
    words are found as they were.

    With `show`, notes show three documents with their labels.
    """
    for remark in dataset.remarks:
        reporter.warn(remark)
    first = read_first(dataset, reporter)
    for line in _show_documents(first, dataset) if show else ():
        reporter.note(line)
    raw, records, left_out = _leave_out(first, reporter)
    growth = None
    if earlier is not None:
        growth = _compare(earlier, first, raw, left_out, reporter)
    titles = read_titles(dataset, reporter)
    titled = _choose_titled(titles, section)
    _report(find_unseen_labels(raw, titles, titled), reporter)
    source = {name: tidy(digest) for name, digest in raw.items()}
    evidence, findings = read_evidence(dataset, source)
    _report(findings, reporter)
    held_out = growth.held_out if growth is not None else []
    held_out = held_out or _hold_out(source, section, reporter)
    frames = _set_apart(source, held_out)
    labels = _index_labels(frames, titles, titled)
    warn_untitled(labels.filter(pl.col("train_count") > 0), titles, reporter)
    if section.zero_shot:
        _tell_zero_shot(section, labels, reporter)
    used = pl.concat(count_labels(frame)["label"] for frame in frames.values())
    tables = {
        LABELS_FILE: labels,
        GOLD_FILE: tabulate_gold(frames, labels["label"]),
        EVIDENCE_FILE: evidence,
        EXCLUDED_FILE: read_excluded(dataset, source, reporter),
        PARENTS_FILE: find_further_parents(titles, used, labels["label"]),
        DOCUMENTS_FILE: pl.concat(
            first.hashes[name].select(pl.lit(name).alias("split"), pl.all()) for name in records
        ),
    }
    outputs = write_tables(folder, tables, asdict(describe_corpus(frames)))
    gone = [*held_out, *left_out.get("train", [])]
    texts = _take_texts(dataset, first, frames["train"].height, gone)
    CorpusRecord(
        source=section.model_dump(mode="json"),
        files=list(dataset.files),
        splits=records,
        held_out=held_out,
        left_out=left_out,
        label_hash=hash_strings(labels["label"]),
        analyser=earlier.record.analyser
        if earlier is not None
        else choose_analyser(
            section.analyser,
            texts,
            reporter,
            section.words or _choose_rule(dataset, texts, reporter),
        ),
        outputs=outputs,
    ).write(folder)
    if growth is not None and (drift := describe_drift(first.documents, growth)):
        reporter.note(drift)
    return open_corpus(folder, lambda: dataset, first.documents)


def _compare(
    earlier: EarlierReading,
    first: FirstReading,
    raw: dict[SplitName, pl.DataFrame],
    left_out: dict[SplitName, list[str]],
    reporter: Reporter,
) -> Growth:
    """How the corpus has grown; new documents of train that are in other splits are
    taken out of `raw`, and their ids added to `left_out`.
    """
    kept = {
        name: first.hashes[name].filter(~pl.col("doc_id").is_in(left_out.get(name, [])))
        for name in raw
    }
    growth = earlier.compare(kept)
    reporter.note(f"the corpus of the run has grown: {growth.describe()}")
    if growth.leaks:
        reporter.warn(describe_leaks(growth.leaks))
        left_out["train"] = [*left_out.get("train", []), *growth.leaks]
        raw["train"] = raw["train"].filter(~pl.col("doc_id").is_in(growth.leaks))
    return growth


def _choose_titled(titles: pl.DataFrame, section: DataSection) -> pl.DataFrame:
    """Labels that are in the index for their title: all that have one where documents need not
    show them, else those that were added by hand.
    """
    titled = find_titled(titles)
    if section.zero_shot:
        return titled
    edits = section.label_edits
    added = [] if edits is None else [*read_label_edits(Path(edits)).added]
    return titled.filter(pl.col("label").is_in(added))


def _take_texts(
    dataset: Dataset, first: FirstReading, count: int, gone: Sequence[str]
) -> Sequence[str]:
    """So many texts of train, those of documents that are gone left out; not copied."""
    if not first.documents:
        return SplitTexts(dataset, "train", count, frozenset(gone))
    train = first.documents["train"].filter(~pl.col("doc_id").is_in(gone))
    return cast(Sequence[str], train["text"])


def _leave_out(
    first: FirstReading, reporter: Reporter
) -> tuple[dict[SplitName, pl.DataFrame], dict[SplitName, SplitRecord], dict[SplitName, list[str]]]:
    """The splits that have documents, their records, and the ids of documents that are no
    documents; a message says what is wrong with them.
    """
    raw, records = dict(first.digests), dict(first.records)
    for name in [name for name, frame in raw.items() if name != "train" and not frame.height]:
        reporter.warn(f"the split '{name}' has no documents and is ignored")
        del raw[name], records[name]
    _report(examine_documents(raw, REQUIRED), reporter)
    left_out = {
        name: ids
        for name, frame in raw.items()
        if (ids := frame.filter(pl.col("same").is_null())["doc_id"].to_list())
    }
    raw = {name: frame.filter(pl.col("same").is_not_null()) for name, frame in raw.items()}
    return raw, records, left_out


def _set_apart(
    source: dict[SplitName, pl.DataFrame], held_out: Sequence[str]
) -> dict[SplitName, pl.DataFrame]:
    """The splits, where documents of train are held out as validation."""
    if not held_out:
        return source
    chosen = pl.col("doc_id").is_in(held_out)
    frames = {
        **source,
        "train": source["train"].filter(~chosen),
        "validation": source["train"].filter(chosen),
    }
    return {name: frames[name] for name in SPLITS if name in frames}


def _tell_zero_shot(section: DataSection, labels: pl.DataFrame, reporter: Reporter) -> None:
    """How many labels have a title but no document; `DataError` where the test needs some."""
    further = int((labels["train_count"] == 0).sum())
    if further:
        reporter.note(
            f"zero-shot: {further:,} labels have a title but no training document; the scorer "
            "titles can suggest them"
        )
        return
    what = "zero-shot: the table of titles has no label beside those of train"
    if section.keep_labels and section.label_scope == "training":
        raise DataError(
            what,
            where=str(section.path),
            expected="titles of labels that train does not show",
            todo="name a table: --vocabulary",
        )
    reporter.warn(f"{what} (--vocabulary names a larger one)")


def _choose_rule(dataset: Dataset, texts: Sequence[str], reporter: Reporter) -> WordRule:
    """What is a word where nobody says it: names in lists of features, and in texts of numbers
    alone.
    """
    if dataset.names or any(
        character.isalpha() for text in islice(texts, TEXTS_LOOKED_AT) for character in text
    ):
        return "names" if dataset.names else DEFAULT_RULE
    reporter.note("the texts have no letters: all that stands between blanks is a word (--words)")
    return "names"


def _show_documents(first: FirstReading, dataset: Dataset) -> Iterable[str]:
    """The first documents with labels, so that a wrong column is seen; their texts are cut."""
    if "train" not in dataset.splits:
        return
    train = first.documents.get("train", first_documents(dataset, "train"))
    shown = train.filter(pl.col("labels").list.len() > 0)
    for doc_id, text, labels in (
        (shown if shown.height else train).head(DOCUMENTS_SHOWN).iter_rows()
    ):
        said = " ".join(text.split())
        yield (
            f"document {doc_id}: '{said[:LETTERS_SHOWN]}{'…' if len(said) > LETTERS_SHOWN else ''}'"
        )
        yield f"  labels: {first_names(labels, LABELS_SHOWN, '; ') or 'none'}"


def _report(findings: Iterable[Finding], reporter: Reporter) -> None:
    stop_if_asked()
    for finding in findings:
        if finding.level == "fatal":
            raise finding.to_error()
        reporter.warn(str(finding))


def _hold_out(
    source: Mapping[SplitName, pl.DataFrame], section: DataSection, reporter: Reporter
) -> list[str]:
    """Ids of the share of train that becomes validation where there is none, at most a fifth;
    documents of equal text stay together.
    """
    if "validation" in source:
        return []
    train = source["train"]
    count = min(
        max(round(section.validation_share * train.height), section.validation_minimum),
        train.height // 5,
    )
    units = train.with_row_index("row").group_by("same", maintain_order=True).agg("row")["row"]
    rows: list[int] = []
    drawn = np.random.default_rng(section.subset_seed).choice(
        len(units), size=min(count, len(units)), replace=False
    )
    for unit in units.gather(drawn).to_list():
        if len(rows) + len(unit) <= count:
            rows += unit
    if not rows:
        different = f" with {len(units):,} different texts" if len(units) < train.height else ""
        reporter.warn(
            f"there is no validation split, and {train.height} training documents{different} are "
            "too few to hold any out"
        )
        return []
    reporter.note(
        f"no validation split: {len(rows):,} of {train.height:,} training documents are held out"
    )
    return train["doc_id"].gather(sorted(rows)).to_list()


def _index_labels(frames: Frames, titles: pl.DataFrame, titled: pl.DataFrame) -> pl.DataFrame:
    """Labels of train, and `titled` ones, sorted: the columns of `titles`, and the documents of
    each split that have them.
    """
    indexed = (
        pl.concat([count_labels(frames["train"]).select("label"), titled.select("label")])
        .unique()
        .sort("label")
    )
    table = indexed.join(titles.drop("deprecated"), on="label", how="left", maintain_order="left")
    for name in SPLITS:
        counts = count_labels(frames.get(name, frames["train"].clear())).select(
            "label", pl.col("count").alias(f"{name}_count")
        )
        table = table.join(counts, on="label", how="left", maintain_order="left")
    return table.with_columns(
        pl.col(f"{name}_count").fill_null(0).cast(pl.Int64) for name in SPLITS
    )
