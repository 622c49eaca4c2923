"""Published corpora by name: from the files of their publishers or from tables, with card and
counts; readers of four of them.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from plant_cli.api import (
    Choice,
    DataError,
    DataSection,
    Dataset,
    DatasetCard,
    Options,
    SplitName,
    UsageError,
    first_line,
)
from plant_cli.kit import BadRows, read_bytes, read_lines
from plant_formats import (
    CARDS,
    FORMATS,
    CodiespOptions,
    Eurlex57kOptions,
    NoOptions,
    ReutersOptions,
    TibkatOptions,
    mimic,
    table_corpora,
)
from plant_formats.corpus_reader import ALIASES, CorpusReader, Document, SplitPart
from plant_formats.line_formats import Fault, Line, read_json_line

_STORY = re.compile(r"<REUTERS\s(.*?)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_ITEM = re.compile(r"<D>(.*?)</D>")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_CATEGORIES = {
    "topic": "TOPICS",
    "place": "PLACES",
    "person": "PEOPLE",
    "org": "ORGS",
    "exchange": "EXCHANGES",
}
_CODES = {"DIAGNOSTICO": "D", "PROCEDIMIENTO": "P"}
_EVIDENCE = {
    "doc_id": pl.String,
    "label": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "text": pl.String,
}


def load(name: str, data: DataSection, options: Any) -> Dataset:
    """A corpus with the card of its name, and a remark on which version of the corpus it is."""
    if table_corpora.recognise(data) is not None:
        _refuse_options(name, options)
        dataset = table_corpora.load(data)
    elif name in READERS:
        dataset = READERS[name](data, options)
    else:
        dataset = (
            mimic.load(name, data, options)
            if name.startswith("mimic")
            else _read_download(data, options)
        )
    card = CARDS[name]
    remarks = [*dataset.remarks, *describe_counts(count_corpus(dataset), card)]
    return replace(dataset, licence=card.licence, citation=card.citation, remarks=remarks)


def _refuse_options(name: str, options: Options) -> None:
    """Refuse options of the publisher's files: tables hold what was chosen when they were
    written.
    """
    chosen = [
        key
        for key, value in options.model_dump().items()
        if value != type(options).model_fields[key].default
    ]
    if chosen:
        raise UsageError(
            f"{', '.join(chosen)} cannot be chosen in tables: they are options of the publisher's "
            "files",
            where=f"dataset '{name}'",
            expected=f"the distribution of {name}, or none of its options",
            todo=f"`plant data info {name}` says where to get the distribution; or leave the "
            "options out",
        )


def count_corpus(dataset: Dataset) -> dict[str, int]:
    """Documents of each split, `labels` that documents have, and `label names` in the table of
    labels.
    """
    counts: dict[str, int] = {
        name: int(frame.select(pl.len()).collect().item()) for name, frame in dataset.splits.items()
    }
    frames = dataset.splits.values()
    labels = pl.concat(
        [frame.select(pl.col("labels").explode().cast(pl.String)) for frame in frames]
    )
    named = pl.col("labels").str.strip_chars().replace("", None).drop_nulls()
    counts["labels"] = int(labels.select(named.n_unique()).collect().item())
    if dataset.labels is not None:
        counts["label names"] = int(dataset.labels.select(pl.len()).collect().item())
    return counts


def fits(counts: Mapping[str, int], expected: Mapping[str, int]) -> bool:
    """Whether all counts of a version agree; its labels may be those that documents have, or
    those that have a name.
    """
    splits = {
        name: number for name, number in counts.items() if name not in ("labels", "label names")
    }
    wanted = {
        name: number for name, number in expected.items() if name not in ("labels", "documents")
    }
    labels = (counts.get("labels"), counts.get("label names"))
    agree = (not wanted or splits == wanted) and expected.get("documents") in (
        None,
        sum(splits.values()),
    )
    return agree and ("labels" not in expected or expected["labels"] in labels)


def describe_counts(counts: Mapping[str, int], card: DatasetCard) -> list[str]:
    """The remark on the counts: the version, where there are several; expected counts, where no
    version fits.
    """
    corpus = card.title.split(":")[0]
    version = next(
        (name for name, expected in card.variants.items() if fits(counts, expected)), None
    )
    if version is not None:
        return [f"{corpus}, {version}: {_show(counts)}"] if len(card.variants) > 1 else []
    if not card.variants:
        return []
    known = "; ".join(f"{name}: {_show(expected)}" for name, expected in card.variants.items())
    return [f"the counts are of no known version of {corpus}: {_show(counts)}; expected {known}"]


def _show(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in counts.items())


def _read_download(data: DataSection, options: NoOptions) -> Dataset:
    """A corpus of the extreme classification repository, in the format that recognises it."""
    reader = CorpusReader.of(data)
    specs = [spec for spec in FORMATS if spec.recognise is not None and spec.recognise(data)]
    if len(specs) != 1:
        names = ", ".join(spec.name for spec in specs)
        raise DataError(
            f"{len(specs)} formats fit the download{': ' if names else ''}{names}",
            where=str(reader.path),
            expected="the unpacked folder of the corpus, in one format",
            todo="see `plant data info` for the files; or name the format with --dataset",
        )
    dataset: Dataset = specs[0].load(
        data.model_copy(update={"dataset": Choice(name=specs[0].name)}), specs[0].options()
    )
    return dataset


def find_split_folders(path: Path, pattern: str) -> dict[SplitName, Path]:
    """The folders train, dev and test with files of a pattern (`*.json`, `**/*.jsonld`), in the
    named folder or one below.
    """
    folders = (
        [path, *(folder for folder in sorted(path.iterdir()) if folder.is_dir())]
        if path.is_dir()
        else []
    )
    for folder in folders:
        below = [
            child
            for child in sorted(folder.iterdir())
            if child.is_dir() and child.name.lower() in ALIASES
        ]
        splits = {
            ALIASES[child.name.lower()]: child
            for child in below
            if next(child.glob(pattern), None) is not None
        }
        if "train" in splits:
            return splits
    what, expected = (
        f"there is no folder train with files {pattern}",
        "the folder of the corpus, with train, dev and test in it",
    )
    raise DataError(
        what,
        where=str(path),
        expected=expected,
        todo="name that folder; `plant data info` says where to get the corpus",
    )


def _read_json_files(
    reader: CorpusReader, paths: Sequence[Path], keys: str, read: Callable[[Path, Any], Line]
) -> Iterator[Document]:
    """The document of each file."""
    for number, path in enumerate(paths, start=1):
        content = "\n".join(line for _, line in reader.lines(path))
        try:
            found = read_json_line(content, keys, partial(read, path))
        except Fault as fault:
            reader.bad.add(path, fault.line, fault.why, content[:500], column=fault.column)
        else:
            yield Document(number, found.text, [str(label) for label in found.labels], found.id)


def read_eurlex57k(data: DataSection, options: Eurlex57kOptions) -> Dataset:
    """Header, recitals and main body of each law, a JSON file each; a label is the number of a
    EuroVoc concept.
    """

    def read(path: Path, law: Any) -> Line:
        body = law["main_body"] if isinstance(law["main_body"], list) else [law["main_body"]]
        attached = [law.get("attachments")] if options.attachments else []
        pieces = [law.get("header") or law.get("title"), law.get("recitals"), *body, *attached]
        labels = [str(concept) for concept in law["concepts"]]
        return Line(
            labels,
            "\n".join(str(piece) for piece in pieces if piece),
            str(law.get("celex_id") or path.stem),
        )

    reader = CorpusReader.of(data)
    keys = "{celex_id, header, recitals, main_body, concepts}"
    folders = find_split_folders(reader.path, "*.json")
    parts: dict[SplitPart, Iterator[Document]] = {
        split: _read_json_files(reader, sorted(folder.glob("*.json")), keys, read)
        for split, folder in folders.items()
    }
    dataset = reader.dataset(parts)
    pattern = "*[Ee][Uu][Rr][Oo][Vv][Oo][Cc]*.json*"
    beside = next(
        (
            path
            for folder in (reader.path, reader.path.parent)
            for path in sorted(folder.glob(pattern))
        ),
        None,
    )
    if beside is None:
        return dataset
    return replace(
        dataset, labels=_read_concepts(beside, data).lazy(), files=[*dataset.files, str(beside)]
    )


def _read_concepts(path: Path, data: DataSection) -> pl.DataFrame:
    """Names of EuroVoc concepts: a JSON object by number, or a JSON object for each on its line."""
    text = "\n".join(line for _, line in read_lines(path, BadRows(strict=True), data.encoding))
    try:
        rows = [
            (
                str(number),
                concept.get("title") or concept.get("label"),
                [*map(str, concept.get("alt_titles") or concept.get("alt_labels") or [])],
            )
            for number, concept in _number_concepts(text)
        ]
        return pl.DataFrame(
            rows,
            schema={"label": pl.String, "title": pl.String, "alternatives": pl.List(pl.String)},
            orient="row",
        )
    except (ValueError, KeyError, TypeError, AttributeError, PolarsError) as error:
        raise DataError(
            f"the names of EuroVoc's concepts cannot be read: {first_line(error)}",
            where=str(path),
            expected='a JSON object of objects by number, or on each line an object with "id" and '
            '"title"',
            todo="mend the file, or move it away: titles can come from --vocabulary",
        ) from error


def _number_concepts(text: str) -> Iterable[tuple[Any, Any]]:
    """Concepts with their numbers."""
    try:
        concepts = json.loads(text)
    except json.JSONDecodeError:
        concepts = [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(concepts, dict) and all(isinstance(one, dict) for one in concepts.values()):
        return concepts.items()
    listed = [concepts] if isinstance(concepts, dict) else concepts
    return ((concept["id"], concept) for concept in listed)


def read_tibkat(data: DataSection, options: TibkatOptions) -> Dataset:
    """Title and abstracts of each record, a JSON-LD file each; labels are numbers of the GND,
    their German names the titles.
    """
    titles: dict[str, str | None] = {}

    def read(path: Path, record: Any) -> Line:
        nodes = _as_list(record["@graph"])
        document = next(node for node in nodes if "TIBKAT" in node.get("@id", ""))
        texts = [*_as_list(document.get("title")), *_as_list(document.get("abstract"))]
        labels = [subject["@id"] for subject in _as_list(document.get("dcterms:subject"))]
        for node in nodes:
            if names := _as_list(node.get("sameAs")):
                titles.setdefault(node["@id"], str(names[0]))
        return Line(
            labels,
            "\n".join(map(str, texts)),
            f"{path.parent.parent.name}-{path.parent.name}-{path.stem}",
        )

    reader = CorpusReader.of(data)
    parts: dict[SplitPart, Iterator[Document]] = {}
    for split, folder in find_split_folders(reader.path, "**/*.jsonld").items():
        paths = [
            path
            for path in sorted(folder.rglob("*.jsonld"))
            if options.language in ("all", path.parent.name)
        ]
        if paths:
            parts[split] = _read_json_files(
                reader, paths, "a record with @graph, title and dcterms:subject", read
            )
    return reader.dataset(parts, titles)


def _as_list(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def read_codiesp(data: DataSection, options: CodiespOptions) -> Dataset:
    """Texts with codes of diagnoses (D) and procedures (P), and the spans that justify them
    (X); dev is validation.
    """
    reader = CorpusReader.of(data)
    kinds = ("D", "P") if options.codes == "all" else (options.codes,)
    parts: dict[SplitPart, list[Document]] = {}
    spans: list[tuple[str, str, int, int, str]] = []
    for split, folder in find_split_folders(reader.path, "text_files/*.txt").items():
        codes = _read_codes(reader, folder, kinds)
        if not codes:
            reader.remarks.append(f"{folder} has texts and no gold codes: it is left out")
            continue
        texts = {
            path.stem: "".join(line for _, line in reader.lines(path, ends=True))
            for path in sorted(folder.glob("text_files/*.txt"))
        }
        parts[split] = [
            Document(n, text, codes.get(name, []), name)
            for n, (name, text) in enumerate(texts.items(), start=1)
        ]
        spans += _read_spans(reader, folder, texts, kinds)
    dataset = reader.dataset(parts)
    return replace(
        dataset, evidence=pl.LazyFrame(spans, schema=_EVIDENCE, orient="row") if spans else None
    )


def _read_codes(reader: CorpusReader, folder: Path, kinds: Sequence[str]) -> dict[str, list[str]]:
    codes: dict[str, list[str]] = {}
    for path in [path for kind in kinds for path in sorted(folder.glob(f"*{kind}.tsv"))]:
        for number, line in reader.lines(path):
            fields = line.rstrip().split("\t")
            if len(fields) >= 2:
                codes.setdefault(fields[0], []).append(fields[1])
            elif line.strip():
                reader.bad.add(path, number, "not a document, a tab and a code", line)
    return codes


def _read_spans(
    reader: CorpusReader, folder: Path, texts: Mapping[str, str], kinds: Sequence[str]
) -> Iterator[tuple[str, str, int, int, str]]:
    """Spans from lines with document, kind, code, quoted text and offsets; several pairs of
    offsets are separated by semicolons.
    """
    for path in sorted(folder.glob("*X.tsv")):
        for number, line in reader.lines(path):
            fields = line.rstrip("\n").split("\t")
            if len(fields) < 5 or fields[0] not in texts or fields[1] not in _CODES:
                reader.bad.add(
                    path,
                    number,
                    "not document, DIAGNOSTICO or PROCEDIMIENTO, code, text and offsets",
                    line,
                )
                continue
            doc_id, kind, code, _, offsets = fields[:5]
            try:
                pairs = (
                    [tuple(map(int, pair.split())) for pair in offsets.split(";")]
                    if _CODES[kind] in kinds
                    else []
                )
                spans = [(start, end) for start, end in pairs if end > start]
            except ValueError:
                reader.bad.add(path, number, "the offsets are not pairs of numbers", line)
                continue
            for start, end in spans:
                yield doc_id, code, start, end, texts[doc_id][start:end]


def read_reuters(data: DataSection, options: ReutersOptions) -> Dataset:
    """Stories of 22 SGML files; the splits ModApte and ModLewis follow from the attributes of
    each. Title, an empty line, and the body.
    """
    reader = CorpusReader.of(data)
    files = sorted(reader.path.glob("*.sgm*")) if reader.path.is_dir() else []
    if not files:
        expected, todo = (
            "reut2-000.sgm to reut2-021.sgm",
            "name the unpacked folder; `plant data info reuters-21578` says where to get it",
        )
        raise DataError(
            "the folder holds no SGML files", where=str(reader.path), expected=expected, todo=todo
        )
    parts: dict[SplitPart, list[Document]] = {"train": [], "test": []}
    empty = 0
    for path in files:
        reader.files.append(path)
        text = read_bytes(path).decode(data.encoding or "latin-1")
        if text.count("<REUTERS ") != len(_STORY.findall(text)):
            reader.bad.add(path, text.count("\n"), "a story is not closed", text[-200:])
        for split, document in _read_stories(text, options):
            empty += not document.text
            if document.text:
                parts[split].append(document)
    if empty:
        reader.remarks.append(f"{empty:,} stories have neither title nor body and are left out")
    return reader.dataset({split: documents for split, documents in parts.items() if documents})


def _read_stories(text: str, options: ReutersOptions) -> Iterator[tuple[SplitPart, Document]]:
    for match in _STORY.finditer(text):
        attributes, story = dict(_ATTRIBUTE.findall(match[1])), match[2]
        split = {"TRAIN": "train", "TEST": "test"}.get(attributes.get("LEWISSPLIT", ""))
        topics = attributes.get("TOPICS")
        if split is None or not (
            topics == "YES" if options.split == "modapte" else topics != "BYPASS"
        ):
            continue
        labels = [
            f"{kind}:{name}"
            for kind, tag in _CATEGORIES.items()
            for name in _ITEM.findall(_field(story, tag))
        ]
        if options.categories == "topics":
            labels = _ITEM.findall(_field(story, "TOPICS"))
        body = _clean(_field(story, "BODY")) or _clean(_unmarked(story))
        content = f"{_clean(_field(story, 'TITLE'))}\n\n{body}".strip()
        yield (
            ("train" if split == "train" else "test"),
            Document(int(attributes["NEWID"]), content, labels, attributes["NEWID"]),
        )


def _field(story: str, tag: str) -> str:
    match = re.search(rf"<{tag}[^>]*>(.*?)</{tag}>", story, re.DOTALL)
    return match[1] if match else ""


def _unmarked(story: str) -> str:
    """The text of a story without a body (TYPE="UNPROC", "BRIEF"): what is between no tags."""
    return re.sub(
        r"</?\w[^<>]*>",
        "",
        re.sub(r"<(TITLE|DATELINE|AUTHOR)>.*?</\1>", "", _field(story, "TEXT"), flags=re.DOTALL),
    )


def _clean(text: str) -> str:
    return _CONTROL.sub("", html.unescape(text)).strip()


READERS: dict[str, Callable[[DataSection, Any], Dataset]] = {
    "eurlex57k": read_eurlex57k,
    "codiesp": read_codiesp,
    "reuters-21578": read_reuters,
    "tibkat": read_tibkat,
}
