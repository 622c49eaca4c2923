"""Checks of components. A right component passes, a wrong one is stopped with a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
import torch
from plant_network import backbone_checks as backbones
from plant_network import loss_checks as losses
from scipy.sparse import csr_array
from torch import Tensor, nn

from plant_cli.api import (
    BackboneSpec,
    ComponentError,
    Dataset,
    DatasetSpec,
    Documents,
    FittedScorer,
    LossSpec,
    MetricSpec,
    MetricValue,
    NoOptions,
    Options,
    Pieces,
    PluginError,
    Reason,
    Result,
    ScorerInput,
    ScorerSpec,
    ShortlistInput,
    ShortlistSpec,
    SignalSpec,
    Spec,
    StageSpec,
    TokenBatch,
    option,
)
from plant_cli.testing import checklist as specs
from plant_cli.testing import dataset_checks as datasets
from plant_cli.testing import metric_checks as metrics
from plant_cli.testing import scorer_checks as scorers
from plant_cli.testing import shortlist_checks as shortlists
from plant_cli.testing import signal_checks as signals
from plant_cli.testing import stage_checks as stages
from plant_cli.testing.checklist import checks_of


def stopped(check: Any, spec: Any, said: str) -> None:
    """Require that a check stops a component, saying why."""
    with pytest.raises((AssertionError, PluginError, ValueError), match=said):
        check(spec)


class Silent(Options):
    quiet: int = option(1)


class Contradictory(Options):
    depth: int = option(0, "How deep.", ge=1)


class Required(Options):
    depth: int = option(help="How deep.")


def test_what_every_component_owes() -> None:
    good = Spec(name="deep-hole", summary="A hole.", options=Required)
    for check in checks_of(Spec):
        check(good)
    stopped(specs.summary_is_one_sentence, Spec(name="hole", summary="a hole"), "full stop")
    stopped(
        specs.summary_is_one_sentence, Spec(name="hole", summary="x" * 200 + "."), "201 characters"
    )
    stopped(
        specs.every_option_has_help, Spec(name="hole", summary="A hole.", options=Silent), "quiet"
    )
    lost = StageSpec(name="hole", summary="A hole.", run="plant_cli.api.functions:dig")
    stopped(specs.named_functions_can_be_imported, lost, "run of 'hole': .*has no attribute 'dig'")
    stopped(
        specs.defaults_are_valid,
        Spec(name="hole", summary="A hole.", options=Contradictory),
        "depth",
    )
    with pytest.raises(pytest.skip.Exception, match="needs depth"):
        specs.default_options(good)


def _run(context: Any, options: Any) -> Result:
    return Result()


def test_stages() -> None:
    good = StageSpec(
        name="dig", summary="Dig.", run=_run, examples=("plant dig --depth 3",), sections=("data",)
    )
    for check in checks_of(StageSpec)[:-1]:
        check(good)
    stopped(
        stages.name_fits_a_command, StageSpec(name="dig deep", summary="Dig.", run=_run), "2 words"
    )
    stopped(
        stages.examples_run_it,
        StageSpec(name="dig", summary="Dig.", run=_run, examples=("plant mig",)),
        "something else",
    )
    with pytest.raises(TypeError):
        stages.run_takes_context_and_options(
            StageSpec(name="dig", summary="Dig.", run=lambda: Result())
        )  # type: ignore[arg-type,misc]


class Shorts(Options):
    output: str = option("a", "Where to.", short="-o")
    other: str = option("b", "Where else.", short="-o")


def test_short_flags() -> None:
    stopped(
        stages.short_flags_are_unambiguous,
        StageSpec(name="dig", summary="Dig.", run=_run, options=Shorts),
        "-o",
    )


class Letters:
    """A backbone over characters, as far as `tokenize` goes; `fault` breaks one promise."""

    hidden_size, max_length, tokenizer_hash = 8, 50, "letters"

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.network = nn.Linear(1, 8)

    def tokenize(self, texts: Any) -> TokenBatch:
        places = [[i for i, c in enumerate(text) if not c.isspace()] for text in texts]
        kept = [found[: self.max_length] for found in places]
        shift = 100 if self.fault == "spans" else 0
        return TokenBatch(
            ids=[np.ones(len(k), dtype=np.int32) for k in kept],
            spans=[
                np.array([(i + shift, i + 1 + shift) for i in k], dtype=np.int32).reshape(-1, 2)
                for k in kept
            ],
            dropped=[
                0 if self.fault == "silent" else len(p) - len(k)
                for p, k in zip(places, kept, strict=True)
            ],
        )

    def encode(self, batch: TokenBatch) -> Any:
        raise NotImplementedError

    save = restore = encode

    def module(self) -> nn.Module:
        return self.network

    def layer_groups(self) -> list[list[nn.Parameter]]:
        return (
            [[self.network.weight]] if self.fault == "groups" else [list(self.network.parameters())]
        )


def _backbone(fault: str = "") -> BackboneSpec:
    return BackboneSpec(name="b", summary="B.", load=lambda options, machine: Letters(fault))  # type: ignore[arg-type,return-value]


def test_backbones() -> None:
    backbones.groups_hold_every_trainable_parameter_once(_backbone())
    backbones.long_documents_are_not_cut_in_silence(_backbone())
    backbones.languages_are_codes(replace(_backbone(), languages=("en", "fi")))
    stopped(backbones.languages_are_codes, replace(_backbone(), languages=("en", "ger")), "ger")
    stopped(backbones.languages_are_codes, replace(_backbone(), languages=("en", "en")), "twice")
    stopped(backbones.spans_point_into_the_text, _backbone("spans"), "beyond the text")
    stopped(
        backbones.long_documents_are_not_cut_in_silence,
        _backbone("silent"),
        "50 kept and 0 dropped",
    )
    stopped(
        backbones.groups_hold_every_trainable_parameter_once, _backbone("groups"), "in no group"
    )


def _dataset(**changes: Any) -> DatasetSpec:
    columns = {"doc_id": ["a", "b"], "text": ["x y", "z"], "labels": [["L"], []]} | changes.pop(
        "columns", {}
    )
    fields = {
        "splits": {"train": pl.LazyFrame(columns, schema_overrides={"labels": pl.List(pl.String)})}
    } | changes
    return DatasetSpec(name="d", summary="D.", load=lambda data, options: Dataset(**fields))


def test_datasets() -> None:
    for check in (
        datasets.train_has_documents,
        datasets.columns_have_their_types,
        datasets.ids_are_unique,
        datasets.two_loads_agree,
    ):
        check(_dataset())
    stopped(datasets.ids_are_unique, _dataset(columns={"doc_id": ["a", "a"]}), "1 ids occur twice")
    stopped(datasets.columns_have_their_types, _dataset(columns={"doc_id": [1, 2]}), "schema")
    stopped(
        datasets.columns_have_their_types,
        _dataset(columns={"text": ["x", None]}),
        "without id or text",
    )
    stopped(
        datasets.train_has_documents, _dataset(splits={"test": pl.LazyFrame()}), "no train split"
    )
    stopped(
        datasets.label_table_has_one_row_a_label,
        _dataset(labels=pl.LazyFrame({"label": ["L", "L"], "title": ["", ""]})),
        "twice",
    )
    half = pl.LazyFrame({"doc_id": ["a"], "text": ["x"], "labels": [["L"]]})
    cut = Pieces(
        whole=pl.LazyFrame({"doc_id": ["a", "b"], "text": ["x", "y"], "labels": [["L"], ["L"]]}),
        parts=[half],
    )
    stopped(
        datasets.pieces_are_the_splits, _dataset(pieces={"train": cut}), "are not its documents"
    )
    stopped(
        datasets.excluded_pairs_have_their_columns,
        _dataset(excluded=pl.LazyFrame({"label": ["L"]})),
        "excluded pairs have the schema",
    )
    wrong = pl.LazyFrame({"doc_id": ["a"], "label": ["L"], "start": [0], "end": [1], "text": ["q"]})
    stopped(datasets.evidence_quotes_the_text, _dataset(evidence=wrong), "do not quote")
    stopped(datasets.says_where_it_comes_from, _dataset(licence=" "), "licence")


def test_a_reader_of_its_own_format_is_not_given_another_one() -> None:
    spec = replace(_dataset(), recognise=lambda data: None)
    with pytest.raises(pytest.skip.Exception, match="give it `write`"):
        datasets.train_has_documents(spec)


class Squares:
    """A label loss that passes all checks; `fault` breaks one promise."""

    random_negatives = 0

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.hard_negatives = None if fault == "countless" else 0

    def __call__(self, logits: Tensor, targets: Tensor, selected: Tensor | None = None) -> Tensor:
        cells = torch.ones_like(logits) if selected is None else selected.float()
        ways = {
            "first only": lambda: (logits[0] - targets[0]).square().mean(),
            "upside": lambda: (logits * (2 * targets - 1)).mean(),
            "overflow": lambda: (logits * (1 - 2 * targets)).exp().mean(),
            "sums": lambda: ((logits - targets).square() * cells).mean() * len(logits),
        }
        return ways.get(self.fault, lambda: ((logits - targets).square() * cells).mean())()

    def select(
        self, logits: Tensor, targets: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        if self.fault == "wilful":
            return (targets > 0) | (torch.rand(logits.shape) < 0.5)
        return torch.full_like(logits, float(self.fault != "forgetful")).bool()


def _loss(build: Any, stage: Any = "label") -> LossSpec:
    make = build if callable(build) else lambda: Squares(build)
    return LossSpec(name="l", summary="L.", stage=stage, build=lambda options: make())


def test_label_losses() -> None:
    for check in checks_of(LossSpec):
        if check is not losses.lists_without_order_have_a_finite_loss:
            check(_loss(""))
    stopped(losses.is_a_differentiable_scalar, _loss("overflow"), "not finite")
    stopped(losses.better_scores_lose_less, _loss("upside"), "do not lose more")
    stopped(
        losses.unselected_pairs_get_no_gradient, _loss("forgetful"), "positive was not selected"
    )
    stopped(
        losses.unselected_pairs_get_no_gradient,
        _loss("countless"),
        "whole numbers hard_negatives and random_negatives",
    )
    stopped(losses.unselected_pairs_get_no_gradient, _loss("wilful"), "another generator")
    stopped(losses.it_is_a_mean, _loss("sums"), "another loss than once")
    with pytest.raises(AssertionError):
        losses.order_does_not_matter(_loss("first only"))


def test_rank_losses() -> None:
    class Divides:
        def __call__(self, scores: Tensor, relevance: Tensor, offsets: Tensor) -> Tensor:
            parts = zip(
                scores.tensor_split(offsets[1:-1]),
                relevance.tensor_split(offsets[1:-1]),
                strict=True,
            )
            return torch.stack([((s - r).square() / r.sum()).sum() for s, r in parts]).mean()

    class Adds(Divides):
        def __call__(self, scores: Tensor, relevance: Tensor, offsets: Tensor) -> Tensor:
            return super().__call__(scores, relevance, offsets) * (len(offsets) - 1)

    losses.order_does_not_matter(_loss(Divides, "rank"))
    losses.it_is_a_mean(_loss(Divides, "rank"))
    stopped(losses.it_is_a_mean, _loss(Adds, "rank"), "another loss than once")
    stopped(losses.lists_without_order_have_a_finite_loss, _loss(Divides, "rank"), "inf|nan")


def _precision(
    scale: float = 1.0,
    *,
    by_place: bool = False,
    careless: bool = False,
    name: str = "P@1",
    needed: tuple[str, ...] = (),
) -> MetricSpec:
    def compute(data: Any, options: Any) -> list[MetricValue]:
        first = data.top[:, :1]
        known = True if careless else first >= 0
        hits = (np.take_along_axis(data.gold.toarray(), first, axis=1) * known)[:, 0] * scale
        if by_place:
            hits = hits * (np.arange(len(hits)) > 3)
        contributions = np.stack([hits, np.ones(len(hits))], axis=1)
        return [
            MetricValue(
                name=name,
                contributions=contributions,
                combine=lambda s: s[:, 0] / s[:, 1],
                per_document=hits,
            )
        ]

    return MetricSpec(name="p", summary="P.", compute=compute, needs_all_scores=needed)


def test_metrics() -> None:
    for check in checks_of(MetricSpec):
        check(_precision())
    stopped(metrics.values_are_fractions, _precision(100.0), "outside")
    stopped(metrics.values_are_fractions, _precision(name=""), "no name")
    stopped(
        metrics.values_are_fractions,
        _precision(needed=("P@1", "P@3")),
        r"\['P@3'\], which are not computed",
    )
    stopped(
        metrics.right_labels_score_more_than_wrong_ones, _precision(-1.0), "perfect predictions"
    )
    stopped(
        metrics.labels_outside_gold_are_never_right, _precision(careless=True), "counted as right"
    )
    stopped(
        metrics.order_of_documents_does_not_matter, _precision(by_place=True), "order of documents"
    )
    stopped(
        metrics.weights_stand_for_repeated_documents, _precision(by_place=True), "by repetition"
    )


class Lengths:
    """Scores the first labels by the length of a document; `fault` breaks one promise."""

    def __init__(self, labels: int, fault: str) -> None:
        self.labels, self.fault = labels, fault

    def score(self, documents: Documents) -> list[csr_array]:
        values = np.zeros((len(documents), self.labels), dtype=np.float32)
        values[:, 0] = np.diff(documents.ends)
        if self.fault == "neighbours":
            values[:, 1] = len(documents)
        if self.fault == "infinite":
            values[0, 0] = np.inf
        if self.fault == "long":
            values[:] = 1
        return [csr_array(values if self.fault != "shape" else values[:, :2])]

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        words = {"foreign": ("elsewhere",), "batch": tuple(document.vocabulary)}.get(self.fault, ())
        return [Reason(text="its length", words=words)] * (
            1 if self.fault == "reasons" else len(labels)
        )

    def tensors(self) -> Mapping[str, Any]:
        return {
            "labels": np.array([self.labels]),
            **({"words": np.array(["a"])} if self.fault == "text" else {}),
        }


def _scorer(fault: str = "") -> ScorerSpec:
    def fit(options: NoOptions, given: ScorerInput) -> FittedScorer:
        left_out = [csr_array((1, 1), dtype=np.float32)] if fault == "left out" else None
        return FittedScorer(scorer=Lengths(given.gold.shape[1], fault), left_out=left_out)

    def load(options: NoOptions, tensors: Mapping[str, Any]) -> Lengths:
        return Lengths(int(tensors["labels"][0]), "neighbours" if fault == "load" else fault)

    memory = {
        "bytes": lambda options, documents: documents / 2,
        "negative": lambda options, documents: -documents,
    }.get(fault)
    return ScorerSpec(name="s", summary="S.", fit=fit, load=load, memory=memory)


def test_scorers() -> None:
    for check in checks_of(ScorerSpec):
        check(_scorer())
    stopped(scorers.scores_are_top_lists, _scorer("shape"), "not documents x labels")
    stopped(scorers.scores_are_top_lists, _scorer("infinite"), "not finite")
    stopped(scorers.lists_stay_short, _scorer("long"), "300 labels are listed")
    stopped(scorers.what_was_learned_is_arrays, _scorer("text"), "arrays of finite numbers by name")
    stopped(scorers.documents_stand_alone, _scorer("neighbours"), "beside others")
    stopped(scorers.what_was_learned_is_arrays, _scorer("load"), "after loading")
    stopped(scorers.left_out_scores_have_the_same_form, _scorer("left out"), "left-out scores are")
    stopped(
        scorers.reasons_are_one_for_each_label,
        _scorer("reasons"),
        "one plant_cli.api.Reason for each label",
    )
    stopped(
        scorers.reasons_are_one_for_each_label,
        _scorer("foreign"),
        "words that the document does not have",
    )
    stopped(scorers.reasons_stand_alone, _scorer("batch"), "other reasons")
    stopped(scorers.memory_is_foretold, _scorer("bytes"), "gave float for `memory`")
    stopped(scorers.memory_is_foretold, _scorer("negative"), "a whole number of 0 or more")


class FirstWords:
    """Proposes the labels of the words a document has; `fault` breaks one promise."""

    def __init__(self, given: ShortlistInput, fault: str) -> None:
        self.relevance = given.relevance
        self.fault = fault

    def propose(self, texts: Sequence[str], counts: csr_array) -> list[npt.NDArray[np.int64]]:
        found = [
            np.unique((counts[[row]] @ self.relevance.T).indices).astype(np.int64)
            for row in range(len(texts))
        ]
        if self.fault == "twice":
            return [np.concatenate([labels, labels]) for labels in found]
        if self.fault == "neighbours":
            return [np.union1d(found[0], labels) for labels in found]
        if self.fault == "changed":
            counts.data += 1
        return found


def _shortlist(fault: str = "", most: int | None = None) -> ShortlistSpec:
    foretold = None if most is None else lambda options, labels: most
    return ShortlistSpec(
        name="s", summary="S.", build=lambda options, given: FirstWords(given, fault), most=foretold
    )


def test_shortlists() -> None:
    for check in checks_of(ShortlistSpec):
        check(_shortlist())
    stopped(
        shortlists.labels_are_distinct_and_of_the_index,
        _shortlist(most=1),
        "at most 1 were foretold",
    )
    stopped(shortlists.labels_are_distinct_and_of_the_index, _shortlist("twice"), "proposed twice")
    stopped(shortlists.documents_stand_alone, _shortlist("neighbours"), "beside others")
    with pytest.raises(AssertionError, match="were changed"):
        shortlists.input_is_left_as_it_was(_shortlist("changed"))


def _signal(score: Any, *, quasi_convex: bool = False) -> SignalSpec:
    return SignalSpec(name="s", summary="S.", score=score, quasi_convex=quasi_convex)


def _together(counts: Any, options: Any) -> Any:
    return np.asarray(counts.docs_with_both / counts.n_docs, dtype=np.float64)


def test_signals() -> None:
    for check in checks_of(SignalSpec):
        check(_signal(_together))
    stopped(
        signals.values_are_float64_numbers,
        _signal(lambda c, o: _together(c, o).astype(np.float32)),
        "float32",
    )
    stopped(
        signals.values_are_float64_numbers, _signal(lambda c, o: _together(c, o) * np.nan), "NaN"
    )
    stopped(
        signals.pairs_stand_alone,
        _signal(lambda c, o: _together(c, o) - _together(c, o).mean(-1, keepdims=True)),
        "differ",
    )

    stopped_by = [
        _signal(lambda c, o: _together(c, o) * c.occurrences),
        _signal(lambda c, o: _together(c, o) * c.pairs),
    ]
    for undeclared in stopped_by:
        with pytest.raises(TypeError):
            signals.values_are_float64_numbers(undeclared)

    def greedy(counts: Any, options: Any) -> Any:
        counts.docs_with_both[:] = 0
        return _together(counts, options)

    stopped(signals.same_counts_give_same_values, _signal(greedy), "read-only")

    def peaked(counts: Any, options: Any) -> Any:
        return -np.abs(counts.docs_with_word - 9.0)

    signals.values_fall_then_rise_where_declared(_signal(peaked))
    signals.values_fall_then_rise_where_declared(
        _signal(lambda c, o: -peaked(c, o), quasi_convex=True)
    )
    stopped(
        signals.values_fall_then_rise_where_declared, _signal(peaked, quasi_convex=True), "a peak"
    )


@pytest.mark.parametrize(
    ("cause", "raised"),
    [(ModuleNotFoundError("no such package"), pytest.skip.Exception), (None, ComponentError)],
)
def test_a_scorer_is_passed_over_only_where_a_package_is_missing(
    cause: Exception | None, raised: type[BaseException]
) -> None:
    def fit(options: NoOptions, given: ScorerInput) -> FittedScorer:
        raise ComponentError("cannot be fitted", where="w", expected="e", todo="t") from cause

    spec = ScorerSpec(name="odd", summary="O.", fit=fit, load=lambda *_: None)
    with pytest.raises(raised):
        scorers.scores_are_top_lists(spec)
