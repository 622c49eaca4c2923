"""What clients send and get, as OpenAPI describes it."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)


def _require_characters(text: str) -> str:
    r"""Refuse halves of characters, which JSON can write (`\ud800`) and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("the text has half a character (a lone surrogate)") from None
    return text


Words = Annotated[str, AfterValidator(_require_characters)]
MOST_TEXTS, MOST_LABELS, MOST_PAIRS, MOST_EXPLAINED = 1000, 1000, 100_000, 100
NAME_BYTES = 200  # bytes of a file's name
MOST_DECISIONS = 10_000  # of all documents of a request
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
LabelName = Annotated[Words, Field(min_length=1, max_length=2000)]
Said = Annotated[
    Literal["accept", "reject", "withdraw"],
    Field(description="`withdraw` takes back what this person decided on the label before."),
]


class Body(BaseModel):
    """What a client sends: nothing is converted, and unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Reply(BaseModel):
    """What a client gets."""


class SuggestBody(Body):
    """Texts to label."""

    model: str | None = Field(None, description="The id of a model; by default the first one.")
    texts: list[Words] | None = Field(None, min_length=1, max_length=MOST_TEXTS)
    text: Words | None = Field(None, description="One text, instead of `texts`.")
    limit: int = Field(20, ge=1, le=MOST_LABELS, description="Labels of each text, at most.")
    threshold: Probability = Field(0.0, description="Lowest score of a label.")

    @model_validator(mode="after")
    def _has_texts(self) -> SuggestBody:
        if (self.text is None) == (self.texts is None):
            raise ValueError("either text or texts is needed")
        if len(self.chosen) * self.limit > MOST_PAIRS:
            raise ValueError(f"texts times limit may be {MOST_PAIRS:,} at most")
        return self

    @property
    def chosen(self) -> list[str]:
        """The texts."""
        return [self.text] if self.text is not None else self.texts or []


class SuggestedLabel(Reply):
    """A label that is suggested for a text."""

    label: str
    title: str | None
    score: float = Field(description="Its probability, calibrated.")
    threshold: float | None = Field(description="The score from which it is assigned; null: never.")
    band: Literal["assign", "review", "reject"]


class TextSuggestions(Reply):
    """The labels of a text, best first."""

    suggestions: list[SuggestedLabel]
    note: str | None = Field(
        None, description="Why there are none, or why they are not to be trusted."
    )


class SuggestReply(Reply):
    """The labels of all texts, in their order."""

    model: str
    results: list[TextSuggestions]


class ExplainBody(Body):
    """A text, and the labels whose scores are to be explained."""

    model: str | None = None
    text: Words
    labels: list[LabelName] = Field(min_length=1, max_length=MOST_EXPLAINED)


class WordWeight(Reply):
    """A word of the text: where it is, in characters (code points), and what it adds to the
    log-odds.
    """

    start: int
    end: int
    weight: float


class PartReply(Reply):
    """What one part of the model adds to the log-odds of a label."""

    name: str
    log_odds: float
    note: str
    words: list[WordWeight]


class ExplanationReply(Reply):
    """Why a label has its score: `log_odds` is `base` and what all parts add."""

    label: str
    title: str | None
    score: float
    threshold: float | None = Field(description="The score from which it is assigned; null: never.")
    log_odds: float
    base: float
    parts: list[PartReply]


class ExplainReply(Reply):
    """The explanations, in the order of the labels."""

    model: str
    explanations: list[ExplanationReply]


class ModelReply(Reply):
    """A model."""

    id: str
    title: str
    labels: int
    documents: int = Field(description="Documents that it was trained on.")
    parts: list[str]
    target: str = Field(description="What labels are assigned for, such as precision=0.8.")
    right: float | None = Field(
        description="The share of assigned labels that was right on documents that did not choose "
        "the thresholds; null where none is assigned, or it was not measured."
    )
    recall: float | None = Field(
        description="The share of all right labels that was assigned or reviewed there; null where "
        "it was not measured."
    )
    network: bool


class LabelReply(Reply):
    """A label of a model."""

    label: str
    title: str | None
    documents: int = Field(description="Training documents that have it.")


class Decided(Body):
    """What a person decided on a label."""

    label: LabelName
    decision: Said
    score: Probability | None = Field(
        None, description="As it was suggested; left out for a label that a person added."
    )


class DocumentBody(Body):
    """A document."""

    id: Words | None = Field(
        None, min_length=1, max_length=500, description="By default a hash of the text."
    )
    text: Words


class FeedbackBody(Body):
    """Decisions on the labels of a document."""

    model: str | None = None
    document: DocumentBody
    who: Words | None = Field(None, max_length=200)
    decisions: list[Decided] = Field(min_length=1, max_length=MOST_LABELS)

    @model_validator(mode="after")
    def _decides_once(self) -> FeedbackBody:
        if len({one.label for one in self.decisions}) < len(self.decisions):
            raise ValueError("a label is decided on twice")
        return self


class FeedbackReply(Reply):
    """What was stored."""

    stored: int
    unknown: list[str] = Field(
        [],
        description="Labels that the model does not have; the decisions on them were stored, too.",
    )


class ProposalBody(Body):
    """A heading that the vocabulary lacks, for the text that needs it."""

    model: str | None = None
    document: DocumentBody
    who: Words | None = Field(None, max_length=200)
    name: Annotated[Words, Field(min_length=1, max_length=500, pattern=r"\S")]


class ProposalReply(Reply):
    """The heading as it was stored, for the editors of the vocabulary."""

    proposed: str


def _require_plain_name(name: str) -> str:
    if name.startswith(".") or re.search(r"[/\\\x00-\x1f\x7f]", name):
        raise ValueError("a file is named without a folder, and does not begin with a dot")
    if len(name.encode()) > NAME_BYTES:
        raise ValueError(f"the name has more than {NAME_BYTES} bytes")
    return name


FileName = Annotated[
    Words, Field(min_length=1, max_length=NAME_BYTES), AfterValidator(_require_plain_name)
]


class DroppedFile(Body):
    """A file that was dropped on the page."""

    name: FileName
    content: Words

    @field_validator("content")
    @classmethod
    def _is_text(cls, content: str) -> str:
        if "\0" in content:
            raise ValueError("the file is no text")
        return content


class QueueBody(Body):
    """A table of texts, or several texts, that are to wait for people."""

    files: list[DroppedFile] = Field(min_length=1, max_length=MOST_TEXTS)

    @model_validator(mode="after")
    def _differ(self) -> QueueBody:
        if len({one.name.casefold() for one in self.files}) < len(self.files):
            raise ValueError("two files have the same name")
        return self


class QueueReply(Reply):
    """A queue of documents that wait for people."""

    queue: int = Field(description="Its number.")
    name: str
    order: Literal["doubt", "file"]
    documents: int
    decided: int = Field(description="Documents that no longer wait for this person.")
    conflicts: int = Field(description="Documents on which people disagree.")
    scored: int = Field(description="Documents that the model has looked through for the order.")
    notes: list[str] = Field([], description="What was odd in the files.")


class WaitingReply(Reply):
    """A document of a queue."""

    place: int = Field(description="Its place in the file, from 0.")
    id: str
    heading: str = Field(description="The beginning of the text.")
    people: list[str] = Field(description="Who decided on it.")
    open: bool = Field(description="Whether it waits for this person.")
    conflict: bool = Field(description="Whether people disagree on one of its labels.")


class ListReply(Reply):
    """A part of the list of a queue."""

    found: int = Field(description="Documents that are listed on all its parts together.")
    start: int = Field(description="How many of them come before this part.")
    documents: list[WaitingReply]


class PastReply(Reply):
    """A decision that was stored."""

    label: str
    title: str | None
    decision: Said
    who: str
    time: str


class DocumentReply(Reply):
    """A document of a queue, and its history."""

    place: int
    id: str
    text: str
    history: list[PastReply] = Field(
        description="Decisions, the earliest first; those of others once it waits no longer for "
        "this person."
    )
    conflicts: list[str] = Field(description="Labels on which people disagree.")


class NextReply(Reply):
    """Which document is next."""

    place: int | None = Field(description="null: none waits for this person.")


class HealthReply(Reply):
    """That the server works."""

    status: Literal["ok"]
    models: int


class ErrorParts(Reply):
    """What went wrong."""

    what: str
    where: str
    expected: str
    todo: str


class ErrorReply(Reply):
    """An error."""

    error: ErrorParts
