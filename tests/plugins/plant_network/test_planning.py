"""Plans have the sizes of the real network, and the memory that a real stage takes in a process
of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from plant_network.hardware import Hardware
from plant_network.planning import (
    Cost,
    Estimate,
    Job,
    Part,
    Planner,
    StepTrial,
    outline,
    report_plans,
    size_of,
)
from scipy.sparse import csr_array

from plant_cli.api import (
    BackboneSpec,
    Choice,
    ComponentError,
    MachineSection,
    ModelSection,
    NoOptions,
    Options,
    Reading,
    ScorerSpec,
    SilentReporter,
    Split,
    TokenBatch,
)
from plant_cli.data.labels import LabelTable
from plant_cli.data.word_analysis import PLAIN
from plant_cli.registry import installed
from plant_cli.scoring.forecast import BYTES_OF_PROCESS
from plant_cli.training.training_options import ROLES, Schedule

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
ALL = ROLES | {"backbone"}


class FourDocuments:
    """A corpus of one split; by default of three labels."""

    analyser = PLAIN

    def __init__(self, labels: int = 3) -> None:
        self.labels = LabelTable(
            ids=[str(label) for label in range(labels)],
            titles=[None] * labels,
            train_counts=[1] * labels,
        )

    def split(self, name: str) -> Split:
        gold = csr_array(np.eye(4, len(self.labels), dtype=np.int64))
        texts = ["a b c", "d e", "f", "g h a b c"]
        return Split(
            name="train", doc_ids=list("wxyz"), texts=texts, gold=gold, unseen=csr_array((4, 0))
        )


def make_job(layers: int = 1, **values: Any) -> Job:
    backbone = {
        "name": "tiny",
        "hidden": 16,
        "heads": 2,
        "layers": layers,
        "buckets": 64,
        "dropout": 0.0,
    }
    model = ModelSection(backbone=backbone, decoder="label-attention")  # type: ignore[arg-type]
    given = {
        "model": model,
        "kind": "label",
        "documents": 4,
        "read": 4,
        "roles": ALL,
        "batch": 4,
        "micro_batch": 4,
        "labels": 2,
    }
    return Job(machine=MachineSection(), **(given | values))


def make_planner(labels: int = 3, free: int = 10**12) -> Planner:
    corpus: Any = FourDocuments(labels)
    return Planner(installed().resolve, corpus, CPU, free)


def test_micro_batches_are_those_of_training() -> None:
    assert make_job(batch=12, micro_batch=5).largest == 4
    assert make_job(batch=2, micro_batch=5).largest == 2


def test_only_the_named_roles_are_unfrozen(small_network: Any) -> None:
    network = small_network()
    ever, last = make_job(kind="rank", roles=frozenset({"attention"})).unfreeze(network)
    assert (
        {id(p) for p in ever}
        == {id(p) for p in last}
        == {id(p) for p in network.decoder.parameter_roles()["attention"]}
    )
    assert network.backbone_is_frozen
    ever, last = make_job(epochs=1, schedule=Schedule(gradual=True)).unfreeze(small_network())
    assert 0 < size_of(last) < size_of(ever), "what is frozen in the last epoch has no gradient"


@pytest.mark.parametrize(
    ("kind", "labels"), [("label", 0), ("label", 2), ("rank", 3), ("score", 0)]
)
def test_the_number_has_a_gradient(small_network: Any, kind: Any, labels: int) -> None:
    reading = Reading.of(torch.randn(2, 8, 16), torch.ones(2, 8, dtype=torch.bool))
    number = make_job(kind=kind, labels=labels).score(small_network(), reading)
    assert number.ndim == 0
    assert number.requires_grad


def test_a_network_without_values_has_all_sizes() -> None:
    network, parts, unpacked = outline(installed().resolve, make_job(), FourDocuments().labels)
    assert {p.device.type for p in network.parameters()} == {"meta"}
    assert sum(part.size for part in parts) == size_of(network.parameters())
    assert {part.name: part.parameters for part in parts}["label tables"] == 3 * 3 * 16
    assert unpacked == 0


def test_a_backbone_that_needs_values_is_refused() -> None:
    def load(options: Options, machine: MachineSection) -> None:
        torch.ones(1).item()

    def find(kind: type, chosen: object) -> object:
        if kind is BackboneSpec:
            return BackboneSpec(
                name="greedy", summary="It reads a value.", options=NoOptions, load=load
            ), NoOptions()  # type: ignore[arg-type]
        return installed().resolve(kind, chosen)  # type: ignore[arg-type]

    with pytest.raises(ComponentError, match=r"greedy.*cannot be built without its weights"):
        outline(find, make_job(), FourDocuments().labels)  # type: ignore[arg-type]


def make_trial(layers: int) -> StepTrial:
    job = make_job(layers)
    network = outline(installed().resolve, job, FourDocuments().labels)[0]
    job.unfreeze(network)
    tokens = network.backbone.tokenize([" ".join("ab" for _ in range(24))])
    return StepTrial(network=network, job=job, longest=tokens, typical=tokens, hardware=CPU)


def test_memory_grows_with_documents_and_with_layers() -> None:
    small, large = (make_trial(layers).measure("trained") for layers in (2, 8))
    assert small.memory(1) < small.memory(4) < large.memory(4)


def test_reading_and_cached_states_cost_less_than_training() -> None:
    trial = make_trial(layers=3)
    sources: Any = ("trained", "cached", "reading")
    trained, cached, reading = (trial.measure(source).each(4) for source in sources)
    assert 0 < cached[0] + reading[0] < trained[0]
    assert (trained > 0).all()
    assert {p.device.type for p in trial.network.parameters()} == {"meta"}, "weights are let go"


def test_a_network_that_cannot_be_tried_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise RuntimeError("no such layer")

    monkeypatch.setattr(StepTrial, "_run", fail)
    with pytest.raises(ComponentError, match="cannot be tried with made-up weights: no such layer"):
        make_trial(layers=2).measure("trained")


def test_a_cost_is_fixed_and_by_document() -> None:
    cost = Cost(fixed=np.array([100.0, 8.0, 4.0]), document=np.array([10.0, 1.0, 0.5]))
    assert cost.memory(4) == 140
    assert cost.each(4).tolist() == [3.0, 1.5]


def test_a_cache_is_filled_once_and_only_of_a_backbone_that_stays() -> None:
    planner, job = (
        make_planner(),
        make_job(kind="rank", roles=frozenset({"attention"}), cache_limit=1.0),
    )
    first, second = planner.plan_network(job), planner.plan_network(job)
    assert first.disk["cache"] == second.disk["cache"] == 4 * 2.75 * 16 * 4
    assert first.work["operations"] > second.work["operations"]
    trained = planner.plan_network(replace(job, roles=ALL))
    assert trained.disk["cache"] == 0
    assert trained.memory["gradients"] > 0
    scored = planner.plan_network(replace(job, kind="score", roles=frozenset()))
    assert scored.disk["cache"] == 0, "another stage may have trained it"
    assert scored.memory["gradients"] == 0


def test_a_shortlist_saves_operations() -> None:
    few, more, every = (
        make_planner(labels=2000)
        .plan_network(make_job(labels=100, candidates=candidates))
        .work["operations"]
        for candidates in (100, 400, 0)
    )
    assert few < more < every


def test_classifiers_in_closed_form_are_planned_by_their_number() -> None:
    job = make_job(epochs=0, regresses=True)
    of_none = make_planner(labels=40).plan_network(replace(job, regresses=False))
    few, many = (make_planner(labels=labels).plan_network(job) for labels in (40, 400))
    assert of_none.work["operations"] < few.work["operations"] < many.work["operations"]
    assert few.seconds


def test_epochs_are_those_of_how_the_decoder_starts() -> None:
    job = make_job(kind="rank", epochs=2, drawn_epochs=10)
    assert make_planner().plan_network(job).work["epochs"] == 2
    drawn = job.model.model_copy(update={"decoder": Choice(name="plm-ca")})
    assert make_planner().plan_network(replace(job, model=drawn)).work["epochs"] == 10


def test_a_network_that_is_too_large_to_be_tried_has_no_hours() -> None:
    planner = make_planner(free=1)
    plan = planner.plan_network(make_job())
    assert (plan.seconds, plan.micro_batch) == (None, None)
    assert any("activations and hours come on top" in note for note in planner.notes)
    assert "activations" not in plan.memory


def test_activations_of_language_models_follow_from_their_layers() -> None:
    """32 positions (20 tokens, padded), each of 16 x 8 + 4 x 32 = 256 numbers a layer, in 3
    layers; in bf16.
    """
    planner, config = (
        make_planner(),
        SimpleNamespace(hidden_size=8, intermediate_size=32, num_hidden_layers=3),
    )
    model: Any = SimpleNamespace(backbone_module=SimpleNamespace(config=config))
    longest = TokenBatch(
        ids=[np.arange(20, dtype=np.int32)], spans=[np.zeros((20, 2), dtype=np.int32)], dropped=[0]
    )
    estimate = Estimate(memory={"weights": 1}, disk={}, work={}, seconds=None)
    assert (
        planner._add_activations(estimate, model, longest, short=True).memory["activations"]
        == 32 * (3 * 8 + 256) * 2
    )
    assert f"where {3 * 256 * 32 * 2 / 1e9:.1f} GB are free" in next(iter(planner.notes))


def test_scorers_say_themselves_what_grows_faster_than_the_documents() -> None:
    spec, options = installed().resolve(ScorerSpec, Choice(name="words"))
    plan = make_planner().plan_scorers([(spec, options)], SilentReporter())
    assert plan.memory["scorers"] > 0
    assert plan.work == {"documents": 4, "labels": 3}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plant_network.planning.TOLD_FROM", 4)
        many = make_planner().plan_scorers([(spec, options)], SilentReporter())
    assert many.memory["scorers"] > BYTES_OF_PROCESS
    assert many.seconds is not None
    named = replace(spec, memory=lambda options, documents: options.terms * documents**2 * 10**6)
    assert (
        make_planner().plan_scorers([(named, options)], SilentReporter()).memory["scorers"]
        == 1000 * 4**2 * 10**6
    )


def test_tables_show_each_figure_once_and_what_does_not_fit() -> None:
    parts = (Part(name="backbone", parameters=1000, trained=0, size=4000),)
    network = Estimate(
        memory={"weights": 3 * 10**9, "best": 0},
        disk={},
        work={"padding": 0.25},
        seconds=3600.0,
        parts=parts,
        micro_batch=2,
    )
    words = Estimate(
        memory={"counting": 10**9}, disk={"result": 10**9}, work={"documents": 9}, seconds=None
    )
    result = report_plans(
        {"mig": words, "finetune": network, "predict": network}, 2 * 10**9, "cpu", ["a note"]
    )
    parameters, taken = result.tables
    assert parameters.rows == [["finetune, predict", "backbone", 1000, 0, "0.000"]]
    rows = {str(row[0]): row[1:] for row in taken.rows}
    assert rows["memory: peak"] == ["1.000", "3.000", "3.000"]
    assert rows["hours"] == ["?", "1", "1"]
    assert rows["padding"] == ["", "25%", "25%"]
    assert "memory: best" not in rows
    assert taken.notes[1:] == [
        *(f"{name} does not fit: --micro-batch 2 does" for name in ("finetune", "predict")),
        "a note",
    ]
    assert result.next_step is None


TOLERANCE = 0.25
SHARED = [
    "machine.precision=fp32",
    "machine.device=cpu",
    "machine.threads=1",
    "finetune.init=random",
    "finetune.head=random",
    "finetune.scorers=none",
    "finetune.epochs=1",
]
MANY_LABELS = [
    "model.backbone={name: tiny, hidden: 256, layers: 1, buckets: 512, dropout: 0.0}",
    "finetune.micro_batch=2",
    "finetune.batch=4",
]
LONG_TEXTS = [
    "model.backbone={name: tiny, hidden: 128, layers: 4, buckets: 512, window: 128}",
    "finetune.micro_batch=4",
    "finetune.batch=8",
    "finetune.unfreeze=all",
]


def write_corpus(path: Path, *, documents: int, words: int, labels: int) -> None:
    """Documents of so many words; the labels are dealt out in turn, so that train has them all."""
    each = labels // documents
    train = [("train", " ".join(f"w{(i * 7 + j) % 301}" for j in range(words)), [f"label {i * each + j}" for j in range(each)])
             for i in range(documents)]  # fmt: skip
    rows = [
        *train,
        *(("validation", *row[1:]) for row in train[:4]),
        *(("test", *row[1:]) for row in train[:2]),
    ]
    frame = pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").with_row_index(
        "doc_id"
    )
    frame.with_columns(pl.col("doc_id").cast(pl.String)).write_parquet(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "sets"),
    [
        ({"documents": 40, "words": 30, "labels": 24000}, MANY_LABELS),
        ({"documents": 16, "words": 1500, "labels": 16}, LONG_TEXTS),
    ],
    ids=["many labels", "long texts"],
)
def test_planned_peak_memory_is_the_measured_one(
    tmp_path: Path, run_alone: Callable[..., Any], sizes: dict[str, int], sets: list[str]
) -> None:
    """A step of training decides the peak, and the network learns in the one epoch."""
    write_corpus(tmp_path / "data.parquet", **sizes)
    sets = [f"data.path={tmp_path / 'data.parquet'}", *SHARED, *sets, "mig.k=1"]
    run_alone(tmp_path / "run", "mig", sets)
    plan = run_alone(tmp_path / "run", "plan", sets)["data"]["finetune"]
    network = {part: size for part, size in plan["memory"].items() if part != "process and texts"}
    measured = run_alone(tmp_path / "run", "finetune", sets)["peak"]
    assert measured > 300e6, "too little to tell parts from the noise of a process"
    assert abs(sum(network.values()) / measured - 1) < TOLERANCE, (network, measured)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("distinct", "longest"), [(800, 1), (8, 20000)], ids=["many words", "long texts"]
)
def test_planned_memory_of_relevance_is_not_below_the_measured_one(
    tmp_path: Path, run_alone: Callable[..., Any], distinct: int, longest: int
) -> None:
    documents, words, labels = 16000, 40000, 300
    names = [
        "".join("abcdefghij"[int(digit)] for digit in f"{number:05}") for number in range(words)
    ]
    texts = (
        " ".join(names[(d * 37 + j * (1 + d % 61)) % words] for j in range(distinct))
        + longest * "a"
        for d in range(documents)
    )
    rows = [
        ("train" if d % 100 else "test", str(d), text, [f"label {d % labels}"])
        for d, text in enumerate(texts)
    ]
    frame = pl.DataFrame(rows, schema=["split", "doc_id", "text", "labels"], orient="row")
    frame.write_parquet(tmp_path / "data.parquet", row_group_size=1000)
    (tmp_path / "recipe.yaml").write_text("mig: {k: 100}\n")
    sets = [f"data.path={tmp_path / 'data.parquet'}", "machine.device=cpu", "machine.threads=1"]
    plan = run_alone(tmp_path / "run", "plan", [*sets, f"plan.recipe={tmp_path / 'recipe.yaml'}"])
    planned = plan["data"]["mig"]["peak_bytes"] - plan["before"]
    measured = run_alone(tmp_path / "run", "mig", [*sets, "mig.k=100"])["peak"]
    assert measured > 300e6, "too little to tell parts from the noise of a process"
    assert 1 - TOLERANCE < planned / measured < 4, (plan["data"]["mig"]["memory"], measured)
