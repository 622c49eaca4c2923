from __future__ import annotations

from random import Random

from plant_datasets.synthetic_clinic.codes import choose_codes
from plant_datasets.synthetic_clinic.notes import Note, write_note
from plant_datasets.synthetic_clinic.templates import AFFIRMED, FILLER, TEMPLATES


def test_a_mention_keeps_its_place() -> None:
    note = Note()
    note.head("Findings")
    note.add("Nothing else.", Random(0))
    note.add("{m} is seen.", Random(0), "renal failure", "C06.0")
    assert note.text == "Findings\nNothing else. Renal failure is seen. "
    assert [note.text[span.start : span.end] for span in note.spans] == ["Renal failure"]


def test_only_the_own_labels_have_spans_and_each_has_one() -> None:
    rng = Random(1)
    codes = choose_codes(60, rng)
    for _ in range(50):
        own, others = codes[:4], codes[10:14]
        spans = write_note(own, others, rng).spans
        assert {span.label for span in spans} == {code.id for code in own}


def test_every_section_of_a_template_can_be_filled() -> None:
    kinds = {section.kind for sections in TEMPLATES.values() for section in sections}
    assert kinds == set(FILLER)
    assert set(AFFIRMED) <= kinds
    assert all("{m}" in pattern for patterns in AFFIRMED.values() for pattern in patterns)
