"""Marks of seeds in tags: written, read back, and told from other tags."""

import pytest

from plant_cli.runs.repetition import mark_seed, split_seed


@pytest.mark.parametrize("tag", [None, "baseline", "random-attention"])
@pytest.mark.parametrize("seed", [0, 12])
def test_a_mark_is_read_back(tag, seed):
    assert split_seed(mark_seed(tag, seed)) == (tag, seed)


@pytest.mark.parametrize("tag", [None, "seeds3", "seedling", "seed", "baseline", "birdseed1", "seed1-b"])
def test_other_tags_carry_no_seed(tag):
    assert split_seed(tag) == (tag, None)
