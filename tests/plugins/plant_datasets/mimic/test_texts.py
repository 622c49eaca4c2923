"""How texts are prepared."""

import pytest
from plant_datasets.mimic.texts import Cleaning, clean

TEXT = "Seen by [**Name 1**] on 12 34 mg; 250mg_x ___.\nOK"


@pytest.mark.parametrize(
    ("how", "prepared"),
    [
        ("e23", "seen by name on mg 250mg x ok"),
        ("caml", "seen by name on mg 250mg_x ___ ok"),
        ("alpha", "seen by on ok"),
        ("none", TEXT),
    ],
)
def test_variants(how: Cleaning, prepared: str) -> None:
    assert clean(TEXT, how) == prepared


def test_numbers_at_the_ends_stay_as_in_the_published_code() -> None:
    assert clean("12 a 3 b 45", "e23") == "12 a b 45"


def test_masking() -> None:
    assert clean(TEXT, "e23", mask=True) == "seen by on mg 250mg x ok"
