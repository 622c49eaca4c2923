"""Files that are written whole or not at all, and hashes that tell whether a file or a list of texts has changed."""

from __future__ import annotations

from plant_cli.base.files import read_json, replacing, write_json, write_json_lines
from plant_cli.base.hashing import hash_file, hash_strings
from plant_cli.base.tensors import read_tensors, write_tensors

__all__ = ["hash_file", "hash_strings", "read_json", "read_tensors", "replacing", "write_json", "write_json_lines", "write_tensors"]
