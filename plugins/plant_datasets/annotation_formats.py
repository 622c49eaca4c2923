"""What annotation tools, fastText, catalogues of literature and Stack Exchange write; JSON is known by one table of shapes."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from plant_cli.api import DataError, DataSection
from plant_cli.kit import bare_name
from plant_datasets.corpus_reader import (
    LINES_SAMPLED,
    CorpusReader,
    find_example,
    first_lines,
    mostly,
)
from plant_datasets.line_formats import (
    Fault,
    Line,
    LineFormat,
    NumberedLabels,
    PassedOver,
    read_id,
    read_json_line,
)

Numbered = tuple[int, str]  # a line, or a record of several, with the number of its first line
_HEAD = 5_000  # lines in which a first record is looked for
_NEAR = 100  # those among which the first line of a record is looked for
_SHOWN = 3  # labels of an example
_CHOSEN = 0.5  # a label of spaCy with at least this value is one of the document
_OWN_NAMES = (  # of texts, labels and ids
    ("text", "data", "textContent"),
    (
        "labels",
        "label",
        "cats",
        "accept",
        "entities",
        "annotations",
        "completions",
        "annotation",
        "classificationAnnotations",
    ),
    (None, "id"),
)


@dataclass(frozen=True)
class RecordFormat(LineFormat):
    """A format whose files are known by their content alone; documents may take several lines."""

    cut: Callable[[Iterable[Numbered]], Iterator[Numbered]] = iter  # lines into records
    has_columns: bool = (
        False  # whether it is a table if the user names other columns than it reads itself
    )

    def records(
        self, reader: CorpusReader, path: Path, labels: NumberedLabels
    ) -> Iterator[tuple[int, int, str]]:
        """See `LineFormat.records`."""
        try:
            yield from (
                (number, *record)
                for number, record in enumerate(self.cut(reader.lines(path)), start=1)
            )
        except Fault as fault:  # what follows cannot be told apart
            where, expected = (
                f"{path}, line {fault.line:,}, column {fault.column}",
                "one complete JSON list",
            )
            raise DataError(
                fault.why, where=where, expected=expected, todo="mend the file, or make it again"
            ) from fault

    def recognise(self, data: DataSection) -> str | None:
        """The title of what wrote the file, and the labels of its first document that has any."""
        names = (data.text_column, data.labels_column, data.id_column)
        if self.has_columns and any(
            name not in own for name, own in zip(names, _OWN_NAMES, strict=True)
        ):
            return None
        fits = self.fits or (lambda path, lines: False)
        example = find_example(data, lambda path: bool(fits(path, first_lines(path, _HEAD))))
        if example is None:
            return None
        lines = first_lines(example, _HEAD)
        said = fits(example, lines)
        title = said if isinstance(said, str) else self.title
        line = next((line for line in self._parse_first(lines) if line.labels), None)
        if line is None:
            return title
        shown = ", ".join(
            str(line.titles.get(str(label)) or label) for label in line.labels[:_SHOWN]
        )
        return f"{title} (labels of the first document: {shown})"

    def _parse_first(self, lines: list[str]) -> Iterator[Line]:
        """The documents among the first lines, which may end within one."""
        with suppress(Fault):
            for _, record in islice(self.cut(enumerate(lines, start=1)), _NEAR):
                with suppress(Fault, PassedOver):
                    line = self.parse(record, lines[0])
                    yield from [] if line is None else [line]


def _known_by(fits: Callable[[list[str]], object]) -> dict[str, Any]:
    """The two fields of a format that say which files it has, from a function of their first lines."""
    return {
        "fits": lambda path, lines: bool(lines) and fits(lines),
        "accepts": lambda path: bool((lines := first_lines(path, _HEAD)) and fits(lines)),
    }


# fastText

_FASTTEXT = re.compile(r"(?:^|(?<=[ \t]))__label__(\S+)[ \t]?")
_GLUED = re.compile(
    r"((?:__label__[^\s,]+,)*__label__[^\s,]+),(?=[^\s_])"
)  # as in CSV, where a comma parts label and text


def _unglue(lines: Iterable[Numbered]) -> Iterator[Numbered]:
    rows = iter(lines)
    head = list(islice(rows, LINES_SAMPLED))
    glued = mostly([line for _, line in head], _GLUED.match)
    yield from (
        (number, _GLUED.sub(r"\1 ", line, count=1) if glued else line)
        for number, line in chain(head, rows)
    )


def _parse_fasttext(line: str, first: str) -> Line | None:
    line = line.replace(",__label__", " __label__")
    labels = [label.rstrip(",") for label in _FASTTEXT.findall(line)]
    return Line(labels, _FASTTEXT.sub("", line)) if line.strip() else None


FASTTEXT_LINES = RecordFormat(
    "fastText's lines",
    _parse_fasttext,
    "__label__a __label__b text",
    lambda path, lines: (
        mostly(lines[:1], _FASTTEXT.search) and mostly(lines[:LINES_SAMPLED], _FASTTEXT.search)
    ),
    lambda path: (
        Path(bare_name(path)).suffix
        in ("", ".txt", ".tsv", ".ft", ".train", ".valid", ".val", ".dev", ".test", ".csv")
    ),
    cut=_unglue,
)


# JSON of annotation tools

_OPENING = re.compile(r'\s*(?:\{\s*"[^"]*"\s*:\s*)?\[')  # of a list, or of an object with a list
_BETWEEN = re.compile(r"[\s,]*")


def json_objects(lines: Iterable[Numbered]) -> Iterator[Numbered]:
    """The objects (or lists) of JSON lines, of a list, or of the list that is the only value of an object."""
    held, place, wait, opened = "", 0, 0, False
    decoder, rows = json.JSONDecoder(), iter(lines)
    for number, line in chain(rows, [(0, "")]):
        if not opened and not held.strip() and _is_row(line):
            yield number, line
            yield from ((later, text) for later, text in rows if text.strip())
            return
        place, held = place if held.strip() else number, f"{held}{line}\n"
        if (number and len(held) < wait) or (not opened and not _OPENING.match(held)):
            continue  # an object of many lines is not tried at each of them
        end = 0 if opened else len(_OPENING.match(held)[0])  # type: ignore[index]
        opened = True
        while held.startswith(("{", "["), start := _BETWEEN.match(held, end).end()):  # type: ignore[union-attr]
            try:
                _, end = decoder.raw_decode(held, start)
            except (ValueError, RecursionError):
                break
            yield place, held[start:end]
            place = number
        held = held[end:].lstrip(" \t\r\n,")
        wait = 2 * len(held)
    if held.strip(" \t\r\n,]}"):
        try:
            decoder.raw_decode(held)
        except json.JSONDecodeError as error:
            raise Fault(
                f"the JSON cannot be read: {error.msg}", error.colno, place + error.lineno - 1
            ) from error
        except RecursionError as error:
            raise Fault(
                "the JSON cannot be read: lists within lists beyond measure", 1, place
            ) from error


def _is_row(line: str) -> bool:
    """Whether a first line is an object by itself: the file is JSON lines."""
    if not line.lstrip().startswith("{"):
        return False
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return line.strip() != "{" and not _OPENING.match(line)
    return not (len(value) == 1 and isinstance(next(iter(value.values())), list))


def answer_labels(value: Any) -> list[str]:
    """The labels in what a tool writes for one answer: a label, a list, spans, or an object with choices, labels or paths of a taxonomy."""
    if isinstance(value, list):
        if (
            len(value) == 3 and isinstance(value[0], int) and isinstance(value[2], str)
        ):  # start, end, label
            return [value[2]]
        return [label for part in value for label in answer_labels(part)]
    if isinstance(value, dict):
        paths = ["/".join(map(str, path)) for path in value.get("taxonomy") or ()]
        return [
            *(
                label
                for key in ("choices", "labels", "label")
                for label in answer_labels(value.get(key))
            ),
            *paths,
        ]
    return [value] if isinstance(value, str) else []


def _read_task(row: dict[str, Any]) -> Line:
    """A task of Label Studio: the answers of all its annotations."""
    answers = [
        one
        for one in row.get("annotations") or row.get("completions") or ()
        if not one.get("was_cancelled")
    ]
    if not answers:
        raise PassedOver("tasks that nobody annotated")
    labels = [
        label
        for one in answers
        for answer in one["result"]
        for label in answer_labels(answer["value"])
    ]
    return Line(labels, _longest(row["data"]), read_id(row, "id"))


def _read_flat_task(row: dict[str, Any]) -> Line:
    """A row of Label Studio's JSON-MIN: data, id, answers, annotator and the rest, in this order."""
    keys = list(row)
    before, answers = keys[: keys.index("id")], keys[keys.index("id") + 1 : keys.index("annotator")]
    labels = [label for key in answers for label in answer_labels(row[key])]
    return Line(labels, _longest({key: row[key] for key in before}), read_id(row, "id"))


