"""What labels, texts and arguments hold never steers the terminal that shows it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

LABEL = "Z\x1b[31mred"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    rows = [
        f"{split}\t{word} and more\t{LABEL if word == 'fever' else word}"
        for split in ("train", "validation", "test")
        for word in WORDS
    ]
    (tmp_path / "c.tsv").write_text("\n".join(["split\ttext\tlabels", *rows, ""]))
    return tmp_path


WORDS = ("fever", "cough", "pain")


def on_terminal(folder: Path, *arguments: str) -> str:
    """What a command writes to a terminal, raw."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "plant_cli", *arguments],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", "TERM": "dumb"},
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    written = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # how Linux says that nobody holds the other end any more
            break
        if not part:
            break
        written += part
    process.wait()
    os.close(master)
    return written.decode()


def test_labels_and_arguments_are_written_out(corpus: Path) -> None:
    on_terminal(corpus, "mig", "c.tsv", "--quiet")
    for arguments in (("mig", "show", LABEL), ("mig", "show", "\x1b[2Jfever"), ("\x1b[2J",)):
        said = on_terminal(corpus, *arguments)
        assert "\x1b[31m" not in said, arguments
        assert "\x1b[2J" not in said, arguments
        assert "\\x1b" in said, arguments


def test_names_of_files_are_written_out(corpus: Path) -> None:
    """In errors, in progress, and in what is shown of a corpus."""
    odd = corpus / "c\x1b[31m\u202e.tsv"
    (corpus / "c.tsv").rename(odd)
    (corpus / "bad\x1b[31m.tsv").write_text("no table")
    for arguments in (
        ("mig", odd.name),
        ("data", "stats", odd.name),
        ("mig", "bad\x1b[31m.tsv"),
        ("mig", "none\x1b[31m.tsv"),
        ("run", "r\x1b[31m.yaml"),
    ):
        said = on_terminal(corpus, *arguments)
        assert "\x1b[31m" not in said, arguments
        assert "\u202e" not in said, arguments
    assert "\\x1b" in on_terminal(corpus, "data", "stats", "bad\x1b[31m.tsv")
