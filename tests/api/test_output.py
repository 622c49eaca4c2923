"""Tables have a cell for each column."""

from __future__ import annotations

import pytest

from plant_cli.api import Column, Table


def test_a_row_of_another_length_is_refused() -> None:
    columns = [Column(name="label"), Column(name="documents")]
    assert Table(title="Labels", columns=columns, rows=[("A", 1)]).rows == [("A", 1)]
    with pytest.raises(ValueError, match="row 2 of the table 'Labels' has 1 cells for 2 columns"):
        Table(title="Labels", columns=columns, rows=[("A", 1), ("B",)])
