"""Files that are written whole or not at all, and hashes that tell whether a file or a list of texts has changed."""

from __future__ import annotations

from plant_cli.base.files import replacing
from plant_cli.base.hashing import hash_file, hash_strings

__all__ = ["hash_file", "hash_strings", "replacing"]
