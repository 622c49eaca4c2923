"""A corpus that was read again: which documents are new, changed or gone, and which split each
of the others keeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from plant_cli.api import DataError, SplitName
from plant_cli.api.errors import first_names
from plant_cli.api.functions import Named
from plant_cli.data.corpus_files import DOCUMENTS_FILE, NEW_RUN, CorpusRecord, read_corpus_table

_COMPARE = Named(
    "plant_cli.data.drift:compare_corpora"
)  # with scipy.stats, which takes long to import
FEWEST_KEPT = 0.5  # share of the earlier documents that must be found again, by text or by id
NEW_LABELS_TOLD = 0.05  # share of new labels among those of new documents that is told by itself
_NAMED = 5  # documents or labels in a message


@dataclass(frozen=True, kw_only=True)
class Growth:
    """How the documents of a corpus differ from those of an earlier reading. A text is known by
    its hash, so ids may change.
    """

    added: pl.DataFrame  # `split`, `doc_id` of the new documents, without leaks
    changed: int  # documents of known ids with other texts
    removed: int  # documents that are gone
    relabelled: int  # documents of known texts with other labels
    held_out: list[str]  # ids of the training documents that stay validation
    leaks: list[str]  # ids of new training documents whose text is in validation or test

    def describe(self) -> str:
        """Counts of documents."""
        counts = dict(self.added.group_by("split", maintain_order=True).len().iter_rows())
        new = ", ".join(f"{number:,} in {split}" for split, number in counts.items())
        others = {
            "with another text": self.changed,
            "with other labels": self.relabelled,
            "gone": self.removed,
        }
        parts = [f"{self.added.height:,} new documents" + (f" ({new})" if new else "")]
        parts += [f"{number:,} {what}" for what, number in others.items() if number]
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class EarlierReading:
    """What a run keeps of its corpus."""

    record: CorpusRecord
    documents: (
        pl.DataFrame
    )  # of the source, without those left out: `split`, `doc_id`, and hashes of `text` and `labels`

    @classmethod
    def of(cls, folder: Path) -> EarlierReading:
        """From the folder of a prepared corpus; `DataError` for one of an earlier version,
        which does not know its texts.
        """
        found = read_corpus_table(folder, DOCUMENTS_FILE)
        if found is None:
            raise DataError(
                "the run does not know the texts of its documents: it was made by an earlier "
                "version",
                where=str(folder / DOCUMENTS_FILE),
                expected="a hash of each text, which is written when a corpus is prepared",
                todo=NEW_RUN,
            )
        record = CorpusRecord.read(folder)
        for split, ids in record.left_out.items():
            found = found.filter((pl.col("split") != split) | ~pl.col("doc_id").is_in(ids))
        return cls(record=record, documents=found)

    def compare(self, hashes: Mapping[SplitName, pl.DataFrame]) -> Growth:
        """The growth from this reading to one with these documents (`doc_id`, hashes of `text` and
        `labels`) of each split.

        `DataError` if most of the documents are not there any more.
        """
        now = pl.concat(
            frame.select(pl.lit(name).alias("split"), "doc_id", "text", "labels")
            for name, frame in hashes.items()
        )
        old = self.documents
        of_new = now.join(old, on="text", how="anti", maintain_order="left")
        gone = old.join(now, on="text", how="anti")
        changed = gone.join(of_new, on="doc_id", how="semi")
        if gone.height - changed.height > (1 - FEWEST_KEPT) * old.height:
            raise DataError(
                f"only {old.height - gone.height + changed.height:,} of the {old.height:,} "
                "documents of the run are in this corpus",
                where=f"{len(now):,} documents, of which {of_new.height:,} have another text, and "
                "ids such as " + ", ".join(of_new["doc_id"].head(_NAMED)),
                expected="the documents of the run, most of them with the text or the id that "
                "they had, and new ones",
                todo=f"name the corpus that has grown; for another corpus {NEW_RUN}",
            )
        held_out, leaks = self._split(now)
        added = of_new.join(changed, on="doc_id", how="anti", maintain_order="left").select(
            "split", "doc_id"
        )
        return Growth(
            added=added.filter(~pl.col("doc_id").is_in(leaks) | (pl.col("split") != "train")),
            changed=changed.height,
            removed=gone.height - changed.height,
            relabelled=now.join(old, on="text", how="semi")
            .join(old, on=("text", "labels"), how="anti")
            .height,
            held_out=held_out,
            leaks=leaks,
        )

    def _split(self, now: pl.DataFrame) -> tuple[list[str], list[str]]:
        """Ids of the training documents that stay validation, and of new ones that repeat a
        text of validation or test.
        """
        train, others = (
            now.filter(pl.col("split") == "train"),
            now.filter(pl.col("split") != "train"),
        )
        was_held = pl.col("doc_id").is_in(self.record.held_out)
        old_train = self.documents.filter(pl.col("split") == "train")
        held = old_train.filter(was_held)
        same = train.filter(pl.col("text").is_in(held["text"].to_list()))
        known = same.filter(
            was_held
        )  # where no document of a text has its old id, all of them stay
        kept = pl.concat([known, same.join(known, on="text", how="anti")])
        rest = train.join(kept, on="doc_id", how="anti", maintain_order="left")
        judged = [*kept["text"], *others["text"]]
        learned = old_train.filter(~was_held)[
            "text"
        ].to_list()  # a text that was in train before stays there
        leaks = rest.filter(pl.col("text").is_in(judged) & ~pl.col("text").is_in(learned))
        return train.filter(pl.col("doc_id").is_in(kept["doc_id"].to_list()))[
            "doc_id"
        ].to_list(), leaks["doc_id"].to_list()


def describe_leaks(ids: Sequence[str]) -> str:
    """New training documents that are left out."""
    return (
        f"{len(ids):,} new training documents are left out: validation or test has their text "
        f"({first_names(ids, _NAMED)})"
    )


def describe_drift(documents: Mapping[SplitName, pl.DataFrame], growth: Growth) -> str | None:
    """How new documents differ from the others, by tested frequencies of labels and words; None
    where they do not.
    """
    new_ones = {
        name: growth.added.filter(split=name).select("doc_id", new=True) for name in documents
    }
    marked = [
        frame.join(new_ones[name], on="doc_id", how="left") for name, frame in documents.items()
    ]
    pooled = pl.concat(marked) if marked else pl.DataFrame(schema={"new": pl.Boolean})
    new = pooled.filter(pl.col("new").is_not_null())
    if new.is_empty() or new.height == pooled.height:
        return None
    change = _COMPARE(pooled.filter(pl.col("new").is_null()), new)
    labels, words = (table.filter("changed") for table in (change.labels, change.words))
    if labels.is_empty() and words.is_empty() and change.unseen_share < NEW_LABELS_TOLD:
        return None
    named = ", ".join(labels.sort(pl.col("change").abs(), descending=True)["label"].head(_NAMED))
    parts = [f"{labels.height:,} labels are more or less frequent ({named})"] if named else []
    parts += [f"{words.height:,} words are more or less frequent"] if words.height else []
    parts += (
        [f"{change.unseen_share:.0%} of their assignments are of new labels"]
        if change.unseen_share >= NEW_LABELS_TOLD
        else []
    )
    return (
        f"drift: the new documents differ from the earlier ones: {'; '.join(parts)} (`plant "
        "data drift` shows more)"
    )
