"""Codes come in families, without repetition, and follow the seed."""

from random import Random

from plant_datasets.synthetic_clinic.codes import choose_codes, weigh


def test_codes_are_distinct_and_follow_the_seed() -> None:
    codes = choose_codes(200, Random(1))
    assert len({code.id for code in codes}) == 200
    assert [code.id for code in codes] == [code.id for code in choose_codes(200, Random(1))]
    assert [code.id for code in codes] != [code.id for code in choose_codes(200, Random(2))]


def test_members_of_a_family_share_organ_and_condition() -> None:
    first = choose_codes(50, Random(0))
    for code in first:
        kin = [other for other in first if other.family == code.family]
        assert {(other.organ, other.condition) for other in kin} == {(code.organ, code.condition)}
        assert code.title.startswith(code.condition.nouns[0].capitalize())


def test_the_head_is_frequent_and_the_tail_long() -> None:
    weights = weigh(300)
    assert weights == sorted(weights, reverse=True)
    assert weights[0] / weights[-1] > 50
