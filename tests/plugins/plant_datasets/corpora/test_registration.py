"""The corpora that are registered by name."""

from plant_datasets.corpora.registration import CORPORA


def test_each_has_a_card_that_says_where_to_get_it_and_options_that_are_valid() -> None:
    assert len(CORPORA) == 10
    for spec in CORPORA:
        assert spec.card is not None
        assert all((spec.card.title, spec.card.licence, spec.card.citation, spec.card.source, spec.card.files)), spec.name
        assert spec.write is None
        spec.options()


def test_specs_with_cards_can_be_keys() -> None:
    assert len({spec: spec.name for spec in CORPORA}) == len(CORPORA)  # the conformance checks keep what they loaded by spec
