"""Scorers beside a network: saved and read again, refused where it is damaged or of another label order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plant_cli.api import ArtefactError, Choice
from plant_cli.scoring.fusion import Fusion
from plant_cli.scoring.stored_scorers import FORMER, SCORERS, StoredScorer, StoredScorers, read_scorers, write_scorers


def fusion(sources: int) -> Fusion:
    values = np.random.default_rng(sources).random((sources + 1, 2))
    return Fusion(knots=np.array([1.0, 10.0]), weights=values[:-1], bias=values[-1])


STORED = StoredScorers(
    scorers=(
        StoredScorer(chosen=Choice(name="words", options={"terms": 3}), views=1, tensors={"idf": np.array([1.5, 0.1])}, alone=fusion(1)),
        StoredScorer(chosen=Choice(name="titles"), views=2, tensors={"vectors": np.arange(6).reshape(2, 3)}, alone=fusion(2)),
    ),
    fusion=fusion(3),
    calibration=fusion(4),
    figures={"ECE": 0.1},
)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write_scorers(tmp_path, STORED, "hash", "words")
    found = read_scorers(tmp_path, "hash", "words")
    assert found is not None
    assert found.figures == {"ECE": 0.1}
    for one, other in zip(found.scorers, STORED.scorers, strict=True):
        assert (one.chosen, one.views) == (other.chosen, other.views)
        assert one.tensors.keys() == other.tensors.keys()
        assert all(np.array_equal(one.tensors[name], other.tensors[name]) for name in one.tensors)
        assert np.array_equal(one.alone.weights, other.alone.weights)
    assert found.fusion is not None
    assert np.array_equal(found.fusion.weights, fusion(3).weights)
    assert np.array_equal(found.calibration.bias, fusion(4).bias)


def test_large_tensors_that_several_scorers_have_are_stored_once(tmp_path: Path) -> None:
    vectors, others = np.random.default_rng(0).random((2, 100_000))
    tensors = ({"train": vectors, "size": np.array([3])}, {"0.train": vectors.copy(), "1.train": others, "size": np.array([3])})
    scorers = tuple(
        StoredScorer(chosen=Choice(name=name), views=1, tensors=own, alone=fusion(1))
        for name, own in zip(("linear", "neighbours"), tensors, strict=True)
    )
    write_scorers(tmp_path, StoredScorers(scorers=scorers, fusion=fusion(2), calibration=fusion(1)), "hash", "words")
    sizes = {path.stem: path.stat().st_size for path in (tmp_path / "scorers").iterdir()}
    assert sizes["_shared"] == pytest.approx(vectors.nbytes, rel=0.01)
    assert sizes["linear"] < 1000
    assert sizes["neighbours"] == pytest.approx(others.nbytes, rel=0.01)
    found = read_scorers(tmp_path, "hash", "words")
    assert found is not None
    for one, own in zip(found.scorers, tensors, strict=True):
        assert one.tensors.keys() == own.keys()
        assert all(np.array_equal(one.tensors[name], own[name]) for name in own)
    assert found.scorers[0].tensors["train"] is found.scorers[1].tensors["0.train"]
    (tmp_path / "scorers" / "_shared.safetensors").unlink()
    with pytest.raises(ArtefactError, match="what the scorers share cannot be read"):
        read_scorers(tmp_path, "hash", "words")


def test_equal_bytes_of_another_shape_or_type_are_not_shared(tmp_path: Path) -> None:
    flat = np.zeros(100_000, dtype=np.float32)
    tensors = ({"a": flat}, {"a": flat.reshape(2, -1)}, {"a": flat.view(np.int32)})
    scorers = tuple(
        StoredScorer(chosen=Choice(name=name), views=1, tensors=own, alone=fusion(1)) for name, own in zip("xyz", tensors, strict=True)
    )
    write_scorers(tmp_path, StoredScorers(scorers=scorers, fusion=fusion(3), calibration=fusion(1)), "hash", "words")
    found = read_scorers(tmp_path, "hash", "words")
    assert found is not None
    assert [one.tensors["a"].shape for one in found.scorers] == [(100_000,), (2, 50_000), (100_000,)]
    assert [one.tensors["a"].dtype for one in found.scorers] == [np.float32, np.float32, np.int32]


def test_scorers_of_an_earlier_attempt_are_taken_away(tmp_path: Path) -> None:
    write_scorers(tmp_path, STORED, "hash", "words")
    write_scorers(tmp_path, StoredScorers(scorers=STORED.scorers[:1], fusion=fusion(1), calibration=fusion(1)), "hash", "words")
    assert [path.name for path in (tmp_path / "scorers").iterdir()] == ["words.safetensors"]
    write_scorers(tmp_path, StoredScorers(scorers=(), fusion=None, calibration=fusion(1)), "hash", "words")
    assert not (tmp_path / "scorers").exists()


def test_a_folder_without_the_file_has_nothing(tmp_path: Path) -> None:
    assert read_scorers(tmp_path, "hash", "words") is None


def test_another_label_order_is_refused(tmp_path: Path) -> None:
    write_scorers(tmp_path, STORED, "hash", "words")
    with pytest.raises(ArtefactError, match="another label order"):
        read_scorers(tmp_path, "other", "words")
    content = json.loads((tmp_path / SCORERS).read_text())
    (tmp_path / SCORERS).write_text(json.dumps({**content, "label_hash": "other"}))
    with pytest.raises(ArtefactError, match="the scorer 'words' was made for another label order"):
        read_scorers(tmp_path, "other", "words")


def test_words_that_are_found_otherwise_are_refused(tmp_path: Path) -> None:
    write_scorers(tmp_path, STORED, "hash", "words")
    with pytest.raises(ArtefactError, match="found otherwise"):
        read_scorers(tmp_path, "hash", "lemmas")


def test_a_missing_scorer_is_named(tmp_path: Path) -> None:
    write_scorers(tmp_path, STORED, "hash", "words")
    (tmp_path / "scorers" / "titles.safetensors").unlink()
    with pytest.raises(ArtefactError, match="the scorer 'titles' cannot be read"):
        read_scorers(tmp_path, "hash", "words")


@pytest.mark.parametrize("change", [{"fusion": 3}, {"calibration": None}, {"scorers": [{"name": "../words"}]}, {"figures": ...}])
def test_damaged_weights_and_paths_that_leave_the_folder_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    write_scorers(tmp_path, STORED, "hash", "words")
    content = {**json.loads((tmp_path / SCORERS).read_text()), **change}
    (tmp_path / SCORERS).write_text(json.dumps({name: value for name, value in content.items() if value is not ...}))
    with pytest.raises(ArtefactError, match="weights of the scorers are damaged"):
        read_scorers(tmp_path, "hash", "words")


def test_a_model_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / FORMER).write_bytes(b"")
    with pytest.raises(ArtefactError, match="an earlier version"):
        read_scorers(tmp_path, "hash", "words")
