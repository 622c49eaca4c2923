"""The corpora of MIMIC that are registered."""

from plant_datasets.mimic.registration import MIMIC


def test_seven_corpora_with_their_licence() -> None:
    assert [spec.name for spec in MIMIC] == [
        "mimic3-full", "mimic3-top50", "mimic3-clean", "mimic3-rare50", "mimic3-few", "mimic4-icd10", "mimic4-icd9",
    ]  # fmt: skip
    assert all(spec.card is not None and "PhysioNet" in spec.card.licence for spec in MIMIC)
