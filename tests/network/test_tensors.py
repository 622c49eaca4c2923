from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from plant_cli.api import ArtefactError
from plant_cli.network.tensors import read_tensors, write_tensors

METADATA = {name: name.upper() for name in ("format", "label_hash", "tokenizer_hash", "weight", "centre")}
WRITER = f"""
import sys
from pathlib import Path
import numpy as np
from plant_cli.network.tensors import write_tensors
write_tensors(Path(sys.argv[1]), {{"b": np.arange(3.0), "a": np.ones(2)}}, {METADATA}, framework="np")
"""


def read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    return read_tensors(path, "the weights", "train again")


def test_tensors_and_metadata_come_back(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1.5], dtype=torch.bfloat16)}
    write_tensors(tmp_path / "x.safetensors", tensors, METADATA)
    found, metadata = read(tmp_path / "x.safetensors")
    assert metadata == METADATA
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


def test_arrays_of_numpy_too_and_metadata_may_be_missing(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x.safetensors", {"a": np.arange(3)}, framework="np")
    found, metadata = read_tensors(tmp_path / "x.safetensors", "it", "", framework="np")
    assert isinstance(found["a"], np.ndarray)
    assert (found["a"].tolist(), metadata) == ([0, 1, 2], {})


def test_arrays_that_lie_otherwise_in_memory_come_back_as_they_were(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float16).reshape(2, 3)
    write_tensors(tmp_path / "a", {"transposed": array.T, "every second": array[:, ::2]}, framework="np")
    found, _ = read_tensors(tmp_path / "a", "the arrays", "", framework="np")
    np.testing.assert_array_equal(found["transposed"], array.T)
    np.testing.assert_array_equal(found["every second"], array[:, ::2])


def test_equal_content_gives_equal_bytes_in_every_process(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.safetensors" for number in range(4)]
    for file in files:
        subprocess.run([sys.executable, "-c", WRITER, str(file)], check=True)
    assert len({file.read_bytes() for file in files}) == 1


@pytest.mark.parametrize("content", [b"", b"\x10\0\0\0\0\0\0\0{}", None])
def test_a_damaged_or_missing_file_is_an_error_in_four_parts(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ArtefactError, match="the weights cannot be read") as caught:
        read(path)
    assert (caught.value.where, caught.value.todo) == (str(path), "train again")


def test_half_a_file_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    write_tensors(path, {"a": torch.arange(100.0)})
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ArtefactError, match="cannot be read"):
        read(path)
