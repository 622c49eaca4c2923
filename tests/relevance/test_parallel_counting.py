"""Two processes that meet over gloo count what one counts: through the command line, as `accelerate launch` starts it."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from plant_cli.api import ResourceError
from plant_cli.relevance import shards as counting


def test_a_process_that_lost_the_others_while_counting_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("Connection closed by peer [127.0.0.1]:4711")

    monkeypatch.setattr(counting.dist, "get_world_size", lambda: 2)
    monkeypatch.setattr(counting.dist, "all_gather", broken)
    with pytest.raises(ResourceError, match="no longer reaches the others"):
        counting.gather_pairs([("heart", "failure")])


@pytest.mark.slow
def test_two_processes_write_what_one_writes(tmp_path: Path, launch: Callable[..., list[tuple[int, str, str]]]) -> None:
    rows = [("train", f"word{i % 7} word{i % 5} rare{i} both", [f"label{i % 3}"]) for i in range(30)] + [
        ("validation", "word1", ["label1"])
    ]
    pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").write_parquet(tmp_path / "data.parquet")
    command = ["mig", "data.parquet", "--signal", "tf", "--sign", "any", "--min-df", "2"]
    (code, out, error), (other, nothing, _) = launch(2, *command, "--run", "together")
    assert (code, other) == (0, 0), error
    assert "Relevance" in out
    assert not nothing
    ((code, _, error),) = launch(1, *command, "--run", "alone")
    assert code == 0, error
    for name in ("mig", "words", "labels"):
        assert pl.read_parquet(tmp_path / "together" / "mig" / f"{name}.parquet").equals(
            pl.read_parquet(tmp_path / "alone" / "mig" / f"{name}.parquet")
        )
