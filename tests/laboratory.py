"""Stages to experiment with: small ones whose work a test decides, and the real ones on a small
made-up clinic.
"""

import plant_formats
import pytest
from builders import make_registry, run_at, write_documents

from plant_cli.api import Options, Result, SilentReporter, StageSpec, option
from plant_cli.commands import SPECS
from plant_cli.data.files import read_json

DOCUMENTS = 24
LABELS = {f"label {i}": 2 * i + 1 for i in range(6)}  # label and its training documents


def gold_labels(number):
    """The two labels of a test document."""
    return [f"label {number % 6}", f"label {(number + 1 + number // 6) % 6}"]


def write_corpus(path):
    """A corpus of `LABELS`, one validation document and `DOCUMENTS` test documents."""
    rows = [
        ("train", f"train {name} {i}", [name])
        for name, count in LABELS.items()
        for i in range(count)
    ]
    rows += [("validation", "validation", ["label 0"])]
    rows += [("test", f"test {i}", gold_labels(i)) for i in range(DOCUMENTS)]
    return write_documents(path, *rows)


@pytest.fixture
def recipe(tmp_path):
    """A small experiment of the stages of a `Laboratory`."""
    path = tmp_path / "r.yaml"
    path.write_text(
        "summary: A small experiment.\nmachine: {seed: 2}\nalpha: {k: 4}\nbeta:\nbeta-twice: "
        "{epochs: 2}\n"
    )
    return path


@pytest.fixture
def statuses():
    """`statuses(result)`: what `plant run` says of each step, by name."""
    return lambda result: {row[0]: row[1] for row in result.tables[-1].rows}


class AlphaOptions(Options):
    k: int = 3


class BetaOptions(Options):
    epochs: int = 1


class GammaOptions(Options):
    wanted: int | None = None
    notes: str | None = option(None, "A file.", path=True)


class Laboratory:
    """Small stages that write a file each, in one run folder; `on["alpha"] = f` plays
    f(context) in the middle of a stage.
    """

    def __init__(self, folder):
        self.path = folder / "run"
        self.data = write_corpus(folder / "data.parquet")
        self.on = {}
        self.calls = []
        self.reporter = SilentReporter()
        self.registry = make_registry(
            plant_formats,
            StageSpec(
                name="alpha",
                summary="A.",
                options=AlphaOptions,
                run=self.alpha,
                sections=("data", "machine"),
            ),
            StageSpec(
                name="beta",
                summary="B.",
                options=BetaOptions,
                run=self.beta,
                sections=("machine",),
                seeded=True,
            ),
            StageSpec(name="gamma", summary="G.", options=GammaOptions, run=self.gamma),
            StageSpec(
                name="glance", summary="I.", options=AlphaOptions, run=self.glance, looks=True
            ),
            StageSpec(
                name="look", summary="L.", run=self.play("look"), writes=False, sections=("data",)
            ),
            StageSpec(
                name="outside",
                summary="O.",
                run=self.play("outside"),
                writes=False,
                needs_run=False,
            ),
            *(spec for spec in SPECS if spec.name.split()[0] in ("clean", "run", "recipe")),
            name="laboratory",
        )

    def play(self, name):
        def run(context, options):
            self.calls.append(name)
            given = self.on[name](context) if name in self.on else Result()
            return given if isinstance(given, Result) else Result(data=given)

        return run

    def alpha(self, context, options):
        (context.folder / "alpha.txt").write_text(str(options.k))
        self.play("alpha")(context, options)
        return Result(summary={"k": options.k, "loss": float("nan")})

    def beta(self, context, options):
        text = (context.input("alpha") / "alpha.txt").read_text()
        (context.folder / "beta.txt").write_text(text * options.epochs)
        self.play("beta")(context, options)
        return Result(summary={"epochs": options.epochs})

    def glance(self, context, options):
        (context.folder / "glance.txt").write_text(str(options.k))
        return self.play("glance")(context, options)

    def gamma(self, context, options):
        folder = context.ensure(
            "alpha", options=None if options.wanted is None else {"k": options.wanted}
        )
        (context.folder / "gamma.txt").write_text((folder / "alpha.txt").read_text())
        return Result()

    def run(self, name, tag=None, *, options=None, flags=None, sets=(), **request):
        given = {**(flags or {}), **({name: options} if options else {})}
        return run_at(
            self.path,
            name,
            *sets,
            tag=tag,
            registry=self.registry,
            flags=given,
            **{"reporter": self.reporter, **request},
        )

    def fails(self, error, message, name, tag=None, **request):
        """The error with which a stage is refused or ends; its message is matched."""
        with pytest.raises(error, match=message or None) as caught:
            self.run(name, tag, **request)
        return caught.value

    def record(self, name):
        return read_json(self.path / name / "stage.json", "the record")

    def text(self, name):
        return (self.path / name / f"{name.split('-')[0]}.txt").read_text()


CLINIC = (
    "data.dataset={name: synthetic-clinic, documents: 120, labels: 12, seed: 3}",
    "model.backbone={name: tiny, hidden: 16, heads: 2, layers: 1, buckets: 512}",
    "model.decoder={name: label-attention, heads: 2, pool: 8}",
    "machine.precision=fp32",
    "machine.device=cpu",
    "pretrain-attn.epochs=1",
    "finetune.epochs=1",
)


@pytest.fixture
def clinic(tmp_path):
    """Run a stage for real on a small network and a small made-up clinic: `clinic("mig",
    "mig.k=5", tag=…)`; `.path` is the run.
    """

    def run(name, *sets, **request):
        return run_at(run.path, name, *CLINIC, *sets, **request)

    run.path, run.sets = tmp_path / "run", CLINIC
    return run


@pytest.fixture
def laboratory(tmp_path):
    """See `Laboratory`."""
    return Laboratory(tmp_path)
