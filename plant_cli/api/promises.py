"""What the functions of components promise to give, by kind. It is checked at each call: at run
time and in the conformance checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from os import PathLike
from typing import Any

from plant_cli.api.context import Result, Table
from plant_cli.api.corpus import Dataset
from plant_cli.api.errors import PlantError
from plant_cli.api.formats import ForeignPredictions, ForeignVocabulary
from plant_cli.api.functions import Promise
from plant_cli.api.metrics import MetricValue, WeightedMetric
from plant_cli.api.model import Backbone, Decoder, TokenBatch
from plant_cli.api.scorers import FittedScorer, Reason

PREDICTED_COLUMNS = {"doc_id": "String", "labels": "List(String)", "scores": "List(Float64)"}
SCORER_METHODS = ("score", "explain", "tensors")


def _can(value: Any, *methods: str) -> bool:
    return not isinstance(value, type) and all(
        callable(getattr(value, name, None)) for name in methods
    )


def _lists(value: Any, *kinds: type) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(one, kinds) for one in value)
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _numbers(value: Any, shape: tuple[int | None, ...] | None = None, kinds: str = "iuf") -> bool:
    """Whether a value is an array or sparse matrix of numbers, of a shape in which None stands
    for any size.
    """
    if getattr(getattr(value, "dtype", None), "kind", "-") not in kinds or not isinstance(
        getattr(value, "shape", None), tuple
    ):
        return False
    return shape is None or (
        len(value.shape) == len(shape)
        and all(b in (None, a) for a, b in zip(value.shape, shape, strict=True))
    )


def _holds_nan(value: Any) -> bool:
    """Whether an array or a sparse matrix does."""
    total = (value.data if hasattr(value, "nnz") else value).sum()
    return bool(total != total)


def _is_finite(array: Any) -> bool:
    """Whether all numbers are; smallest and largest say it without a copy of the array."""
    return not array.size or bool(abs(float(array.min())) < inf and abs(float(array.max())) < inf)


def _is_result(value: Any, *_: Any) -> bool:
    said = value.next_step is None or isinstance(value.next_step, str)
    whole = isinstance(value.summary, dict) and (
        value.failure is None or isinstance(value.failure, PlantError)
    )
    return isinstance(value, Result) and _lists(value.tables, Table) and said and whole


def _is_dataset(value: Any, *_: Any) -> bool:
    frames = [
        *value.splits.values(),
        *(one for one in (value.labels, value.evidence, value.excluded) if one is not None),
    ]
    texts = _lists(value.files, str, PathLike) and _lists(value.remarks, str)
    named = value.labels is None or {"label", "title"} <= {*_columns(value.labels)}
    return (
        isinstance(value, Dataset)
        and texts
        and named
        and all(_can(one, "collect_schema", "collect") for one in frames)
    )


def _columns(frame: Any) -> Iterable[str]:
    """The names of its columns; those of labels if it cannot be read: whoever reads it says why."""
    try:
        return list(frame.collect_schema())
    except Exception:
        return ("label", "title")


def _is_metric(value: Any, documents: int) -> bool:
    if isinstance(value, WeightedMetric):
        return (
            isinstance(value.name, str) and value.documents == documents and callable(value.compute)
        )
    single = isinstance(value, MetricValue) and (
        value.per_document is None or _numbers(value.per_document, (documents,), "biuf")
    )
    return (
        single
        and isinstance(value.name, str)
        and callable(value.combine)
        and _numbers(value.contributions, (documents, None), "biuf")
        and not _holds_nan(value.contributions)
    )


def _is_reason(value: Reason) -> bool:
    return isinstance(value.text, str) and _lists(value.words, str)


def _is_loss(value: Any, *_: Any) -> bool:
    """Those of stage 2, which have `select`, say how many negatives count."""
    counts = (
        [getattr(value, name, None) for name in ("hard_negatives", "random_negatives")]
        if hasattr(value, "select")
        else []
    )
    return _can(value, "__call__") and all(map(_is_whole, counts))


WHOLE_NUMBER = Promise("a whole number of 0 or more", lambda value, *_: _is_whole(value))
TRUTH = Promise("True or False", lambda value, *_: isinstance(value, bool))
STAGE_RESULT = Promise("a plant_cli.api.Result with a list of tables", _is_result)
BACKBONE = Promise(
    "a plant_cli.api.Backbone",
    lambda value, *_: isinstance(value, Backbone) and _is_whole(value.hidden_size),
)
TOKEN_BATCH = Promise(
    "a plant_cli.api.TokenBatch with ids, spans and dropped of each text",
    lambda value, texts: (
        isinstance(value, TokenBatch)
        and len(value.ids) == len(value.spans) == len(value.dropped) == len(texts)
    ),
)
DECODER_NETWORK = Promise("a plant_cli.api.Decoder", lambda value, *_: isinstance(value, Decoder))
LOSS = Promise(
    "a function of tensors; in stage 2 with `select`, and whole numbers hard_negatives and "
    "random_negatives",
    _is_loss,
)
SIGNAL = Promise(
    "an array with one number for each pair of label and word", lambda value, *_: _numbers(value)
)
DATASET = Promise(
    "a plant_cli.api.Dataset of lazy frames, whose table of labels has the columns label and title",
    _is_dataset,
)
SENTENCE = Promise("a sentence, or None", lambda value, *_: value is None or isinstance(value, str))
NAMED_COLUMNS = Promise(
    "a mapping of options to names of columns",
    lambda value, *_: isinstance(value, Mapping) and _lists([*value, *value.values()], str),
)
REMARKS = Promise("a list of sentences", lambda value, *_: _lists(value, str))
FOREIGN_PREDICTIONS = Promise(
    "a plant_cli.api.ForeignPredictions whose frame has the columns doc_id (text), labels (lists "
    "of text) and scores (lists of Float64)",
    lambda value, *_: (
        isinstance(value, ForeignPredictions)
        and {name: str(dtype) for name, dtype in value.frame.schema.items()} == PREDICTED_COLUMNS
        and isinstance(value.form, str)
        and _lists(value.remarks, str)
    ),
)
VOCABULARY = Promise(
    "a plant_cli.api.ForeignVocabulary whose frame has the columns label and title",
    lambda value, *_: (
        isinstance(value, ForeignVocabulary)
        and {"label", "title"} <= {*value.frame.columns}
        and _lists(value.remarks, str)
    ),
)
METRIC_VALUES = Promise(
    "a list of MetricValue (contributions [N, M] without NaN, per_document [N] or None) and "
    "WeightedMetric, for N documents",
    lambda values, given, *_: (
        _lists(values, MetricValue, WeightedMetric)
        and all(_is_metric(one, len(given.top)) for one in values)
    ),
)
VALUES = Promise(
    "one number for each resample", lambda value, given: _numbers(value, (len(given),))
)
SHORTLIST = Promise("an object with `propose`", lambda value, *_: _can(value, "propose"))
PROPOSALS = Promise(
    "for each document distinct rows of the label index, as whole numbers in one array",
    lambda value: (
        _lists(value, object)
        and all(_numbers(one, (None,), "iu") or one.shape == (0,) for one in value)
    ),
)
SCORER = Promise(
    f"an object with {', '.join(SCORER_METHODS)}", lambda value, *_: _can(value, *SCORER_METHODS)
)
FITTED = Promise(
    f"a plant_cli.api.FittedScorer whose scorer has {', '.join(SCORER_METHODS)}",
    lambda value, *_: isinstance(value, FittedScorer) and _can(value.scorer, *SCORER_METHODS),
)
SCORES = Promise(
    "one or more csr matrices of numbers",
    lambda value: (
        len(value) > 0
        and all(
            getattr(one, "format", None) == "csr" and _numbers(one, (None, None)) for one in value
        )
    ),
)
REASONS = Promise(
    "one plant_cli.api.Reason for each label",
    lambda value, labels: (
        _lists(value, Reason) and len(value) == len(labels) and all(map(_is_reason, value))
    ),
)
CREDIT = Promise(
    "for each view a csr matrix with a number for each label and word of the document",
    lambda value, shape, views: (
        len(value) == views and all(one.format == "csr" and _numbers(one, shape) for one in value)
    ),
)
ARRAYS = Promise(
    "arrays of finite numbers by name",
    lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(k, str) and _numbers(v, None, "biuf") for k, v in value.items())
        and all(map(_is_finite, value.values()))
    ),
)
CHOSEN_PAIRS = Promise(
    "true or false for each pair of document and label",
    lambda value, logits: str(value.dtype) == "torch.bool" and value.shape == logits.shape,
)
LOSS_VALUE = Promise(
    "a tensor with one number, and the gradient of its scores",
    lambda value, scores: (
        value.shape == ()
        and value.is_floating_point()
        and (value.requires_grad or not scores.requires_grad)
    ),
)
HIDDEN_STATES = Promise(
    "hidden states [B, T, H] and a mask [B, T] of true and false, for B documents and the hidden "
    "size H",
    lambda value, documents, size: (
        _lists(value, object)
        and (
            value[0].shape == (documents, value[1].shape[1], size)
            and value[1].shape[0] == documents
            and str(value[1].dtype) == "torch.bool"
        )
    ),
)
LOGITS = Promise(
    "a tensor with one number for each document and label",
    lambda value, documents, labels: (
        value.is_floating_point() and value.shape == (documents, labels)
    ),
)
TOKEN_WEIGHTS = Promise(
    "a tensor [B, l, T] with one number for each document, label and token",
    lambda value, mask, labels: (
        value.is_floating_point() and value.shape == (mask.shape[0], len(labels), mask.shape[1])
    ),
)
REDUCER = Promise("an object with `reduce`", lambda value, *_: _can(value, "reduce"))
REDUCED = Promise("a text", lambda value: isinstance(value, str))