def _read_prodigy(row: dict[str, Any]) -> Line:
    if row.get("answer", "accept") != "accept":
        raise PassedOver("examples that were rejected or ignored")
    titles = {
        str(one["id"]): str(one.get("text") or "") or None for one in row.get("options") or ()
    }
    spans = [span["label"] for span in row.get("spans") or () if "label" in span]
    labels = (
        [str(label) for label in row["accept"]]
        if "accept" in row
        else [row["label"]]
        if "label" in row
        else spans
    )
    return Line(
        labels, row["text"], titles={} if titles == {key: key for key in titles} else titles
    )


def _longest(data: Mapping[str, Any]) -> str:
    """The text among the fields of a task: `text`, else the longest."""
    texts = [value for value in data.values() if isinstance(value, str)]
    return str(data["text"]) if isinstance(data.get("text"), str) else max(texts, key=len)


def _has(*keys: str, **kinds: type) -> Callable[[dict[str, Any]], bool]:
    return lambda row: (
        all(key in row for key in keys)
        and all(isinstance(row.get(key), kind) for key, kind in kinds.items())
    )


# who writes it, whether an object has this shape, and the document in it; the first that fits counts
_SHAPES: Sequence[
    tuple[str, Callable[[dict[str, Any]], object], Callable[[dict[str, Any]], Line]]
] = (
    (
        "BioASQ",
        _has("abstractText", meshMajor=list),
        lambda row: Line(
            row["meshMajor"],
            "\n".join(filter(None, (row.get("title"), row["abstractText"]))),
            read_id(row, "pmid"),
        ),
    ),
    ("Label Studio", _has(data=dict, annotations=list), _read_task),
    ("Label Studio (older)", _has(data=dict, completions=list), _read_task),
    ("Label Studio's JSON-MIN", _has("id", "annotation_id", "annotator"), _read_flat_task),
    (
        "Prodigy",
        lambda row: "text" in row and ("answer" in row or isinstance(row.get("accept"), list)),
        _read_prodigy,
    ),
    (
        "spaCy",
        _has("text", cats=dict),
        lambda row: Line(
            [name for name, value in row["cats"].items() if value >= _CHOSEN], row["text"]
        ),
    ),
    (
        "Argilla",
        _has("text", "annotation", "annotation_agent"),
        lambda row: Line(answer_labels(row["annotation"]), row["text"], read_id(row, "id")),
    ),
    (
        "Vertex AI",
        _has(textContent=str, classificationAnnotations=list),
        lambda row: Line(
            [one["displayName"] for one in row["classificationAnnotations"]], row["textContent"]
        ),
    ),
    *(
        (
            "doccano",
            _has(**{text: str, labels: list}),
            lambda row, labels=labels, text=text: _read_doccano(row, labels, text),
        )
        for labels in ("label", "cats", "entities")
        for text in ("text", "data")
    ),
)


