"""New texts with the labels that a model suggests for them, some texts at a time; what is done
is kept in a file until all is.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from zlib import crc32

import numpy as np

from plant_cli.api import LabelIndex, Reporter, ResourceError, UsageError
from plant_cli.data.files import naming_full_disk, require_place
from plant_cli.scoring.decisions import ASSIGN, REJECT, Thresholds
from plant_cli.scoring.new_texts import Block, NewTexts
from plant_cli.scoring.opened_models import OpenModel, Trust
from plant_cli.scoring.top_labels import Scoring, TopLabels

HEADING = 100  # characters of a text's first line
WORDS_OF_A_REASON = 5  # in a reason in few words


@dataclass(frozen=True, kw_only=True)
class SuggestedDocument:
    """A text and the labels that are suggested for it, best first; the lists have one length."""

    doc_id: str
    labels: list[str] = field(default_factory=list)  # their ids
    titles: list[str | None] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)  # calibrated probabilities
    thresholds: list[float | None] = field(
        default_factory=list
    )  # from which score each is assigned; None: never
    bands: list[str] = field(default_factory=list)  # assign, review or reject
    why: list[str] = field(default_factory=list)  # empty if it was not asked for
    evidence: list[str] = field(default_factory=list)  # why, in few words
    heading: str = ""  # the first line of the text
    text: str = ""  # as much of it as was asked for
    checksum: int = 0  # of the whole text

    @classmethod
    def load(cls, line: str) -> Self:
        """One from its JSON."""
        return cls(**json.loads(line))

    def take(self, places: Iterable[int]) -> Self:
        """The same with the suggestions at these places."""
        chosen, columns = (
            list(places),
            {
                name: value
                for name, value in vars(self).items()
                if value and isinstance(value, list)
            },
        )
        taken: dict[str, Any] = {
            name: [values[place] for place in chosen] for name, values in columns.items()
        }
        return replace(self, **taken)


def find_heading(text: str) -> str:
    """The beginning of a text's first line that is not empty."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:HEADING]


def list_labels(
    ids: Sequence[str], top: TopLabels, labels: LabelIndex, thresholds: Thresholds
) -> Iterator[SuggestedDocument]:
    """Documents with their best labels, without their texts."""
    cuts, bands = thresholds.select(top.labels).tolist(), thresholds.decide(top.labels, top.scores)
    for row, doc_id in enumerate(ids):
        found = top.labels[row].tolist()
        yield SuggestedDocument(
            doc_id=doc_id,
            labels=[labels.ids[label] for label in found],
            titles=[labels.titles[label] for label in found],
            scores=top.scores[row].tolist(),
            thresholds=[cut if cut < float("inf") else None for cut in cuts[row]],
            bands=bands[row],
        )


def round_score(score: float) -> float:
    """Three significant digits, so that small scores differ; only a score of exactly 1 is shown
    as 1.
    """
    rounded = float(f"{score:.3g}")
    return rounded if rounded < 1 or score >= 1 else round(1 - float(f"{1 - score:.1g}"), 12)


@dataclass(frozen=True, kw_only=True)
class Suggesting:
    """How labels are suggested."""

    opened: OpenModel
    scoring: Scoring
    least: float = 0.0  # score that a suggestion has at least
    assigned: bool = False  # whether only labels that reach their threshold are suggested
    kept: int | None = 0  # characters of a text that are kept with it; None: all
    others: int | None = (
        None  # labels of the band reject that are suggested, at most; None: any number
    )

    def suggest(
        self, ids: list[str], texts: list[str]
    ) -> tuple[list[SuggestedDocument], TopLabels]:
        """The documents, and their best labels as the model gives them."""
        opened, documents = self.opened, list[SuggestedDocument]()
        top = opened.model.score(texts, self.scoring)
        named = list_labels(ids, top, opened.labels, opened.thresholds)
        for row, (told, bare) in enumerate(
            zip(opened.find_told(texts, top.trust), named, strict=True)
        ):
            text, reasons = texts[row], top.reasons[row] if self.scoring.reasons else ()
            document = replace(
                bare,
                why=[reason.text for reason in reasons],
                evidence=[
                    ", ".join(one.words[:WORDS_OF_A_REASON]) or one.text[:HEADING]
                    for one in reasons
                ]
                if self.kept != 0
                else [],
                heading=find_heading(text) if self.kept != 0 else "",
                text=text[: self.kept],
                checksum=_checksum(text),
            )
            wanted = [
                place
                for place, score in enumerate(document.scores)
                if told
                and score >= self.least
                and (not self.assigned or bare.bands[place] == ASSIGN)
            ]
            if self.others is not None:
                low = [place for place in wanted if bare.bands[place] == REJECT]
                wanted = sorted({*wanted} - {*low[self.others :]})
            documents.append(document if len(wanted) == len(bare.labels) else document.take(wanted))
        return documents, top

    def answer(
        self, new: NewTexts, reporter: Reporter, done: int = 0
    ) -> Iterator[list[SuggestedDocument]]:
        """The documents in blocks as they are read; then warnings of what was not read, or tells
        the model nothing, and of more labels.

        Args:
            new: the texts.
            reporter: shows progress.
            done: how many of the texts are left out, since they are done.
        """
        seen, trusts, full, cut = list[str](), list[Trust](), 0, 0.0
        k, warn = min(self.scoring.k, len(self.opened.labels)), self.opened.reporter.warn
        with reporter.progress(
            "suggesting labels", None if new.total is None else new.total - done, "texts"
        ) as task:
            for ids, texts in new.blocks:
                documents, top = self.suggest(ids, texts)
                full += sum(
                    self.assigned and len(one.labels) == k < len(self.opened.labels)
                    for one in documents
                )
                cut += top.cut.documents * len(ids)
                seen += ids
                trusts.append(self.opened.find_trust(texts, top.trust))
                yield documents
                task.advance(len(ids))
        if cut:
            warn(
                f"{cut:.0f} of {len(seen)} texts are longer than the network reads; the rest of "
                "them is not read "
                "(to read it, train with --set model.backbone.max_tokens=…)"
            )
        if trusts:
            self.opened.warn_of_unknown(seen, np.concatenate(trusts))
        if full:  # labels after the last one may be assigned, too
            warn(
                f"in {full} texts the last of the {k} labels that were looked at is assigned: "
                f"--top-k {10 * k} looks at more"
            )


