"""Checks of formats of vocabularies: strange files are no error, and what a format recognises it
reads as labels, the same each time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plant_cli.api import Purpose, VocabularyFile, VocabularySpec
from plant_cli.testing.checklist import check
from plant_cli.testing.format_checks import look_at_all, read_all

VOCABULARY_SAMPLES = {
    "empty": "",
    "blank lines": "\n\n\n",
    "half a list": '[{"label": "a", ',
    "a sentence": "Väter der Klamotte\n",
    "an open element": "<rdf",
    "titles": "label,title,parents\na,Apples,f\nf,Fruit,\n",
    "titles in languages": "uri,title_en,title_de\nx:1,Apples,Äpfel\nx:2,Pears,Birnen\n",
    "lines of URIs": "<http://x/1>\tApples\n<http://x/2>\tPears\n",
    "codes": "A000 Cholera due to Vibrio cholerae 01\nA001 Cholera, El Tor\nA009 Cholera\n",
    "terms": "format-version: 1.2\n\n[Term]\nid: X:1\nname: apples\n",
    "a map": '{"0": "Apples", "1": "Pears"}',
    "elements": "<vocabulary><term>Apples</term></vocabulary>",
}
"""Files by what is in them; some of them are vocabularies."""


@contextmanager
def make_vocabulary_file(content: str) -> Iterator[VocabularyFile]:
    """A file as formats are given it, for a corpus of the labels `a` and `f`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocabulary"
        path.write_text(content, "utf-8")
        yield VocabularyFile(path=path, text=content, purpose=Purpose(used=("a", "f")))


@check(VocabularySpec)
def any_vocabulary_may_be_looked_at(spec: VocabularySpec) -> None:
    """`recognise` raises no error, whatever a file holds."""
    look_at_all(spec, VOCABULARY_SAMPLES, make_vocabulary_file)


@check(VocabularySpec)
def what_it_recognises_are_labels_or_an_error(spec: VocabularySpec) -> None:
    """A file that is read twice gives the same labels; one that is none after all is a
    `DataError`.
    """
    for name, frame in read_all(spec, VOCABULARY_SAMPLES, make_vocabulary_file):
        assert "label" in frame.columns, f"what is read of {name} has no column of labels"