def _read_doccano(row: dict[str, Any], labels: str, text: str) -> Line:
    """Labels of the document, or of its spans."""
    spans = row.get("entities") if labels == "cats" else None
    return Line(
        list(dict.fromkeys(answer_labels(row[labels] or spans))), row[text], read_id(row, "id")
    )


def _pair(value: Any) -> Any:
    """An object in place of spaCy's older pair of a text and an object."""
    pair = (
        isinstance(value, list)
        and len(value) == 2
        and isinstance(value[0], str)
        and isinstance(value[1], dict)
    )
    return {"text": value[0], **value[1]} if pair else value


def _read_annotated(value: Any) -> Line:
    row = _pair(value)
    shape = next((read for _, fits, read in _SHAPES if fits(row)), None)
    if shape is None:
        raise ValueError("no text with labels")
    return shape(row)


def _name_shape(lines: list[str]) -> str | None:
    """Whose objects a file has, by the first of them."""
    for _, record in json_objects(enumerate(lines, start=1)):
        try:
            value = _pair(json.loads(record))
        except (ValueError, RecursionError):
            return None
        return next(
            (
                f"JSON of {title}"
                for title, fits, _ in _SHAPES
                if isinstance(value, dict) and fits(value)
            ),
            None,
        )
    return None


ANNOTATIONS = RecordFormat(
    "JSON of an annotation tool",
    lambda record, first: read_json_line(record, "an annotated text", _read_annotated),
    '{"text": …, "label": ["a", "b"]}, or as the tool writes it',
    **_known_by(_name_shape),
    cut=json_objects,
    has_columns=True,
)


# records of literature, and posts


def _cut_at(start: str, end: str) -> Callable[[Iterable[Numbered]], Iterator[Numbered]]:
    """Cut lines into records: from what begins one to the next; what stands after the `end` of a record belongs to none."""
    begins = re.compile(rf"(?=(?:{start}))")

    def cut(lines: Iterable[Numbered]) -> Iterator[Numbered]:
        place, held = 0, ""
        for number, line in lines:
            before, *parts = begins.split(line)
            held += f"{before}\n" if place else ""
            for part in parts:
                if place:
                    yield place, held
                place, held = number, f"{part}\n"
            if place and end in held:
                yield place, held[: held.index(end) + len(end)]
                place, held = 0, ""
        if place:
            yield place, held

    return cut


