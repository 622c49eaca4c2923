"""Cards of the named corpora."""

from plant_datasets.corpora.cards import CARDS


def test_known_versions_differ_in_their_counts() -> None:
    for name, card in CARDS.items():
        counts = [tuple(sorted(variant.items())) for variant in card.variants.values()]
        assert len(set(counts)) == len(counts), name
        assert all(number > 0 for variant in card.variants.values() for number in variant.values())
        assert {key for variant in card.variants.values() for key in variant} <= {"train", "validation", "test", "labels"}
    assert CARDS["eurlex-4k"].variants["as the XML repository has it"] == {"train": 15_539, "test": 3_809, "labels": 3_993}
