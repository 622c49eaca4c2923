from __future__ import annotations

from random import Random

from plant_datasets.synthetic_clinic.codes import Code
from plant_datasets.synthetic_clinic.vocabulary import CONDITIONS, ORGANS, QUALIFIERS
from plant_datasets.synthetic_clinic.wording import abbreviate, misspell, name_drug, phrase

KIDNEY_FAILURE = Code("C06.1", ORGANS[2], CONDITIONS[5], QUALIFIERS[1])


def test_a_code_has_many_wordings() -> None:
    rng = Random(0)
    wordings = {phrase(KIDNEY_FAILURE, rng) for _ in range(300)}
    assert len(wordings) > 30
    assert {"acute renal failure", "new kidney insufficiency", "Dalford's disease of sudden onset"} <= wordings


def test_initials_drug_and_title() -> None:
    assert abbreviate(KIDNEY_FAILURE) == "ARF"
    assert name_drug(KIDNEY_FAILURE) == "nefropril"
    assert KIDNEY_FAILURE.title == "Failure of kidney, acute"


def test_slips_are_rare_and_touch_only_longer_words() -> None:
    rng = Random(0)
    assert all(misspell("heart", rng) == "heart" for _ in range(1000))
    slips = [word for word in (misspell("stenosis", rng) for _ in range(5000)) if word != "stenosis"]
    assert 100 < len(slips) < 300
    assert all(word[0] == "s" and 7 <= len(word) <= 9 for word in slips)
