"""What a release says of itself, and that its source archive gives its wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging import release


def test_every_place_names_the_same_version() -> None:
    versions = release.read_versions()
    assert len({*versions.values()}) == 1, versions


def test_a_place_that_names_another_version_is_seen(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.1"\n')
    (tmp_path / "docs/changelog.md").write_text("# Changelog\n\n## 1.1\n\n## 1.0\n")
    (tmp_path / "CITATION.cff").write_text("version: 1.0\n")
    assert release.read_versions(tmp_path) == {
        "pyproject.toml": "1.1",
        "docs/changelog.md": "1.1",
        "CITATION.cff": "1.0",
    }


@pytest.mark.slow
def test_the_source_archive_gives_the_same_wheel(tmp_path: Path) -> None:
    wheel, source = release.build(tmp_path / "dist")
    again, _ = release.build(tmp_path / "again", release.unpack(source, tmp_path / "source"))
    assert wheel.read_bytes() == again.read_bytes()
