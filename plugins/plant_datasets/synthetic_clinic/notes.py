"""Writing one note: what is so, what is not, what relatives have, and where in the text each label is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from plant_datasets.synthetic_clinic.codes import Code
from plant_datasets.synthetic_clinic.templates import AFFIRMED, FILLER, NEGATED, PRESCRIBED, RELATIVES, TEMPLATES, Section
from plant_datasets.synthetic_clinic.wording import abbreviate, name_drug, phrase

TWICE = 0.35  # of the codes are mentioned again, often by their initials
PRESCRIPTION = 0.5  # of the codes of a note show in its medication


@dataclass(frozen=True)
class Span:
    """Where a label is said; offsets in characters, end exclusive."""

    label: str
    start: int
    end: int


@dataclass
class Note:
    """Text under construction, which keeps the places of the mentions."""

    text: str = ""
    spans: list[Span] = field(default_factory=list)

    def add(self, pattern: str, rng: Random, mention: str = "", label: str | None = None) -> None:
        """Append a sentence, with the mention in its place; the place is kept if a label is given."""
        pattern = pattern.replace("{n}", str(rng.randint(2, 30)))
        before, place, after = pattern.partition("{m}")
        if not before:
            mention = mention[:1].upper() + mention[1:]
        start = len(self.text) + len(before)
        self.text += before + (mention if place else "") + after + " "
        if label is not None:
            self.spans.append(Span(label, start, start + len(mention)))

    def head(self, heading: str) -> None:
        """Begin a section."""
        self.text = self.text.rstrip() + ("\n\n" if self.text else "") + heading + "\n"


def write_note(labels: Sequence[Code], others: Sequence[Code], rng: Random) -> Note:
    """A note about a patient who has `labels` and none of `others`, which are denied or belong to relatives."""
    title = rng.choice(tuple(TEMPLATES))
    sections = TEMPLATES[title]
    note = Note()
    note.head(f"{title}, {rng.choice(('female', 'male'))}, {rng.randint(18, 94)} years")
    affirmed = _place_mentions(labels, [section for section in sections if section.kind in AFFIRMED], rng)
    relatives = others[: rng.randint(0, 2)]
    denied = others[len(relatives) :]
    for section in sections:
        note.head(rng.choice(section.headings))
        for pattern, mention, label in _compose(section, affirmed, denied, relatives, labels, rng):
            note.add(pattern, rng, mention, label)
    note.text = note.text.rstrip(" ")
    return note


Sentence = tuple[str, str, str | None]  # pattern, mention, label


def _place_mentions(labels: Sequence[Code], sections: Sequence[Section], rng: Random) -> dict[str, list[Sentence]]:
    """Sentences that say the labels, by kind of section: each once in full, some once more in a later section."""
    placed: dict[str, list[Sentence]] = {section.kind: [] for section in sections}
    for code in labels:
        first = rng.randrange(len(sections))
        placed[sections[first].kind].append((rng.choice(AFFIRMED[sections[first].kind]), phrase(code, rng), code.id))
        if first + 1 < len(sections) and rng.random() < TWICE:
            later = sections[rng.randrange(first + 1, len(sections))].kind
            again = abbreviate(code) if rng.random() < 0.5 else phrase(code, rng)
            placed[later].append((rng.choice(AFFIRMED[later]), again, code.id))
    return placed


def _compose(
    section: Section,
    affirmed: dict[str, list[Sentence]],
    denied: Sequence[Code],
    relatives: Sequence[Code],
    labels: Sequence[Code],
    rng: Random,
) -> list[Sentence]:
    """The sentences of a section, in any order."""
    sentences = list(affirmed.get(section.kind, ()))
    fillers = FILLER[section.kind]
    sentences += [(pattern, "", None) for pattern in rng.sample(fillers, rng.randint(1, min(3, len(fillers))))]
    if section.kind == "findings":
        sentences += [(rng.choice(NEGATED), phrase(code, rng), None) for code in denied]
    elif section.kind == "family":
        sentences += [(rng.choice(RELATIVES), phrase(code, rng), None) for code in relatives]
    elif section.kind == "medication":
        drugs = [name_drug(code) for code in labels if rng.random() < PRESCRIPTION] + [
            name_drug(code) for code in denied[:1] if rng.random() < PRESCRIPTION
        ]
        sentences += [(rng.choice(PRESCRIBED).replace("{d}", drug.capitalize()), "", None) for drug in drugs]
    rng.shuffle(sentences)
    return sentences
