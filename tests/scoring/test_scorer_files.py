"""Scorers beside a network: saved and read again, refused where it is damaged or of another
label order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plant_cli.api import ArtefactError, Choice
from plant_cli.data.labels import LabelTable
from plant_cli.data.records import stamp
from plant_cli.data.tensors import pack_strings, write_tensors
from plant_cli.registry import installed
from plant_cli.scoring.calibration import Calibration, IsotonicMap
from plant_cli.scoring.frequency_linear import FrequencyLinear
from plant_cli.scoring.fused_scorers import Combination, FusedScorers, NamedScorer, ScorerError
from plant_cli.scoring.known_words import KnownWords
from plant_cli.scoring.label_residuals import LabelResiduals
from plant_cli.scoring.packed_arrays import pack_arrays
from plant_cli.scoring.scorer_files import PACKED, SCORERS_FILE, read_scorers, write_scorers


def linear(sources: int) -> FrequencyLinear:
    values = np.random.default_rng(sources).random((sources + 1, 2))
    return FrequencyLinear(knots=np.array([1.0, 10.0]), weights=values[:-1], bias=values[-1])


@dataclass(frozen=True)
class Learned:
    """A scorer that is its tensors."""

    learned: dict[str, Any]

    def tensors(self) -> dict[str, Any]:
        return self.learned


LABELS = LabelTable(ids=["a", "b"], titles=[None, None], train_counts=[2, 1])
OTHERS = LabelTable(ids=["b", "a"], titles=[None, None], train_counts=[2, 1])
WORDS: Any = SimpleNamespace(hash="words")


def combine(tensors: dict[str, dict[str, Any]], **changes: Any) -> Combination:
    """Scorers of these tensors, by their names; every other one has two views."""
    named: list[Any] = [
        NamedScorer(
            chosen=Choice(name=name, options={"terms": 3}),
            scorer=Learned(own),
            views=1 + number % 2,
        )  # type: ignore[arg-type]
        for number, (name, own) in enumerate(tensors.items())
    ]
    counts = np.array([2, 1])
    alone = {one.name: linear(one.views) for one in named}
    scorers = (
        FusedScorers(scorers=named, fusion=linear(3), alone=alone, train_counts=counts)
        if named
        else None
    )
    return Combination(
        scorers=scorers, calibration=Calibration(linear=linear(4), **changes), train_counts=counts
    )


def write(folder: Path, combination: Combination) -> None:
    write_scorers(folder, combination, {"ECE": 0.1}, LABELS.hash, "words")


def read(folder: Path, labels: LabelTable = LABELS, analyser: Any = WORDS) -> Combination | None:
    def component(kind: Any, chosen: Any) -> Any:
        return SimpleNamespace(load=lambda options, tensors: Learned(tensors)), chosen.options

    return read_scorers(folder, labels, analyser, component)


def read_tensors(folder: Path) -> list[Any]:
    found = read(folder)
    assert found is not None
    assert found.scorers is not None
    return [one.scorer.tensors() for one in found.scorers.scorers]


def test_a_model_of_a_part_of_train_keeps_its_counts(tmp_path: Path) -> None:
    model = replace(combine({}), train_counts=np.array([1, 0]))
    write_scorers(tmp_path, model, {}, LABELS.hash, "words", own_counts=True)
    again = read(tmp_path)
    assert again is not None
    assert again.train_counts.tolist() == [1, 0]
    write(tmp_path, model)
    again = read(tmp_path)
    assert again is not None
    assert again.train_counts.tolist() == [2, 1]


def test_known_words_are_read_again_and_share_what_scorers_have(tmp_path: Path) -> None:
    words = tuple(f"word{number}" for number in range(9000))  # large enough to be stored once
    known = KnownWords(
        words=words,
        frequencies=np.arange(9000),
        named=("bronchitis",),
        documents=9000,
        enough=7.5,
        share=0.25,
    )
    written = combine({"words": {"words": pack_strings(words)}})
    assert written.scorers is not None
    write(tmp_path, replace(written, scorers=replace(written.scorers, known=known)))
    assert sorted(path.name for path in (tmp_path / "scorers").iterdir()) == [
        "_shared.safetensors",
        "_words.safetensors",
        "words.safetensors",
    ]
    found = read(tmp_path)
    assert found is not None
    assert found.scorers is not None
    again = found.scorers.known
    assert again is not None
    assert (again.words, again.named, again.documents, again.enough, again.share) == (
        words,
        ("bronchitis",),
        9000,
        7.5,
        0.25,
    )
    assert again.frequencies.tolist() == list(range(9000))
    (tmp_path / "scorers" / "_words.safetensors").unlink()
    with pytest.raises(ArtefactError, match="words"):
        read(tmp_path)


def test_residuals_of_labels_are_read_again(tmp_path: Path) -> None:
    residuals = LabelResiduals(labels=np.array([1]), added=np.array([[0.1, -1 / 3, 0.0, 2.0]]))
    assert STORED.scorers is not None
    write(tmp_path, replace(STORED, scorers=replace(STORED.scorers, residuals=residuals)))
    found = read(tmp_path)
    assert found is not None
    assert found.scorers is not None
    assert found.scorers.residuals is not None
    np.testing.assert_array_equal(found.scorers.residuals.labels, residuals.labels)
    np.testing.assert_array_equal(found.scorers.residuals.added, residuals.added)
    write(tmp_path, STORED)
    assert not (tmp_path / "scorers" / "_residuals.safetensors").exists()
    found = read(tmp_path)
    assert found is not None
    assert found.scorers is not None
    assert found.scorers.residuals is None


@pytest.mark.parametrize("labels", [[0, 2], [1, 1], [-1, 1], [0]])
def test_residuals_of_labels_that_there_are_not_are_refused(
    tmp_path: Path, labels: list[int]
) -> None:
    assert STORED.scorers is not None
    residuals = LabelResiduals(labels=np.array(labels), added=np.zeros((2, 4)))
    write(tmp_path, replace(STORED, scorers=replace(STORED.scorers, residuals=residuals)))
    with pytest.raises(ArtefactError, match="damaged"):
        read(tmp_path)


def test_files_from_before_there_were_known_words_believe_every_document(tmp_path: Path) -> None:
    write(tmp_path, STORED)
    assert "known_words" not in json.loads((tmp_path / SCORERS_FILE).read_text())
    found = read(tmp_path)
    assert found is not None
    assert found.scorers is not None
    assert found.scorers.known is None


STORED = combine(
    {"words": {"idf": np.array([1.5, 0.1])}, "titles": {"vectors": np.arange(6).reshape(2, 3)}}
)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    maps = (IsotonicMap(least=1, logits=np.array([-1.0, 2.0]), values=np.array([0.0, 0.5])),)
    write(
        tmp_path,
        combine(
            {one.name: dict(one.scorer.tensors()) for one in STORED.scorers.scorers}, maps=maps
        ),
    )  # type: ignore[union-attr]
    assert json.loads((tmp_path / SCORERS_FILE).read_text())["figures"] == {"ECE": 0.1}
    found = read(tmp_path)
    assert found is not None
    assert found.scorers is not None
    assert STORED.scorers is not None
    for one, other in zip(found.scorers.scorers, STORED.scorers.scorers, strict=True):
        assert (one.chosen, one.views) == (other.chosen, other.views)
        assert one.scorer.tensors().keys() == other.scorer.tensors().keys()
        assert all(
            np.array_equal(tensor, other.scorer.tensors()[name])
            for name, tensor in one.scorer.tensors().items()
        )
        assert np.array_equal(found.scorers.alone[one.name].weights, linear(one.views).weights)
    assert np.array_equal(found.scorers.fusion.weights, linear(3).weights)
    assert np.array_equal(found.calibration.linear.bias, linear(4).bias)
    assert [
        (one.least, one.logits.tolist(), one.values.tolist()) for one in found.calibration.maps
    ] == [(1, [-1, 2], [0, 0.5])]
    assert found.train_counts.tolist() == [2, 1]


def test_large_tensors_that_several_scorers_have_are_stored_once(tmp_path: Path) -> None:
    vectors, others = np.random.default_rng(0).random((2, 100_000))
    tensors = {
        "linear": {"train": vectors, "size": np.array([3])},
        "neighbours": {"0.train": vectors.copy(), "1.train": others, "size": np.array([3])},
    }
    write(tmp_path, combine(tensors))
    sizes = {path.stem: path.stat().st_size for path in (tmp_path / "scorers").iterdir()}
    assert 0.8 * vectors.nbytes < sizes["_shared"] < vectors.nbytes
    assert sizes["linear"] < 1000
    assert 0.8 * others.nbytes < sizes["neighbours"] < others.nbytes
    found = read_tensors(tmp_path)
    for one, own in zip(found, tensors.values(), strict=True):
        assert one.keys() == own.keys()
        assert all(np.array_equal(one[name], own[name]) for name in own)
    assert found[0]["train"] is found[1]["0.train"]
    (tmp_path / "scorers" / "_shared.safetensors").unlink()
    with pytest.raises(ArtefactError, match="what the scorers share cannot be read"):
        read(tmp_path)


def test_equal_bytes_of_another_shape_or_type_are_not_shared(tmp_path: Path) -> None:
    flat = np.zeros(100_000, dtype=np.float32)
    write(
        tmp_path,
        combine(
            {"x": {"a": flat}, "y": {"a": flat.reshape(2, -1)}, "z": {"a": flat.view(np.int32)}}
        ),
    )
    found = read_tensors(tmp_path)
    assert [one["a"].shape for one in found] == [(100_000,), (2, 50_000), (100_000,)]
    assert [one["a"].dtype for one in found] == [np.float32, np.float32, np.int32]


def test_scorers_of_an_earlier_attempt_are_taken_away(tmp_path: Path) -> None:
    write(tmp_path, STORED)
    write(tmp_path, combine({"words": {"idf": np.array([1.0])}}))
    assert [path.name for path in (tmp_path / "scorers").iterdir()] == ["words.safetensors"]
    write(tmp_path, combine({}))
    assert not (tmp_path / "scorers").exists()


def test_a_folder_without_the_file_has_nothing(tmp_path: Path) -> None:
    assert read(tmp_path) is None


def test_arrays_as_they_were_stored_before_are_refused(tmp_path: Path) -> None:
    write(tmp_path, STORED)
    write_tensors(
        tmp_path / "scorers" / "words.safetensors",
        {"idf": np.array([1.5])},
        stamp(labels=LABELS.hash),
        framework="np",
    )
    with pytest.raises(
        ArtefactError, match="the scorer 'words' is stored as an earlier version of plant stored it"
    ) as refused:
        read(tmp_path)
    assert "plant finetune --force" in refused.value.todo


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_arrays_of_what_is_no_finite_number_are_refused(tmp_path: Path, value: float) -> None:
    with pytest.raises(ScorerError, match=r"'words' cannot be saved: .* not arrays of finite numb"):
        write(tmp_path, combine({"words": {"idf": np.array([1.0, value])}}))
    write(tmp_path, STORED)
    packed, layout = pack_arrays({"idf": np.array([1.0, value])})
    marks = {**stamp(labels=LABELS.hash), PACKED: layout}
    write_tensors(tmp_path / "scorers" / "words.safetensors", packed, marks, framework="np")
    with pytest.raises(ArtefactError, match=r"the scorer 'words' .* not numbers") as refused:
        read(tmp_path)
    assert "plant finetune --force" in refused.value.todo


def test_another_label_order_is_refused(tmp_path: Path) -> None:
    write(tmp_path, STORED)
    with pytest.raises(ArtefactError, match="another label order"):
        read(tmp_path, OTHERS)
    content = json.loads((tmp_path / SCORERS_FILE).read_text())
    (tmp_path / SCORERS_FILE).write_text(json.dumps({**content, "label_hash": OTHERS.hash}))
    with pytest.raises(ArtefactError, match="the scorer 'words' was made for another label order"):
        read(tmp_path, OTHERS)


def test_words_that_are_found_otherwise_are_refused(tmp_path: Path) -> None:
    write(tmp_path, STORED)
    with pytest.raises(ArtefactError, match="found otherwise"):
        read(tmp_path, analyser=SimpleNamespace(hash="lemmas"))


def test_a_missing_scorer_is_named(tmp_path: Path) -> None:
    write(tmp_path, STORED)
    (tmp_path / "scorers" / "titles.safetensors").unlink()
    with pytest.raises(ArtefactError, match="the scorer 'titles' cannot be read"):
        read(tmp_path)


def test_scorers_of_a_version_with_other_options_are_refused(tmp_path: Path) -> None:
    write(tmp_path, combine({"linear": {"idf": np.array([1.0])}}))
    content = json.loads((tmp_path / "scorers.json").read_text())
    content["scorers"][0]["options"] = {
        "terms": 30,
        "largest": 16000,
        "own_strength": 1.0,
    }  # as they were with the inverse of the kernel
    (tmp_path / "scorers.json").write_text(json.dumps(content))
    with pytest.raises(
        ArtefactError, match="the scorer 'linear' does not take largest = 16000"
    ) as refused:
        read_scorers(tmp_path, LABELS, WORDS, installed().resolve)
    assert refused.value.where.startswith(str(tmp_path / "scorers.json"))
    assert "plant finetune --force" in refused.value.todo


@pytest.mark.parametrize(
    "change",
    [{"fusion": 3}, {"calibration": None}, {"scorers": [{"name": "../words"}]}, {"figures": ...}],
)
def test_damaged_weights_and_paths_that_leave_the_folder_are_refused(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    write(tmp_path, STORED)
    content = {**json.loads((tmp_path / SCORERS_FILE).read_text()), **change}
    (tmp_path / SCORERS_FILE).write_text(
        json.dumps({name: value for name, value in content.items() if value is not ...})
    )
    with pytest.raises(ArtefactError, match="file of scorers is damaged"):
        read(tmp_path)
