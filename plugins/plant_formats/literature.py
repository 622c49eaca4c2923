"""Records of literature and of libraries: one format, whose keywords are read in the form that
all of a file show.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

import polars as pl

from plant_cli.api import DataSection, Dataset
from plant_cli.api.functions import Named
from plant_cli.kit import BadRows, read_lines
from plant_formats.annotation_formats import cut_at
from plant_formats.bibtex_text import Macros, cut_entries, show_separators
from plant_formats.corpus_reader import CorpusReader, find_example, find_parts, first_lines
from plant_formats.label_forms import find_label_form
from plant_formats.library_records import cut_elements, name_xml, parse_library_record
from plant_formats.line_formats import Fault, Line, PassedOver
from plant_formats.literature_records import Reference, parse_pubmed, parse_tags
from plant_formats.record_formats import HEAD_LINES, NEAR_LINES, Numbered, RecordFormat, known_by

_PARSE_ENTRY = Named("plant_formats.bibtex:parse_entry")
_WHERE_CUT = ";"  # in records with several keywords, where one of these holds more than one label
_SHOWN = 3  # names in a remark
_TYPES = (
    "article book booklet inbook incollection inproceedings proceedings conference collection misc "
    "manual report techreport thesis phdthesis mastersthesis unpublished online electronic www "
    "dataset software patent periodical string preamble comment"
)
_BEGINNINGS: dict[str, tuple[str, Callable[[Iterable[Numbered]], Iterator[Numbered]]]] = {
    "PubMed's XML": (r".*<PubmedArticle[ >]", cut_at(r"<PubmedArticle[ >]", "</PubmedArticle>")),
    "RIS": (r"TY  - ", cut_at(r"(?<!.)TY  - ", "\0")),
    "PubMed's text format": (r"PMID- ", cut_at(r"(?<!.)PMID- ", "\0")),
    "EndNote": (r"%0 \w", cut_at(r"(?<!.)%0 ", "\0")),
    "BibTeX": (rf"\s*@\s*(?i:{'|'.join(_TYPES.split())})\s*[{{(]", cut_entries),
}
"""By what writes it: what a line begins with, and how lines become records."""


def _name_kind(lines: Sequence[str]) -> str | None:
    """What wrote a file, by its first lines."""
    signs = [(name, re.compile(sign)) for name, (sign, _) in _BEGINNINGS.items()]
    found = (name for line in lines[:NEAR_LINES] for name, sign in signs if sign.match(line))
    return next(found, None) or name_xml(lines)


def _cut(lines: Iterable[Numbered]) -> Iterator[Numbered]:
    rows = iter(lines)
    head = list(islice(rows, HEAD_LINES))
    kind = _name_kind([line for _, line in head])
    cut = _BEGINNINGS[kind][1] if kind in _BEGINNINGS else cut_elements
    yield from cut(chain(head, rows))


@dataclass
class Catalogue:
    """What is known of all records before the first of them becomes a document."""

    thesaurus: str | None = None  # whose headings are the labels; None: those of all
    macros: Macros = field(default_factory=Macros)
    cells: Counter[str] = field(default_factory=Counter)  # keywords as they stand
    several: bool = False  # whether a record has more than one of them
    labels: dict[str, list[str]] = field(default_factory=dict)  # of each of them
    vocabularies: Counter[str] = field(default_factory=Counter)  # of headings
    unnamed: int = 0  # headings without an id
    said: list[str] = field(default_factory=list)

    def read(self, record: str) -> Reference | None:
        """A record, by what it begins with; None for what is no document."""
        if record.startswith("@"):
            entry: Reference | None = _PARSE_ENTRY(record, self.macros)
            return entry
        if record.startswith("<PubmedArticle"):
            return parse_pubmed(record)
        return parse_library_record(record) if record.startswith("<") else parse_tags(record)

    def count(self, records: Iterable[Numbered]) -> None:
        """Take note of the keywords and headings of some records."""
        for _, record in records:
            with suppress(Fault, PassedOver):
                found = self.read(record)
                if found is not None:
                    self.cells.update(found.keywords)
                    self.several = self.several or len(found.keywords) > 1
                    self.vocabularies.update(one.thesaurus for one in found.headings)
                    self.unnamed += sum(one.id is None for one in found.headings)

    def settle(self, data: DataSection, where: str) -> Catalogue:
        """The same with the form of the keywords chosen; it says what was found."""
        separator = data.label_separator
        if separator is None and self.several:
            separator = _WHERE_CUT
        column = pl.Series("keywords", [*self.cells], dtype=pl.String)
        every = pl.Series("keywords", [*self.cells.elements()], dtype=pl.String)
        form = find_label_form({where: every}, separator)
        self.labels = {
            cell: [show_separators(label).strip() for label in labels]
            for cell, labels in zip(self.cells, form.read(column, where)[0], strict=True)
            if labels is not None
        }
        self.said = [*self._describe(form.remark)]
        return self

    def _describe(self, form: str | None) -> Iterator[str]:
        if form and not self.several:
            yield show_separators(form)
        if self.macros.unknown:
            names = sorted(self.macros.unknown)
            yield (
                f"{len(names):,} names are no macros of the file, and stand as they are: "
                f"{', '.join(names[:_SHOWN])}"
            )
        total = self.vocabularies.total()
        if len(self.vocabularies) > 1 and self.thesaurus is None:
            listed = ", ".join(
                f"{name or 'none named'} {count:,}"
                for name, count in self.vocabularies.most_common()
            )
            yield (
                f"headings are from {len(self.vocabularies)} vocabularies, and labels all the "
                f"same: {listed} (--set data.dataset.thesaurus=NAME takes those of one)"
            )
        if 0 < self.unnamed < total:
            yield (
                f"{self.unnamed:,} of {total:,} headings have no id: their labels are their names, "
                "those of the others their ids"
            )

    def parse(self, record: str, first: str) -> Line | None:
        """A record as a document."""
        found = self.read(record)
        if found is None:
            return None
        headings = [one for one in found.headings if self.thesaurus in (None, one.thesaurus)]
        labels = [label for word in found.keywords for label in self.labels.get(word, ())]
        labels += [one.id or one.name for one in headings]
        return Line(
            list(dict.fromkeys(filter(None, labels))),
            "\n".join(show_separators(text) for text in found.texts if text),
            found.id,
            titles={one.id: one.name for one in headings if one.id},
        )


@dataclass(frozen=True)
class LiteratureFormat(RecordFormat):
    """Records of literature and of libraries."""

    def recognise(self, data: DataSection) -> str | None:
        """What wrote the file, and the labels of the first document that has any."""
        example = find_example(data, self.accepts)
        if example is None:
            return None
        catalogue = Catalogue()
        lines = first_lines(example, HEAD_LINES)
        with suppress(Fault):  # its first lines may end within a record
            catalogue.count(islice(self.cut(enumerate(lines, start=1)), NEAR_LINES))
        catalogue.settle(data, str(example))
        return RecordFormat.recognise(replace(self, parse=catalogue.parse), data)

    def load(self, data: DataSection, options: Any) -> Dataset:
        """Read a file, or the files of a folder, twice: their keywords, then their documents."""
        path = CorpusReader.of(data).path
        catalogue = Catalogue(getattr(options, "thesaurus", None))
        for file in find_parts(path, self.accepts).values():
            with suppress(Fault):  # told when it is read for its documents
                catalogue.count(self.cut(read_lines(file, BadRows(), data.encoding)))
        catalogue.settle(data, str(path))
        dataset = RecordFormat.load(replace(self, parse=catalogue.parse), data, options)
        said = [f"{path}: {remark}" for remark in catalogue.said]
        return replace(dataset, remarks=[*dataset.remarks, *said])


REFERENCES = LiteratureFormat(
    "records of literature",
    Catalogue().parse,
    "PubMed (XML or text), RIS, EndNote, BibTeX, MARC or Dublin Core in XML",
    **known_by(_name_kind),
    cut=_cut,
    whole="whole XML without declarations of entities",
)