def _parse_xml(record: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(record)
    except ElementTree.ParseError as error:
        raise Fault("not XML", None, error.position[0]) from error


def _parse_post(record: str, first: str) -> Line:
    """A question of Stack Exchange; its HTML is taken off."""
    post = _parse_xml(record).attrib
    if "Tags" not in post:
        raise PassedOver("posts without tags, such as answers,")
    body = html.unescape(re.sub(r"<[^<>]*>", " ", post.get("Body", "")))
    return Line(
        re.findall(r"[^<>|]+", post["Tags"]),
        "\n".join(filter(None, (post.get("Title"), body.strip()))),
        post.get("Id"),
    )


POSTS = RecordFormat(
    "Stack Exchange's Posts.xml",
    _parse_post,
    '<row Id="1" Title="…" Body="…" Tags="<a><b>" />',
    **_known_by(
        lambda lines: any(re.match(r"\s*<row .*\bPostTypeId=", line) for line in lines[:_NEAR])
    ),
    cut=_cut_at(r"<row ", "/>"),
)


def _parse_reference(record: str, first: str) -> Line:
    """PubMed's XML, BibTeX, and records of lines with a tag (RIS, and PubMed's text format)."""
    if record.startswith("<"):
        return _parse_pubmed(record)
    fields = _parse_bibtex(record) if record.startswith("@") else _parse_tags(record)
    title, text, words = (
        next((found for tag in tags if (found := fields.get(tag))), []) for tags in _REFERENCE_TAGS
    )
    if words is fields.get("MH"):  # *Humans/genetics: main heading of an article, with a qualifier
        words = [word.lstrip("*").partition("/")[0] for word in words]
    labels = [
        label.strip()
        for word in words
        for label in (re.split(r"[;,]" if record.startswith("@") else ";", word))
    ]
    return Line(
        list(dict.fromkeys(filter(None, labels))),
        "\n".join([*title[:1], *text]),
        next(iter(fields.get("PMID", [])), None),
    )


_REFERENCE_TAGS = (("TI", "T1", "title"), ("AB", "N2", "abstract"), ("MH", "KW", "OT", "keywords"))
_TAG = re.compile(r"([A-Z][A-Z0-9]{1,3}) *- ?(.*)")
_FIELD = re.compile(r'(\w+)\s*=\s*(?:\{((?:[^{}]|\{[^{}]*\})*)\}|"([^"]*)")')


def _parse_tags(record: str) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    values: list[str] = []
    for line in record.splitlines():
        tag = _TAG.fullmatch(line)
        if tag is not None:
            values = fields.setdefault(tag[1], [])
            values.append(tag[2].strip())
        elif (
            line.strip() and not line[0].isspace() and values is fields.get("KW")
        ):  # EndNote: a keyword on each line
            values.append(line.strip())
        elif line.strip() and values:
            values[-1] += f" {line.strip()}"
    return fields


def _parse_bibtex(record: str) -> dict[str, list[str]]:
    found = {
        name.lower(): re.sub(r"\s+", " ", re.sub(r"[{}]", "", braced or quoted))
        for name, braced, quoted in _FIELD.findall(record)
    }
    return {name: [value] for name, value in found.items()} | {
        "PMID": re.findall(r"^@\w+\s*\{\s*([^,\s]+)", record)
    }


def _parse_pubmed(record: str) -> Line:
    """The headings of an article of PubMed: ids of MeSH, with their names as titles."""
    article = _parse_xml(record)
    text = [
        "".join(part.itertext()).strip()
        for tag in ("ArticleTitle", "AbstractText")
        for part in article.iter(tag)
    ]
    headings = {
        (name.get("UI") or name.text or ""): name.text for name in article.iter("DescriptorName")
    }
    doc_id = article.find(".//PMID")
    return Line(
        list(headings), "\n".join(text), None if doc_id is None else doc_id.text, titles=headings
    )


_CATALOGUES = {  # by what a line begins with
    r".*<PubmedArticle[ >]": "PubMed's XML",
    r"TY  - ": "RIS",
    r"PMID- ": "PubMed's text format",
    r"@(?i:article|book|inproceedings|incollection|misc|phdthesis|techreport|proceedings|online)\s*\{": "BibTeX",
}
_STARTS = r"<PubmedArticle[ >]|(?<!.)(?:TY  - |PMID- |@\w+\s*\{)"
REFERENCES = RecordFormat(
    "records of literature",
    _parse_reference,
    "PubMed (XML or text), RIS or BibTeX",
    **_known_by(
        lambda lines: next(
            (
                name
                for line in lines[:_NEAR]
                for sign, name in _CATALOGUES.items()
                if re.match(sign, line)
            ),
            None,
        )
    ),
    cut=_cut_at(_STARTS, "</PubmedArticle>"),
)
