"""JSON of annotation tools: one table of shapes; what is asked, who answered, and which labels
follow are told apart.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from plant_cli.api import DataError, DataSection, Dataset
from plant_cli.kit import BadRows, read_lines
from plant_formats.corpus_reader import find_example, find_parts, first_lines
from plant_formats.line_formats import Fault, Line, PassedOver, read_id, read_json_line
from plant_formats.record_formats import HEAD_LINES, Numbered, RecordFormat, json_objects, known_by

_CHOSEN = 0.5  # a label of spaCy with at least this value is one of the document
_SHOWN = 3  # labels of a question in a message
_KEYS = """
id annotation_id annotator annotators created_at updated_at lead_time completed_by agreement
inner_id file_upload project meta metadata status url source predictions was_cancelled
total_annotations cancelled_annotations
"""
ABOUT = frozenset(_KEYS.split())
"""Keys that say something of an annotation, wherever they stand: no text, and no answer."""

_NO_TASK = (ValueError, KeyError, TypeError, AttributeError, RecursionError, PassedOver)
"""What a record raises that is no labelled text; told when it is read for its document."""
_NOTHING: tuple[dict[str, Any], ...] = ({"value": {}},)  # what a person said who marked nothing


@dataclass(frozen=True)
class Answer:
    """What one person said to one question."""

    labels: Sequence[str]
    question: str = ""
    person: str = ""
    rejected: Sequence[str] = ()


@dataclass(frozen=True)
class Annotated:
    """A text with all answers to all questions about it."""

    text: str
    answers: Sequence[Answer]
    id: str | None = None
    titles: Mapping[str, str | None] = field(default_factory=dict)
    apart: bool = False  # further records may hold the answers of other people

    @property
    def task(self) -> tuple[str | None, int]:
        """What such records have in common."""
        return self.id, hash(self.text)


def answer_labels(value: Any) -> list[str]:
    """The labels in what a tool writes for one answer: a label, a list, spans, or an object
    with choices, labels or paths of a taxonomy.
    """
    if isinstance(value, bool):
        return []
    if isinstance(value, (str, int)):
        return [str(value)]
    if isinstance(value, list):
        if len(value) == 3 and isinstance(value[0], int) and isinstance(value[2], str):
            return [value[2]]  # start, end, label
        return [label for part in value for label in answer_labels(part)]
    if isinstance(value, dict):
        paths = ["/".join(map(str, path)) for path in value.get("taxonomy") or ()]
        keys = ("choices", "labels", "label", "value")
        return [*(label for key in keys for label in answer_labels(value.get(key))), *paths]
    return []


def is_answer(value: Any) -> bool:
    """Whether a value has the form of an answer: an object or list that holds labels."""
    return isinstance(value, (dict, list)) and bool(answer_labels(value))


def _read_task(row: dict[str, Any]) -> Annotated:
    """A task of Label Studio: the answers of all its annotations."""
    annotations = [
        one
        for one in row.get("annotations") or row.get("completions") or ()
        if not one.get("was_cancelled")
    ]
    if not annotations:
        raise PassedOver("tasks that nobody annotated")
    answers = [
        Answer(answer_labels(part["value"]), str(part.get("from_name", "")), _person(one))
        for one in annotations
        for part in one["result"] or _NOTHING
    ]
    return Annotated(_longest(row["data"]), answers, read_id(row, "id"))


def _person(annotation: Mapping[str, Any]) -> str:
    """Who made an annotation: by mail, else by number."""
    who = annotation.get("completed_by", annotation.get("user", annotation.get("user_id", "")))
    return str(who.get("email") or who.get("id")) if isinstance(who, dict) else str(who)


def _read_flat_task(row: dict[str, Any]) -> Annotated:
    """A row of Label Studio's JSON-MIN, whose keys stand in any order: objects are answers,
    else what is neither text nor about it.
    """
    left = {key: value for key, value in row.items() if key not in ABOUT}
    asked = {key: value for key, value in left.items() if is_answer(value)}
    texts = {key: value for key, value in left.items() if isinstance(value, str)}
    text = _longest(texts)
    if not asked:
        asked = {key: value for key, value in texts.items() if value != text}
    person = str(row.get("annotator", ""))
    answers = [Answer(answer_labels(value), key, person) for key, value in asked.items()]
    return Annotated(text, answers, read_id(row, "id"), apart=True)


def _read_argilla(row: dict[str, Any]) -> Annotated:
    """A record of Argilla: its fields, and the submitted responses to its questions."""
    responses = row.get("responses") or []
    answers = [
        Answer(answer_labels(value), name, _person(one))
        for name, value, one in (
            _of_questions(responses) if isinstance(responses, dict) else _of_people(responses)
        )
        if one.get("status", "submitted") == "submitted"
    ]
    if not answers:
        raise PassedOver("records without a submitted response")
    return Annotated(_longest(row["fields"]), answers, read_id(row, "id"))


def _of_questions(responses: Mapping[str, Any]) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    yield from ((name, one.get("value"), one) for name, parts in responses.items() for one in parts)


def _of_people(responses: Sequence[Any]) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    yield from (
        (name, value, one) for one in responses for name, value in (one.get("values") or {}).items()
    )


def _read_flat_argilla(row: dict[str, Any]) -> Annotated:
    """A record of Argilla in columns: `topics.responses` beside `topics.responses.users` and
    `.status`.
    """
    answers = []
    for key in [key for key in row if key.endswith(".responses")]:
        given = row[key] or []
        people = row.get(f"{key}.users") or [""] * len(given)
        states = row.get(f"{key}.status") or ["submitted"] * len(given)
        answers += [
            Answer(answer_labels(value), key.removesuffix(".responses"), str(person))
            for value, person, state in zip(given, people, states, strict=True)
            if state == "submitted"
        ]
    if not answers:
        raise PassedOver("records without a submitted response")
    texts = {key: value for key, value in row.items() if key not in ABOUT and "." not in key}
    return Annotated(_longest(texts), answers, read_id(row, "id"))


def _read_prodigy(row: dict[str, Any]) -> Annotated:
    """An example of Prodigy; who rejects its one label says that the text does not have it."""
    answer = row.get("answer", "accept")
    single = "accept" not in row and isinstance(row.get("label"), str)
    if answer != "accept" and not (answer == "reject" and single):
        raise PassedOver(f"examples whose answer is {answer}")
    labels = _list_chosen(row)
    person = str(row.get("_annotator_id") or row.get("_session_id") or "")
    said = (
        Answer(labels, person=person)
        if answer == "accept"
        else Answer([], person=person, rejected=labels)
    )
    return Annotated(row["text"], [said], titles=_name_options(row), apart=True)


def _list_chosen(row: dict[str, Any]) -> list[str]:
    """The options that were chosen, the one label, or those of spans."""
    spans = [span["label"] for span in row.get("spans") or () if "label" in span]
    if "accept" in row:
        return [str(label) for label in row["accept"]]
    return [row["label"]] if "label" in row else spans


def _name_options(row: dict[str, Any]) -> dict[str, str | None]:
    """The texts of options by their ids; nothing where they are the ids."""
    texts = {str(one["id"]): str(one.get("text") or "") or None for one in row.get("options") or ()}
    return {} if texts == {key: key for key in texts} else texts


def _read_doccano(row: dict[str, Any], labels: str, text: str) -> Annotated:
    """Labels of the document, or of its spans; objects of doccano name who gave them."""
    given = row[labels] or (row.get("entities") if labels == "cats" else None) or []
    people = [one for one in given if isinstance(one, dict) and "user" in one]
    answers = [Answer(answer_labels(one), person=_person(one)) for one in people]
    whole = Answer(list(dict.fromkeys(answer_labels(given))))
    return Annotated(row[text], answers or [whole], read_id(row, "id"))


def _longest(data: Mapping[str, Any]) -> str:
    """The text among the fields of a task: `text`, else the longest."""
    if isinstance(data.get("text"), str):
        return str(data["text"])
    texts = [value for value in data.values() if isinstance(value, str)]
    if not texts:
        raise ValueError("no text")
    return max(texts, key=len)


def _has(*keys: str, **kinds: type) -> Callable[[dict[str, Any]], bool]:
    return lambda row: (
        all(key in row for key in keys)
        and all(isinstance(row.get(key), kind) for key, kind in kinds.items())
    )


def _one(labels: Sequence[str], text: str, doc_id: str | None = None) -> Annotated:
    return Annotated(text, [Answer(labels)], doc_id)


# who writes it, whether an object has this shape, and the document in it; the first that fits
# counts
_SHAPES: Sequence[
    tuple[str, Callable[[dict[str, Any]], object], Callable[[dict[str, Any]], Annotated]]
] = (
    (
        "BioASQ",
        _has("abstractText", meshMajor=list),
        lambda row: _one(
            row["meshMajor"],
            "\n".join(filter(None, (row.get("title"), row["abstractText"]))),
            read_id(row, "pmid"),
        ),
    ),
    ("Label Studio", _has(data=dict, annotations=list), _read_task),
    ("Label Studio (older)", _has(data=dict, completions=list), _read_task),
    ("Label Studio's JSON-MIN", _has("id", "annotation_id", "annotator"), _read_flat_task),
    ("Argilla", _has("responses", fields=dict), _read_argilla),
    (
        "Argilla",
        lambda row: any(f"{key}.status" in row for key in row if key.endswith(".responses")),
        _read_flat_argilla,
    ),
    (
        "Prodigy",
        lambda row: "text" in row and ("answer" in row or isinstance(row.get("accept"), list)),
        _read_prodigy,
    ),
    (
        "spaCy",
        _has("text", cats=dict),
        lambda row: _one(
            [name for name, value in row["cats"].items() if value >= _CHOSEN], row["text"]
        ),
    ),
    (
        "Argilla",
        _has("text", "annotation", "annotation_agent"),
        lambda row: _one(answer_labels(row["annotation"]), row["text"], read_id(row, "id")),
    ),
    (
        "Vertex AI",
        _has(textContent=str, classificationAnnotations=list),
        lambda row: _one(
            [one["displayName"] for one in row["classificationAnnotations"]], row["textContent"]
        ),
    ),
    *(
        (
            "doccano",
            _has(**{text: str, labels: list}),
            partial(_read_doccano, labels=labels, text=text),
        )
        for labels in ("label", "cats", "entities", "annotations")
        for text in ("text", "data")
    ),
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


def _read_annotated(value: Any) -> Annotated:
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


@dataclass
class _Rule:
    """Which answers are the labels of a document; what was joined is counted."""

    question: str | None = None
    annotators: str = "any"
    names: Mapping[str, str] = field(default_factory=dict)  # of labels that are numbers
    tasks: dict[tuple[str | None, int], list[Answer]] = field(default_factory=dict)
    several: int = 0  # documents that several people answered
    differing: int = 0  # those of them where their labels differ
    records: int = 0  # of tasks that may stand in several
    rejecting: int = 0  # documents with a label that was rejected
    contradicted: int = 0  # those of them where it was also accepted

    def gather(self, records: Iterable[Numbered]) -> None:
        """Bring together the answers to tasks that stand in several records."""
        for _, record in records:
            with suppress(*_NO_TASK):
                found = _read_annotated(json.loads(record))
                if found.apart:
                    self.records += 1
                    self.tasks.setdefault(found.task, []).extend(found.answers)

    def apply(self, found: Annotated) -> Line | None:
        """The document with its labels; None for a task that was read before."""
        answers = self._take_answers(found)
        if not answers:
            return None
        one_person = self.annotators not in ("any", "majority")
        if one_person:
            answers = [answer for answer in answers if answer.person == self.annotators]
        people = self._list_labels(answers)
        if one_person and not people:
            raise PassedOver(f"documents that {self.annotators} did not annotate")
        self.several += len(people) > 1
        self.differing += len({frozenset(own) for own in people.values()}) > 1
        counts = Counter(label for own in people.values() for label in own)
        least = len(people) / 2 if self.annotators == "majority" else 0
        labels = [label for label, count in counts.items() if count > least]
        rejected = {self.names.get(label, label) for one in answers for label in one.rejected}
        self.rejecting += bool(rejected)
        self.contradicted += bool(rejected.intersection(labels))
        return Line(labels, found.text, found.id, titles=found.titles)

    def _take_answers(self, found: Annotated) -> Sequence[Answer]:
        """The answers to a task, wherever they stand; none when they are asked for again."""
        if not found.apart:
            return found.answers
        answers = self.tasks.get(found.task, found.answers)
        if found.task in self.tasks:
            self.tasks[found.task] = []
        return answers

    def _list_labels(self, answers: Iterable[Answer]) -> dict[str, dict[str, None]]:
        """The labels that each person gave in answer to the question, by name, in their order."""
        people: dict[str, dict[str, None]] = {}
        for answer in answers:
            if self.question in (None, answer.question):
                named = (self.names.get(label, label) for label in answer.labels)
                people.setdefault(answer.person, {}).update(dict.fromkeys(named))
        return people

    def parse(self, record: str, first: str) -> Line | None:
        """A record as a document."""
        return self.apply(read_json_line(record, "an annotated text", _read_annotated))

    def remarks(self, where: str) -> list[str]:
        """What was joined, and how."""
        said = []
        if self.records > len(self.tasks):
            said.append(
                f"{self.records:,} records hold {len(self.tasks):,} documents: answers to one "
                "text are joined"
            )
        if self.rejecting:
            said.append(
                f"{self.rejecting:,} documents have a label that was rejected, which they do not "
                f"get; on {self.contradicted:,} of them it was also accepted, which counts"
            )
        if self.several:
            how = "by more than half of them" if self.annotators == "majority" else "by any of them"
            said.append(
                f"{self.several:,} documents have answers of several people, who differ on "
                f"{self.differing:,}: "
                f"labels are those given {how} (--annotators any, majority or a NAME)"
            )
        return [f"{where}: {line}" for line in said]


@dataclass(frozen=True)
class AnnotationFormat(RecordFormat):
    """JSON of annotation tools."""

    def recognise(self, data: DataSection) -> str | None:
        """Whose objects these are, and the labels of the first document by name."""
        names = {} if data.path is None else _find_names(Path(data.path))[0]
        return RecordFormat.recognise(replace(self, parse=_Rule(names=names).parse), data)

    def load(self, data: DataSection, options: Any) -> Dataset:
        """Read a file, or the files of a folder; one question of them, and the answers of those
        who count.
        """
        found = list(_sample(data))
        path = Path(str(data.path))
        numbered = _are_numbered(found)
        names, file = _find_names(path) if numbered else ({}, None)
        rule = _Rule(_choose_question(found, data), data.annotators, names)
        _require_people(found, data)
        if any(one.apart for one in found):
            for part in find_parts(path, self.accepts).values():
                with suppress(Fault):  # told when it is read for its documents
                    rule.gather(self.cut(read_lines(part, BadRows(), data.encoding)))
        dataset = RecordFormat.load(replace(self, parse=rule.parse), data, options)
        said = [f"labels are numbers: their names are those of {file}"] if file else []
        if numbered and file is None:
            said = [
                f"{path}: labels are numbers; a file label_config.json beside it (id and text of "
                "each label) names them"
            ]
        files = [*dataset.files, *([str(file)] if file else [])]
        remarks = [*dataset.remarks, *said, *rule.remarks(str(path))]
        return replace(dataset, files=files, remarks=remarks)


def _are_numbered(found: Sequence[Annotated]) -> bool:
    """Whether labels are numbers, some of which the documents do not name."""
    labels = {label for one in found for answer in one.answers for label in answer.labels}
    titled = {label for one in found for label, title in one.titles.items() if title}
    return bool(labels - titled) and all(map(str.isdecimal, labels))


def _sample(data: DataSection) -> Iterator[Annotated]:
    """The documents among the first lines of a corpus."""
    example = find_example(data, lambda path: bool(_name_shape(first_lines(path, HEAD_LINES))))
    lines = [] if example is None else first_lines(example, HEAD_LINES)
    with suppress(Fault):
        for _, record in islice(json_objects(enumerate(lines, start=1)), HEAD_LINES):
            with suppress(*_NO_TASK):
                yield _read_annotated(json.loads(record))


def _choose_question(found: Sequence[Annotated], data: DataSection) -> str | None:
    """The question whose answers are the labels: the one that is asked for, or the only one."""
    questions: dict[str, dict[str, None]] = {}
    for answer in (answer for one in found for answer in one.answers if answer.labels):
        questions.setdefault(answer.question, {}).update(dict.fromkeys(answer.labels))
    if data.question in questions or (data.question is None and len(questions) < 2):
        return data.question
    listed = "; ".join(
        f"{name or 'without a name'} ({', '.join(list(labels)[:_SHOWN])})"
        for name, labels in questions.items()
    )
    what = (
        f"the file has answers to {len(questions)} questions: {listed}"
        if data.question is None
        else f"the file has no question '{data.question}'"
    )
    raise DataError(
        what,
        where=str(data.path),
        expected="one question whose answers are the labels"
        if data.question is None
        else f"one of its questions: {listed or 'it has none'}",
        todo="name it: " + " or ".join(f"--question {name}" for name in list(questions)[:_SHOWN]),
    )


def _require_people(found: Sequence[Annotated], data: DataSection) -> None:
    """`DataError` where people are chosen of a file that names nobody."""
    named = any(answer.person for one in found for answer in one.answers)
    if data.annotators != "any" and found and not named:
        raise unknown_person(data, str(data.path), [])


def unknown_person(data: DataSection, where: str, people: Sequence[str]) -> DataError:
    """The error on people who did not answer."""
    listed = ", ".join(people[:_SHOWN]) + (", …" if len(people) > _SHOWN else "")
    return DataError(
        f"nobody called '{data.annotators}' answered"
        if people
        else "the answers do not say who gave them",
        where=f"{where}, --annotators {data.annotators}",
        expected=f"any, majority or one of {listed}" if people else "answers of named people",
        todo="name one of them" if people else "leave --annotators out",
    )


def _find_names(path: Path) -> tuple[dict[str, str], Path | None]:
    """The names of numbered labels, from the file that the tool writes for them."""
    folder = path if path.is_dir() else path.parent
    stem = path.name.partition(".")[0]
    for name in (
        f"{stem}.label_config.json",
        f"{stem}.labels.json",
        "label_config.json",
        "labels.json",
    ):
        with suppress(OSError, ValueError, TypeError, AttributeError):
            rows = json.loads((folder / name).read_text("utf-8"))
            found = {str(row["id"]): str(row.get("text") or row["name"]) for row in rows}
            return found, folder / name
    return {}, None


ANNOTATIONS = AnnotationFormat(
    "JSON of an annotation tool",
    _Rule().parse,
    '{"text": …, "label": ["a", "b"]}, or as the tool writes it',
    **known_by(_name_shape),
    cut=json_objects,
    has_columns=True,
)
