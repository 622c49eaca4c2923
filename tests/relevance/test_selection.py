import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.relevance.engine import AbsentWords, best_of_rows, commonest_absent, contenders

VALUES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, -np.inf]), max_size=20)


@given(rows=st.lists(VALUES, min_size=1, max_size=5), k=st.integers(1, 25), floor=st.sampled_from([0.0, -np.inf]))
def test_equals_a_full_sort_of_each_row(rows: list[list[float]], k: int, floor: float) -> None:
    words = [np.random.default_rng(i).permutation(len(row)) for i, row in enumerate(rows)]
    ends = np.cumsum([0, *map(len, rows)])
    positions, offsets = best_of_rows(ends, np.concatenate(rows).astype(np.float64), np.concatenate(words), k, floor)
    for i, row in enumerate(rows):
        expected = [j for j in sorted(range(len(row)), key=lambda j: (-row[j], words[i][j]))[:k] if row[j] > floor]
        assert (positions[offsets[i] : offsets[i + 1]] - ends[i]).tolist() == expected


def test_the_tie_at_the_last_place_goes_to_the_smaller_index() -> None:
    positions, _ = best_of_rows(np.array([0, 4]), np.array([1.0, 2.0, 1.0, 1.0]), np.array([9, 4, 3, 7]), 3, 0.0)
    assert positions.tolist() == [1, 2, 3]


@given(data=st.data(), k=st.integers(1, 8))
def test_the_best_absent_words_are_found(data: st.DataObject, k: int) -> None:
    """Exactly the k best above 0, ties in the order of the words; never a word that meets the label."""
    frequency = np.sort(np.array(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=15))))[::-1]
    absent = AbsentWords(frequency)
    values = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.0]), min_size=5, max_size=5)))[: len(absent.frequencies)]
    met = np.array(sorted(data.draw(st.sets(st.integers(0, len(frequency) - 1)))), dtype=np.int32)
    value_of = values[[absent.frequencies.tolist().index(n) for n in frequency]]
    admissible = [w for w in range(len(frequency)) if w not in met and value_of[w] > 0]
    assert absent.find(values, met, k).tolist() == sorted(admissible, key=lambda w: (-value_of[w], w))[:k]


@given(data=st.data(), k=st.integers(1, 4), common=st.booleans())
def test_what_contends_holds_the_best_of_every_valley(data: st.DataObject, k: int, common: bool) -> None:
    """Whatever values fall (and rise again) with the frequency, ties included: the best are among those that are left to score."""
    frequency = np.sort(np.array(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=14))))[::-1]
    first = np.searchsorted(-frequency, -frequency)
    rows = [data.draw(st.permutations(range(len(frequency)))) for _ in range(3)]
    words = np.array([word for row in rows for word in row], dtype=np.int32)
    both = np.array(data.draw(st.lists(st.integers(1, 2), min_size=len(words), max_size=len(words))), dtype=np.int32)
    ends = np.cumsum([0, *map(len, rows)])
    left = contenders(ends, words, both, first, k, common=common)
    assert set(np.flatnonzero(both > 1)) <= set(left)
    lowest = data.draw(st.integers(1, 9)) if common else 10
    values = np.abs(frequency[words] - lowest + 0.25) + 10.0 * (both > 1)
    chosen, offsets = best_of_rows(ends, values, words, k, -np.inf)
    again, same = best_of_rows(np.searchsorted(left, ends), values[left], words[left], k, -np.inf)
    assert left[again].tolist() == chosen.tolist()
    assert same.tolist() == offsets.tolist()


@given(met=st.lists(st.integers(0, 11), unique=True), k=st.integers(1, 14))
def test_the_commonest_absent_words_are_those_of_the_smallest_index(met: list[int], k: int) -> None:
    found = commonest_absent(np.array(met, dtype=np.int32), k, 12)
    assert found.tolist() == [word for word in range(12) if word not in met][:k]
