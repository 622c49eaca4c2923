"""Files written atomically: to a temporary name in the same folder, synced, and renamed; JSON,
hashes and sizes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import resource
import shutil
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

from plant_cli.api.errors import ArtefactError, PlantError, UsageError, damaged_file
from plant_cli.data.object_stores import is_address

TEMPORARY = re.compile(r"\.[0-9a-f]{32}(-.*)?")
FULL_DISK = {
    errno.ENOSPC: "no space left on device",
    errno.EDQUOT: "disk quota exceeded",
    errno.EFBIG: "file too large",
}
# a Parquet writer whose last bytes were refused: it drops the words of the system
FOOTER = "Invalid thrift: transport error"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary sibling to write to, which takes the place of `path` when the block ends well and
    vanishes when it does not.

    The temporary name keeps the suffix of `path`, because some writers choose their format by it.
    Missing folders are made. The file has the rights of the one that it replaces, else those of any
    new file there, whatever its writer gave it. `UsageError` if a device or a pipe is there.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        what, expected = (
            "this is a device or a pipe, which a file would replace",
            "a path for a new file, or a file",
        )
        raise UsageError(what, where=str(path), expected=expected, todo="choose another path")
    with naming_full_disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else _mode_of_new(path.parent)
        temporary = name_temporary(
            path.absolute()
        )  # some writers take a name that begins with ~ for a user's home
        try:
            yield temporary
            _set_mode(temporary, mode)
            _sync(temporary)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    _sync(path.parent)  # the rename itself must survive a power cut too


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A temporary sibling folder to write to, which takes the place of `path`, if there is one,
    when the block ends well.

    Whoever may read any new file there may read all files of the folder.
    """
    temporary, previous = (name_temporary(path.absolute()) for _ in range(2))
    with naming_full_disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        try:
            yield temporary
            share_files(temporary)
            for file in temporary.rglob("*"):
                _sync(file)
            if path.exists():
                os.replace(path, previous)
            os.replace(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            if previous.exists() and not path.exists():
                os.replace(previous, path)
            raise
    _sync(path.parent)
    shutil.rmtree(previous, ignore_errors=True)


def require_free(path: Path, *, force: bool, folder: bool = False) -> None:
    """Refuse an output that is there already, or an address of an object store; what a killed
    process left of it is removed.
    """
    if is_address(path):
        raise UsageError(
            "this is written to no object store",
            where=str(path),
            expected="a path of this machine (`plant suggest -O` takes an address, too)",
            todo="choose a path, and send what is written there",
        )
    require_place(path.absolute().parent)
    _remove_orphans(path.absolute())
    alike = path.is_dir() == folder
    if path.exists() and not (force and alike):
        raise UsageError(
            f"the output is {'there already' if alike else 'a file' if folder else 'a folder'}",
            where=str(path.absolute()),
            expected=f"a {'folder' if folder else 'file'} that does not exist",
            todo="choose another output" + (", or replace it with --force" if alike else ""),
        )


def refuse_replacing(output: str | None, *inputs: str | None) -> None:
    """Refuse an output that is one of the inputs of the command, whatever `--force` says."""
    for name in inputs:
        if (
            output is not None
            and name is not None
            and Path(output).resolve() == Path(name).resolve()
        ):
            raise UsageError(
                f"the output would replace {name}",
                where=output,
                expected="another file",
                todo="choose another one",
            )


def require_place(folder: Path) -> None:
    """Refuse a folder, which need not exist, in which no file can be made."""
    standing = next(
        parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists()
    )
    if not standing.is_dir() or not os.access(standing, os.W_OK | os.X_OK):
        expected = "a folder in which files may be made" + (
            "" if standing.is_dir() else f"; {standing} is a file"
        )
        raise UsageError(
            "the output cannot be written",
            where=str(folder),
            expected=expected,
            todo="choose another place for it",
        )


def remove_temporaries(folder: Path) -> None:
    """Remove the temporary files and folders that a killed process left anywhere in a folder;
    links are not followed.
    """
    for place, folders, files in os.walk(folder):
        for name in filter(TEMPORARY.fullmatch, files):
            Path(place, name).unlink(missing_ok=True)
        for name in filter(TEMPORARY.fullmatch, folders):
            remove(Path(place, name))
        folders[:] = [name for name in folders if not TEMPORARY.fullmatch(name)]


def remove(path: Path) -> None:
    """Remove a file, a folder with all that is in it, or a link but not what it leads to; it
    need not be there.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def share_files(folder: Path) -> None:
    """Let whoever may read any new file in a folder read all that are in it: some writers give
    theirs to its owner alone.
    """
    mode = _mode_of_new(folder)
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            _set_mode(file, stat.S_IMODE(file.stat().st_mode) | mode)


def full_disk_code(error: BaseException) -> int | None:
    """The number of the system's error if this one says that a disk or a quota is full, else
    None.
    """
    if isinstance(error, OSError) and error.errno in FULL_DISK:
        return error.errno
    text = (
        "" if isinstance(error, PlantError) else str(error).lower()
    )  # writers in other languages hand on only the words of the system
    return next((code for code, phrase in FULL_DISK.items() if phrase in text), None)


@contextmanager
def naming_full_disk(path: Path) -> Iterator[None]:
    """Let an error about a full disk name what was to be written: most writers name no file,
    and some the one that they read.
    """
    try:
        yield
    except Exception as error:
        code = full_disk_code(error)
        if code is None and FOOTER in str(error):
            code = (
                errno.ENOSPC
                if resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
                else errno.EFBIG
            )
        if code is None:
            raise
        raise OSError(code, os.strerror(code), str(path)) from error


def name_temporary(path: Path) -> Path:
    """A temporary name in the folder of a path, which says who writes; a file of such a name that a
    killed process left is never read.
    """
    return path.with_name(f".{_name_writer(os.getpid())}{uuid4().hex[:16]}-{path.name}")


def _name_writer(process: int) -> str:
    """16 hexadecimal digits for a process of this machine."""
    return f"{zlib.crc32(os.uname().nodename.encode()):08x}{process:08x}"


def _remove_orphans(path: Path) -> None:
    """Remove temporary files and folders of a path whose writer, a process of this machine, no
    longer runs.
    """
    if not path.parent.is_dir():
        return
    for left in path.parent.iterdir():
        if TEMPORARY.fullmatch(left.name) is None or left.name[34:] != path.name:
            continue
        process = int(left.name[9:17], 16)
        if left.name[1:17] == _name_writer(process) and not _is_running(process):
            remove(left)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:  # of another user
        return True
    except OSError:
        return False
    return True


def _mode_of_new(folder: Path) -> int:
    """The rights that a new file gets in a folder; asked of the system, since the umask cannot
    be read without changing it for all.
    """
    probe = folder / f".{uuid4().hex}"
    try:
        handle = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except (FileNotFoundError, PermissionError) as error:  # as in /proc, whatever the rights say
        expected, todo = "a folder in which files may be made", "choose another place for it"
        raise UsageError(
            "the output cannot be written", where=str(folder), expected=expected, todo=todo
        ) from error
    try:
        return stat.S_IMODE(os.fstat(handle).st_mode)
    finally:
        os.close(handle)
        probe.unlink()


def _set_mode(path: Path, mode: int) -> None:
    if stat.S_IMODE(path.stat().st_mode) != mode:
        with suppress(PermissionError):  # some file systems know no rights
            path.chmod(mode)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, atomically; NaN and infinity are refused with a
    `ValueError`.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    with replacing(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def write_json_lines(path: Path, rows: Iterable[Any]) -> None:
    """Write values as JSON, a line each, atomically."""
    with replacing(path) as temporary:
        temporary.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


LARGEST_RECORD = 1 << 28
"""Bytes of a record, recipe or other text of a run, which is read at once; the largest that
were seen have a tenth of it.
"""
FILE_TYPES: Sequence[tuple[Callable[[int], bool], str]] = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode), "a device"),
)
"""What lies in a folder beside files."""


def find_obstacle(path: Path, largest: int = LARGEST_RECORD) -> str | None:
    """Why a file is not opened: to read a device or a pipe need not end. None for a file of at most
    so many bytes.

    `OSError` if there is nothing.
    """
    status = path.stat()
    kind = next((name for fits, name in FILE_TYPES if fits(status.st_mode)), None)
    if kind is not None:
        return f"it is {kind}"
    return f"it has {show_size(status.st_size)}" if status.st_size > largest else None


def refuse_strange_files(folder: Path, what: str) -> None:
    """Refuse a folder that holds devices, pipes or sockets, or links to them; `what` it is, for the
    message.

    Its own folders may be links, folders within them not.
    """
    links = (path for path in folder.iterdir() if path.is_symlink() and path.is_dir())
    for place, _, names in chain.from_iterable(map(os.walk, (folder, *links))):
        for name in names:
            path = Path(place, name)
            try:
                obstacle = find_obstacle(path, sys.maxsize)
            except OSError:  # a link to nothing, or it is gone by now
                continue
            if obstacle is not None:
                raise damaged_file(
                    f"'{name}' in {what}",
                    obstacle,
                    path,
                    expected="a regular file",
                    todo="remove it; take such a folder only from people whom you trust",
                )


def read_json(path: Path, what: str) -> Any:
    """Read a JSON file that `plant` wrote; the error names `what` it holds, such as "the thresholds
    of the stage finetune".

    `ArtefactError` if the file is missing, not UTF-8 or not JSON, or has NaN or an infinite number.
    """
    todo = "run the stage that writes it again"
    try:
        if obstacle := find_obstacle(path):
            raise damaged_file(what, obstacle, path, expected="a JSON document", todo=todo)
        return json.loads(
            path.read_text(encoding="utf-8"),
            parse_float=_finite,
            parse_int=_whole,
            parse_constant=_finite,
        )
    except FileNotFoundError as error:
        expected = "a file written by an earlier command"
        raise ArtefactError(
            f"{what} is missing", where=str(path), expected=expected, todo=todo
        ) from error
    except json.JSONDecodeError as error:
        where, expected = (
            f"{path}, line {error.lineno}, column {error.colno}",
            "a complete JSON document",
        )
        raise ArtefactError(
            f"{what} is damaged: {error.msg}",
            where=where,
            expected=expected,
            todo=f"{todo} with --force",
        ) from error
    except (
        ValueError,
        RecursionError,
    ) as error:  # not UTF-8, numbers of thousands of digits, lists in lists without end
        why = (
            f"byte {error.start} is not UTF-8"
            if isinstance(error, UnicodeDecodeError)
            else "it holds what no command writes"
        )
        raise damaged_file(
            what, why, path, expected="a JSON document in UTF-8", todo=f"{todo} with --force"
        ) from error


def _finite(text: str) -> float:
    """A number as `write_json` writes it: never NaN, never infinite."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _whole(text: str) -> int:
    _finite(text)
    return int(text)


UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def read_size(text: str) -> int:
    """Bytes of `500MB` (of what `SIZE_PATTERN` matches)."""
    return int(float(text[:-2]) * UNITS[text[-2:]])


def show_size(count: int) -> str:
    """`0.64 GB` of bytes: the largest unit of which there is one."""
    unit = next((u for u in reversed(UNITS) if count >= UNITS[u]), "KB")
    return f"{count / UNITS[unit]:.3g} {unit}"


def hash_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hash_json(value: Any) -> str:
    """SHA-256 of a JSON value, in hexadecimal; the order of keys does not matter, NaN raises
    `ValueError`.
    """
    return hashlib.sha256(_write_json(value).encode("utf-8")).hexdigest()


def hash_strings(strings: Iterable[str]) -> str:
    """SHA-256 of an ordered list of strings, in hexadecimal; each is preceded by its length, so
    that ["ab"] is not ["a", "b"].
    """
    digest = StringsHash()
    digest.add(strings)
    return digest.hexdigest()


def hash_each(strings: Iterable[str]) -> list[int]:
    """64 bits of the BLAKE2b of each string."""
    found = (
        hashlib.blake2b(string.encode("utf-8", errors="surrogatepass"), digest_size=8).digest()
        for string in strings
    )
    return [int.from_bytes(digest, "little") for digest in found]


class StringsHash:
    """`hash_strings` of a list that comes in parts."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, strings: Iterable[str]) -> None:
        """Take the next strings."""
        for string in strings:
            data = string.encode("utf-8", errors="surrogatepass")
            self._digest.update(len(data).to_bytes(8, "little"))
            self._digest.update(data)

    def hexdigest(self) -> str:
        """The hash of all strings so far, in hexadecimal."""
        return self._digest.hexdigest()


class ListHash:
    """`hash_json` of a list that comes in parts."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256(b"[")
        self._begun = False

    def add(self, values: Sequence[Any]) -> None:
        """Take the next values."""
        if values:
            self._digest.update(
                (("," if self._begun else "") + _write_json(values)[1:-1]).encode("utf-8")
            )
            self._begun = True

    def hexdigest(self) -> str:
        """The hash of the list so far, in hexadecimal."""
        whole = self._digest.copy()
        whole.update(b"]")
        return whole.hexdigest()


def _write_json(value: Any) -> str:
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
