"""Checks of formats of predictions: strange files are no error, and what a format recognises it
reads as the documents of the split, the same each time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plant_cli.api import PredictionFile, PredictionsSpec
from plant_cli.data.lines import read_utf8_lines
from plant_cli.testing.checklist import check
from plant_cli.testing.format_checks import look_at_all, read_all

PREDICTED_DOCUMENTS, PREDICTED_LABELS = ("d1", "d2", "d3"), ("a", "b", "c")
PREDICTION_SAMPLES = {
    "empty": b"",
    "blank lines": b"\n\n\n",
    "no text": bytes(range(256)),
    "half a list": b'[["a", 0.5], [',
    "a sentence": "Väter der Klamotte\n".encode(),
    "pairs": b"doc_id,label,score\nd1,a,0.5\nd2,b,0.25\n",
    "lists": b'{"doc_id": "d1", "labels": ["a", "b"], "scores": [0.5, 0.25]}\n',
    "scores by label": b'{"d1": {"a": 0.5}, "d2": {"b": 0.25}, "d3": {}}',
    "results": b'{"document_id": "d1", "results": [{"uri": "a", "score": 0.5}]}\n',
    "a run": b"d1 Q0 a 1 0.5 x\nd2 Q0 b 1 0.25 x\n",
    "label:score": b"a:0.5 b:0.25\nb:0.25\n\n",
    "numbers": b"0.5 0.25 0\n0 0 0\n0 1 0\n",
    "labels": b"a;b\nb\nc\n",
}
"""Files by what is in them; half of them are of three documents, the others of none."""


@contextmanager
def make_prediction_file(content: bytes) -> Iterator[PredictionFile]:
    """A file as formats are given it, about three documents and three labels."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions"
        path.write_bytes(content)
        yield PredictionFile(
            path=path,
            split="test",
            documents=PREDICTED_DOCUMENTS,
            labels=PREDICTED_LABELS,
            head=content[:64],
            start=content.decode("utf-8", "replace"),
            read_lines=read_utf8_lines,
        )


@check(PredictionsSpec)
def any_file_may_be_looked_at(spec: PredictionsSpec) -> None:
    """`recognise` raises no error, whatever a file holds."""
    look_at_all(spec, PREDICTION_SAMPLES, make_prediction_file)


@check(PredictionsSpec)
def what_it_recognises_it_reads_or_refuses(spec: PredictionsSpec) -> None:
    """Each document has as many scores as labels; a file that is none after all is a
    `DataError`.
    """
    for name, frame in read_all(spec, PREDICTION_SAMPLES, make_prediction_file):
        uneven = [
            document
            for document, labels, scores in frame.iter_rows()
            if len(labels or ()) != len(scores or ())
        ]
        assert not uneven, f"labels and scores of {uneven[:3]} in {name} differ in number"
