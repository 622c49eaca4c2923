import threading
from collections.abc import Iterator

import numpy as np
import pytest

from plant_cli.data.blocks import cut_blocks, work_ahead


def test_blocks_hold_as_much_as_surely_fits_and_at_least_one_label() -> None:
    assert cut_blocks(np.array([3, 3, 3, 20, 1, 1]), 7) == [0, 2, 3, 4, 6]
    assert cut_blocks(np.array([3, 3]), 100, 0) == [0, 1, 2]
    assert cut_blocks(np.array([], dtype=np.int64), 5) == [0]


def test_results_come_in_order_and_never_pile_up() -> None:
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        for i in range(50):
            taken.append(i)
            yield i

    for place, made in enumerate(work_ahead(lambda i: i * i, numbers(), jobs=2)):
        assert made == place**2
        assert len(taken) <= place + 5


def test_a_failure_is_raised_and_the_threads_end() -> None:
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        list(work_ahead(lambda i: 1 // (3 - i), range(100), jobs=2))
    assert threading.active_count() == before
