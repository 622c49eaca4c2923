"""Files in object stores (S3, Google, Azure and others that fsspec knows): one that is read is
copied to this machine first, one that is written is made here and sent whole.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from platformdirs import user_cache_path

from plant_cli.api import ComponentError, DataError, Reporter, UsageError

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # a `Path` of one has a single stroke


def is_address(name: str | Path | None) -> bool:
    """Whether a name is an address of an object store, such as `s3://bucket/texts.parquet`."""
    return name is not None and _ADDRESS.match(str(name)) is not None


@contextmanager
def fetching(name: str | None, reporter: Reporter) -> Iterator[str | None]:
    """The path of a copy while the block runs; the name itself where it is no address.

    Raises:
        UsageError: nothing reads such addresses.
        ComponentError: what reads them is not installed.
        DataError: there is no such object, or the store refuses.
    """
    if not is_address(name):
        yield name
        return
    address = str(name)
    store, path = _open(address)
    with TemporaryDirectory(prefix="plant-") as folder:
        copy = Path(folder, Path(path).name)
        with _naming(address, "read", "one object, which may be read"):
            store.get_file(path, str(copy))
        reporter.note(f"{address} was copied to this machine ({copy.stat().st_size / 1e6:.1f} MB)")
        yield str(copy)


@contextmanager
def sending(name: str | None, reporter: Reporter, *, force: bool) -> Iterator[str | None]:
    """The path of a file that is sent to an address when the block ends well; the name itself
    where it is no address. What the block leaves when it fails is kept for the same command.

    Raises:
        UsageError: nothing writes such addresses; the object is there already, without `force`.
        ComponentError: what writes them is not installed.
        DataError: there is no such bucket, or the store refuses.
    """
    if not is_address(name):
        yield name
        return
    address = str(name)
    store, path = _open(address)
    bucket = store._parent(path) if "file" in store.protocol else path.strip("/").split("/")[0]
    with _naming(address, "asked for", "an address in a bucket that may be listed"):
        there, placed = store.exists(path), store.exists(bucket)
    if there and not force:
        raise UsageError(
            "the output is there already",
            where=address,
            expected="an object that does not exist",
            todo="choose another output, or replace it with --force",
        )
    if not placed:
        raise DataError(
            f"there is no bucket '{bucket}'",
            where=address,
            expected="a bucket or folder that exists",
            todo="correct the address, or make the bucket first",
        )
    folder = user_cache_path("plant-cli") / "unsent" / sha256(address.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    yield str(folder / Path(path).name)
    for one in sorted(folder.iterdir()):
        to = f"{store._parent(path)}/{one.name}"
        with _naming(address, "written", f"a place that may be written; the file waits as {one}"):
            store.put_file(str(one), to)
    shutil.rmtree(folder)
    reporter.note(f"sent to {address}")


def _open(address: str) -> tuple[Any, str]:
    """The file system of fsspec for an address, and the path in it."""
    scheme = address.partition(":")[0]
    package = "fsspec"
    try:
        registry = import_module("fsspec.registry")
        known = registry.known_implementations.get(scheme, {})
        package = known.get("class", package).partition(".")[0]
        registry.get_filesystem_class(scheme)
    except ImportError as error:
        raise ComponentError(
            f"the package {package}, which opens {scheme}://, is not installed",
            where=address,
            expected=f"the package {package}",
            todo=f"pip install {package}",
        ) from error
    except ValueError as error:
        raise UsageError(
            f"nothing opens addresses that begin with {scheme}://",
            where=address,
            expected="a path, or an address that fsspec knows, such as s3://, gs:// or abfs://",
            todo="correct the address, or copy the file to this machine",
        ) from error
    with _naming(address, "opened", "an address as the store has them"):
        store, path = import_module("fsspec.core").url_to_fs(address)
    return store, str(path)


@contextmanager
def _naming(address: str, done: str, expected: str) -> Iterator[None]:
    """What a store says, as one of ours."""
    try:
        yield
    except Exception as error:  # each store has errors of its own
        why = "there is no such object" if isinstance(error, FileNotFoundError) else str(error)
        raise DataError(
            f"the object cannot be {done}: {why or type(error).__name__}",
            where=address,
            expected=expected,
            todo="check the address and what may be done there (for S3: AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL)",
        ) from error