class KeptDocuments:
    """The file beside an output that keeps the documents that are done, a line each: a process
    that was stopped goes on after them.
    """

    def __init__(self, path: Path, made_by: Mapping[str, Any], *, anew: bool) -> None:
        self.path, self.number = path, 0
        first = json.dumps({"plant": 1, **made_by}) + "\n"
        if anew or not path.exists() or not path.stat().st_size:
            path.write_text(first, "utf-8")
            return
        with path.open("rb+") as stream:
            if stream.readline() != first.encode():
                self._refuse("the model or the options differ")
            end = stream.tell()
            for line in stream:
                if not line.endswith(b"}\n"):  # cut off where the process was killed
                    break
                end, self.number = end + len(line), self.number + 1
            stream.truncate(end)

    def __iter__(self) -> Iterator[SuggestedDocument]:
        with self.path.open(encoding="utf-8", newline="\n") as stream:
            next(stream)
            yield from map(SuggestedDocument.load, stream)

    def skip(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """The documents that are not kept yet, once those that are turn out to be the first."""
        kept = iter(self) if self.number else iter(())
        for ids, texts in blocks:
            same = 0
            for doc_id, text in zip(ids, texts, strict=True):
                if (one := next(kept, None)) is None:
                    break
                if (one.doc_id, one.checksum) != (doc_id, _checksum(text)):
                    self._refuse("the texts differ")
                same += 1
            if same < len(ids):
                yield ids[same:], texts[same:]

    def add(self, documents: Iterable[SuggestedDocument]) -> None:
        """Keep some more."""
        lines = [json.dumps(vars(one), ensure_ascii=False) + "\n" for one in documents]
        with (
            naming_full_disk(self.path),
            self.path.open("a", encoding="utf-8", newline="\n", errors="surrogatepass") as stream,
        ):
            stream.writelines(lines)
        self.number += len(lines)

    def _refuse(self, why: str) -> None:
        raise UsageError(
            f"an earlier command left the beginning of other suggestions: {why}",
            where=str(self.path),
            expected="the same texts, model and options: then the work goes on after this "
            "beginning",
            todo="repeat that command, choose another output, or begin anew with --force",
        )


@contextmanager
def keeping(
    output: Path, made_by: Mapping[str, Any], reporter: Reporter, *, anew: bool
) -> Iterator[KeptDocuments]:
    """The documents that are done, beside the output; removed when the block ends well."""
    path = output.with_name(f"{output.name}.part")
    require_place(path.absolute().parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as alone:
        try:
            fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            what, todo = (
                "another command writes these suggestions",
                "wait until it ends, or choose another output",
            )
            raise ResourceError(
                what, where=str(path), expected="one command for each output", todo=todo
            ) from error
        kept = KeptDocuments(path, made_by, anew=anew)
        if kept.number:
            reporter.note(f"goes on after {kept.number:,} texts, which are kept in {path}")
        try:
            yield kept
        except BaseException:
            if kept.number:
                reporter.note(
                    f"{kept.number:,} texts are done and kept in {path}: the same command goes on "
                    "after them"
                )
            else:
                path.unlink(missing_ok=True)
            raise
        path.unlink()


def _checksum(text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"))
