"""Recognising that disk space or memory ran out behind the many errors that say so."""

from __future__ import annotations

import errno
import resource
import shutil
from pathlib import Path

from plant_cli.api import ResourceError, first_line
from plant_cli.base.files import full_disk_code

_MEMORY_PHRASES = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "failed to allocate",
    "bad_alloc",
    "failed to map segment",
    "can't start new thread",  # its stack has no room
)


def find_shortage(error: BaseException, folder: Path, kept: str, *, resumes: bool = True) -> ResourceError | None:
    """The error to show if something in the chain of causes means that disk or memory ran out, else None.

    Args:
        error: what stopped the stage or action.
        folder: where it writes; the error may name another place.
        kept: what was kept, as a clause: "the files so far are kept".
        resumes: whether `--resume` can go on with it, as with a stage.
    """
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        code = full_disk_code(link)
        if code is not None:
            return _disk_full(link, folder, kept, code, resumes=resumes)
        if _is_memory(link):
            return _out_of_memory(link, folder, kept)
        seen.add(id(link))
        link = link.__cause__ or link.__context__
    return None


def _is_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError | OSError | ImportError) and any(phrase in text for phrase in _MEMORY_PHRASES)


def _disk_full(error: BaseException, folder: Path, kept: str, code: int, *, resumes: bool) -> ResourceError:
    named = getattr(error, "filename", None)
    target = Path(named) if isinstance(named, str) else folder
    place = next(parent for parent in [target.absolute(), *target.absolute().parents] if parent.exists())
    free = shutil.disk_usage(place).free / 1e9
    if code == errno.EFBIG:
        return ResourceError(
            "a file would be larger than the system allows",
            where=f"{target}; the limit of this shell is {_largest_file()}",
            expected="no limit on the size of files, or one above what `plant plan` says",
            todo=f"`ulimit -f unlimited`, or another file system; {kept}" + (", and --resume goes on" if resumes else ""),
        )
    quota = code == errno.EDQUOT
    return ResourceError(
        "the disk is full",
        where=f"{target}; {free:.2f} GB are free{' (or your quota there)' if quota else ''}",
        expected="room for the files of this stage" if resumes else "room for what the command writes",
        todo=f"free some space and go on with --resume: {kept}; or use another disk with --run DIR"
        if resumes
        else f"free some space, or write to another disk (another -O): {kept}",
    )


def _largest_file() -> str:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return "none" if limit == resource.RLIM_INFINITY else f"{limit / 1e6:.3g} MB"


def _out_of_memory(error: BaseException, folder: Path, kept: str) -> ResourceError:
    device = "GPU" if "cuda" in str(error).lower() else "main"
    return ResourceError(
        f"{device} memory ran out: {first_line(error)}",
        where=f"while making {folder}",
        expected="a batch, a document length and a label block that fit",
        todo="lower --micro-batch (--batch where there is none), --set model.backbone.max_tokens=… or the label block "
        "(--set model.decoder.elements=…), or use --precision bf16, --set model.backbone.gradient_checkpointing=true or "
        f"--set model.backbone.quantization=nf4; `plant plan` says what fits; {kept}",
    )
