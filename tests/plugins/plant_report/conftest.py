"""Two evaluated systems in a run whose training and prediction are played."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure
from plant_report.evaluated import read_evaluated

from plant_cli.api import Request, SilentReporter
from plant_cli.registry import installed
from plant_cli.runs.runner import RequestRunner
from plant_cli.scoring.explanations import ExplainedPart, Explanation
from tests.commands.conftest import played, prepared, trained_once  # noqa: F401


@pytest.fixture
def evaluate(played, tmp_path):  # noqa: F811
    """Evaluate systems by tag, and read them as a report does: `evaluate("baseline")` reads the
    one without a tag, then that.
    """

    def run(*tags, **options):
        for tag in (None, *tags):
            played("eval", tag, force=True, **{"bootstrap": 40, **options})
        return read_evaluated(["finetune", *tags], tmp_path / "run")

    return run


@pytest.fixture
def systems(evaluate):
    """`finetune` and `baseline`, which is wrong in every second document."""
    return evaluate("baseline")


@pytest.fixture
def metrics(tmp_path):
    """The content of a metrics.json: `metrics("eval-baseline")`."""
    return lambda folder="eval": json.loads(
        (tmp_path / "run" / folder / "metrics.json").read_text()
    )


@pytest.fixture
def rewrite(tmp_path):
    """Change a system's stage.json: `rewrite("finetune", summary={…})`."""

    def write(folder, **changes):
        path = tmp_path / "run" / folder / "stage.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return write


@pytest.fixture
def open_corpus(tmp_path):
    """The corpus of the played run."""
    flags = {"data": {"path": str(tmp_path / "data.parquet")}}
    request = Request(
        registry=installed(), run_path=tmp_path / "run", flags=flags, reporter=SilentReporter()
    )
    return RequestRunner(request).open("verify").corpus


@pytest.fixture
def painted():
    """The lines of a drawing by name, as x and y: `painted(drawing)["finetune"]`; and its axes:
    `painted(drawing)["axes"]`.
    """

    def paint(drawing):
        axes = Figure().add_subplot()
        drawing.paint(axes)
        lines = {
            line.get_label(): (list(line.get_xdata()), list(line.get_ydata()))
            for line in axes.lines
        }
        return {**lines, "axes": axes}

    return paint


def tell(spans, weights):
    """An explanation by scorers alone."""
    part = ExplainedPart(
        name="words", log_odds=1.0, spans=spans, weights=np.array(weights), note="by words"
    )
    return Explanation(label="l", title=None, score=0.5, log_odds=1.0, base=0.0, parts=[part])


def find(texts, labels):
    """The first word of each text as the reason of all labels."""
    return [[tell(np.array([[0, 4]], dtype=np.int64), [1.0]) for _ in own] for own in labels]
