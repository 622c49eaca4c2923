"""Checks of decoders: shapes, independence of padding, order and label subsets, and one role
for every parameter.
"""

from __future__ import annotations

import inspect
import itertools
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from scipy.sparse import csr_array

from plant_cli.api import (
    ClosedFormDecoder,
    DecoderShape,
    DecoderSpec,
    FoldableDecoder,
    PairDecoder,
    PlantableDecoder,
    Reading,
    SparseDecoder,
    WordDecoder,
)
from plant_cli.testing.checklist import check, default_options

HIDDEN, DECODER_LABELS = 64, 7
LENGTHS, SHORT = (
    (160, 80, 1),
    (9, 5, 1),
)  # tokens of the documents; 160 and 80 are more than a window of 72
TABLE_WORDS, RELEVANT = (
    200,
    60,
)  # words of the relevance table, and those of them that are relevant for a label
DECODER_ROLES = {"attention", "value", "boost", "head"}
DECODER_RTOL, DECODER_ATOL = 1e-5, 1e-5
GREAT = 1e3  # size of hidden states whose scores overflow without care
ADDED_PADDING = 100  # masked positions that are added
MANY, LABELS_AT_A_TIME = 50_000, 16_384  # labels that are scored at once, and at a time
CHOSEN, ALL = torch.tensor([5, 0, 3]), torch.arange(DECODER_LABELS)
require_near = partial(torch.testing.assert_close, rtol=DECODER_RTOL, atol=DECODER_ATOL)


@check(DecoderSpec)
def logits_have_their_shape(spec: DecoderSpec) -> None:
    """Logits [B, L], finite, for documents of one token too."""
    decoder, reading = _prepare(spec)
    logits = decoder(reading)
    assert tuple(logits.shape) == (len(LENGTHS), DECODER_LABELS), (
        f"logits have shape {tuple(logits.shape)}"
    )
    _require_finite("logits", logits)


@check(DecoderSpec)
def some_labels_equal_their_columns(spec: DecoderSpec) -> None:
    """Scoring chosen labels gives what scoring all of them gives there, in the order asked for."""
    decoder, reading = _prepare(spec)
    require_near(decoder(reading, CHOSEN), decoder(reading)[:, CHOSEN])


@check(DecoderSpec)
def chosen_pairs_equal_all_of_them(spec: DecoderSpec) -> None:
    """A decoder that scores pairs gives what scoring all labels gives there, and the gradients
    of these pairs alone.
    """
    decoder, reading = _prepare(spec, PairDecoder)
    wanted = torch.tensor([[True, False, True], [False, False, False], [True, True, False]])
    pairs, full = decoder.score_pairs(reading, CHOSEN, wanted), decoder(reading)[:, CHOSEN]
    require_near(pairs[wanted], full[wanted])
    parameters = list(decoder.parameters())
    gradients = (
        torch.autograd.grad(logits[wanted].square().sum(), parameters, allow_unused=True)
        for logits in (pairs, full)
    )
    for gradient, expected in zip(*gradients, strict=True):
        assert (gradient is None) == (expected is None), "other parameters get a gradient"
        if gradient is not None:
            require_near(gradient, expected)


@check(DecoderSpec)
def padding_changes_nothing(spec: DecoderSpec) -> None:
    """The values at masked positions, and their number, do not matter."""
    decoder, reading = _prepare(spec)
    filled = torch.where(
        reading.mask[..., None], reading.hidden, torch.full_like(reading.hidden, 7.0)
    )
    words = torch.where(reading.mask, reading.words, reading.words[:, :1])
    longer = Reading(
        hidden=torch.cat([filled, torch.full((len(LENGTHS), ADDED_PADDING, HIDDEN), -3.0)], dim=1),
        mask=torch.cat(
            [reading.mask, torch.zeros(len(LENGTHS), ADDED_PADDING, dtype=torch.bool)], dim=1
        ),
        words=torch.cat([words, words[:, :1].expand(-1, ADDED_PADDING)], dim=1),
    )
    require_near(decoder(longer), decoder(reading))


@check(DecoderSpec)
def documents_stand_alone(spec: DecoderSpec) -> None:
    """A document's logits do not depend on its neighbours in the batch."""
    decoder, reading = _prepare(spec)
    logits, order = decoder(reading), torch.tensor([2, 0, 1])
    require_near(decoder(reading.select(order)), logits[order])
    _require_each_alone(decoder, reading, logits)


@check(DecoderSpec)
def attention_sums_to_one(spec: DecoderSpec) -> None:
    """Attention [B, l, T] is a distribution over real tokens, and `rank` the logarithm of one:
    of the same, or of the planted part.
    """
    decoder, reading = _prepare(spec)
    weights, logs = (
        face(reading, torch.tensor([6, 2])) for face in (decoder.attention, decoder.rank)
    )
    assert tuple(weights.shape) == tuple(logs.shape) == (len(LENGTHS), 2, reading.mask.shape[1])
    padding = ~reading.mask[:, None, :].expand_as(weights)
    assert not bool(weights[padding].any()), "padding is attended"
    assert bool(torch.isneginf(logs[padding]).all()), "rank is not -inf at padding"
    for distribution in (weights, logs.exp()):
        require_near(distribution.sum(-1), torch.ones(len(LENGTHS), 2))


@check(DecoderSpec)
def every_parameter_has_one_role(spec: DecoderSpec) -> None:
    """Roles are attention, value and head, and cover the parameters once."""
    decoder, _ = _prepare(spec)
    roles = decoder.parameter_roles()
    assert set(roles) <= DECODER_ROLES, f"unknown roles {sorted(set(roles) - DECODER_ROLES)}"
    assert list(roles.get("attention", [])), (
        "nothing has the role attention: stage 1 would train nothing"
    )
    listed = [id(parameter) for parameters in roles.values() for parameter in parameters]
    assert len(listed) == len(set(listed)), "a parameter has two roles"
    assert set(listed) == {id(parameter) for parameter in decoder.parameters()}, (
        "roles do not cover the parameters"
    )


@check(DecoderSpec)
def ranking_trains_the_attention(spec: DecoderSpec) -> None:
    """Stage 1 reaches every parameter with the role attention and none with the role head."""
    decoder, reading = _prepare(spec)
    _rank_loss(decoder, reading, ALL).backward()
    roles = decoder.parameter_roles()
    assert any(p.grad is not None and bool(p.grad.any()) for p in roles["attention"]), (
        "the attention gets no gradient"
    )
    assert all(p.grad is None or not bool(p.grad.any()) for p in roles.get("head", [])), (
        "the head gets a gradient from ranking"
    )


@check(DecoderSpec)
def sparse_gradients_are_the_dense_ones(spec: DecoderSpec) -> None:
    """A decoder with label tables hands on gradients of the asked rows alone, equal to the
    dense ones.
    """
    (dense, reading), (sparse, _) = _prepare(spec, SparseDecoder), _prepare(spec)
    sparse.sparse = True
    for decoder in (dense, sparse):
        decoder(reading, CHOSEN).square().sum().backward()
        _rank_loss(decoder, reading, CHOSEN).backward()
    for table, other in zip(sparse.label_tables(), dense.label_tables(), strict=True):
        assert len(table) == DECODER_LABELS, (
            f"a label table has {len(table)} rows for {DECODER_LABELS} labels"
        )
        if table.grad is not None:
            assert table.grad.is_sparse, "the gradient of a label table is dense"
            require_near(table.grad.to_dense(), other.grad)


@check(DecoderSpec)
def a_document_without_tokens_gets_logits(spec: DecoderSpec) -> None:
    """A document whose tokens are all masked gets finite logits, and spoils no gradient."""
    decoder, reading = _prepare(spec)
    expected = decoder(reading)[0]
    reading.mask[1] = False
    logits, ranks = decoder(reading), decoder.rank(reading, ALL)
    _require_finite("logits of a document without tokens", logits)
    assert not bool(ranks.isnan().any()), "ranks of a document without tokens are not numbers"
    require_near(logits[0], expected)
    (logits.sum() + ranks[ranks.isfinite()].square().sum()).backward()
    _require_finite(
        "gradients beside a document without tokens",
        *(p.grad for p in decoder.parameters() if p.grad is not None),
    )


@check(DecoderSpec)
def a_single_label_is_scored(spec: DecoderSpec) -> None:
    """A corpus with one label is a corpus: logits and ranks of their shape, of each document
    alone, and gradients that are numbers.
    """
    (decoder, reading), label = _prepare(spec, labels=1), torch.zeros(1, dtype=torch.int64)
    logits, ranks = decoder(reading), decoder.rank(reading, label)
    assert tuple(logits.shape) == (len(LENGTHS), 1), (
        "logits of one label have another shape than [B, 1]"
    )
    assert tuple(ranks.shape) == (len(LENGTHS), 1, reading.mask.shape[1])
    require_near(decoder(reading, label), logits)
    require_near(ranks.exp().sum(-1), torch.ones(len(LENGTHS), 1))
    _require_each_alone(decoder, reading, logits)
    logits.square().sum().backward()
    _require_finite(
        "gradients of one label", *(p.grad for p in decoder.parameters() if p.grad is not None)
    )


@check(DecoderSpec)
def very_many_labels_equal_their_blocks(spec: DecoderSpec) -> None:
    """Of 50,000 labels, all at once and block by block give the same logits; of short
    documents, which many labels can afford.
    """
    decoder, reading = _prepare(spec, labels=MANY, lengths=SHORT)
    with torch.no_grad():
        blocks = torch.split(torch.arange(MANY), LABELS_AT_A_TIME)
        require_near(torch.cat([decoder(reading, block) for block in blocks], 1), decoder(reading))


@check(DecoderSpec)
def words_may_be_missing(spec: DecoderSpec) -> None:
    """A run without a relevance table, and a document of words that the table does not have,
    are scored.
    """
    full = _sample(LENGTHS)
    reading = Reading.of(full.hidden, full.mask)
    _require_finite("logits without a relevance table", _build(spec, relevance=False)(reading))
    decoder = _build(spec)
    _require_finite("logits where no word is in the relevance table", decoder(reading))
    assert not bool(decoder.rank(reading, ALL).isnan().any()), (
        "ranks are not numbers where no word is in the relevance table"
    )


@check(DecoderSpec)
def sharp_attention_stays_a_distribution(spec: DecoderSpec) -> None:
    """Hidden states of great size, whose scores overflow without the usual care, give finite
    logits and rows that sum to one.
    """
    decoder, reading = _prepare(spec)
    great = Reading.of(GREAT * reading.hidden, reading.mask, reading.words)
    _require_finite("logits of great scores", decoder(great))
    require_near(
        decoder.attention(great, ALL).sum(-1), torch.ones(len(LENGTHS), DECODER_LABELS), atol=1e-3
    )


@check(DecoderSpec)
def half_precision_stays_near(spec: DecoderSpec) -> None:
    """Under bf16 and fp16 products logits stay in fp32 and near, and attention, whose softmax is in
    fp32, sums to one.

    With great hidden states rounding may choose another token: logits are finite there, where fp16
    overflows without the usual care.
    """
    decoder, reading = _prepare(spec)
    exact = decoder(reading)
    for dtype, scale in itertools.product((torch.bfloat16, torch.float16), (1.0, GREAT)):
        scaled = Reading.of(scale * reading.hidden, reading.mask, reading.words)
        with torch.autocast("cpu", dtype=dtype):
            coarse, weights = decoder(scaled), decoder.attention(scaled, ALL)
            halved = decoder(Reading.of(scaled.hidden.to(dtype), scaled.mask, scaled.words))
        shown = f"in {dtype} with hidden states of size {scale:g}"
        assert coarse.dtype == weights.dtype == torch.float32, (
            f"logits are {coarse.dtype}, attention is {weights.dtype} {shown}"
        )
        _require_finite(f"logits {shown}", coarse, halved)
        require_near(weights.sum(-1), torch.ones(len(LENGTHS), DECODER_LABELS), atol=1e-3)
        near = scale != 1 or bool(
            (coarse - exact).abs().max() < 0.05 * exact.abs().max().clamp_min(1.0)
        )
        assert near, f"logits are far from those in fp32 {shown}"


@check(DecoderSpec)
def folding_changes_nothing(spec: DecoderSpec) -> None:
    """The folded form gives the same logits, of all labels and of chosen ones."""
    decoder, reading = _prepare(spec, FoldableDecoder)
    with torch.no_grad():
        expected, folded = decoder(reading), decoder.fold()
        require_near(folded(reading), expected)
        require_near(folded(reading, CHOSEN), expected[:, CHOSEN])


@check(DecoderSpec)
def groups_are_read_beside_labels(spec: DecoderSpec) -> None:
    """What a decoder of two levels has read is scored and ranked like the reading itself, and
    not read again in training.
    """
    decoder, reading = _prepare(spec)
    if not hasattr(decoder, "read_groups"):
        pytest.skip("for decoders that score groups of labels")
    assert inspect.getattr_static(decoder, "groups", None) is not None, (
        "groups is no property: Python 3.12 and later see no buffers"
    )
    read = decoder.read_groups(reading)
    assert tuple(decoder.groups.shape) == (DECODER_LABELS,), (
        f"groups have shape {tuple(decoder.groups.shape)}, not one number a label"
    )
    assert tuple(read.group_logits.shape) == (len(LENGTHS), int(decoder.groups.max()) + 1), (
        "group_logits have another shape than [B, G]"
    )
    require_near(decoder(read), decoder(reading))
    require_near(decoder(read, CHOSEN), decoder(reading, CHOSEN))
    require_near(decoder.rank(read, CHOSEN), decoder.rank(reading, CHOSEN))
    decoder.train()
    read = decoder.read_groups(reading)
    require_near(decoder(read), decoder(read))


@check(DecoderSpec)
def planting_changes_nothing_but_parameters(spec: DecoderSpec) -> None:
    """Sharpness and planted tables lie in named parameters: these alone are kept by
    checkpoints, and given back after a trial.
    """
    decoder, reading = _prepare(spec, PlantableDecoder)
    with torch.no_grad():
        before = [p.clone() for p in decoder.parameters()]
        logits, attention, gathered = (
            decoder(reading),
            decoder.attention(reading, ALL),
            decoder.gather(reading, ALL),
        )
        decoder.sharpen(0.25)
        decoder.plant_tables(gathered[0], gathered[1], 8.0)
        assert not torch.allclose(
            decoder.attention(reading, ALL), attention, rtol=DECODER_RTOL, atol=DECODER_ATOL
        ), "sharpen changes no attention"
        for parameter, value in zip(decoder.parameters(), before, strict=True):
            parameter.copy_(value)
        require_near(decoder(reading), logits, rtol=0, atol=0)


@check(DecoderSpec)
def a_sharpness_of_zero_makes_attention_uniform(spec: DecoderSpec) -> None:
    """Each real position of a document gets the same attention, from each label."""
    decoder, reading = _prepare(spec, PlantableDecoder)
    with torch.no_grad():
        decoder.sharpen(0.0)
        uniform = reading.mask / reading.mask.sum(1, keepdim=True)
        require_near(
            decoder.attention(reading, ALL), uniform[:, None].expand(-1, DECODER_LABELS, -1)
        )


@check(DecoderSpec)
def planted_tables_score_by_their_prototypes(spec: DecoderSpec) -> None:
    """A logit is +scale/2 where what is gathered is the label's prototype, and −scale/2 where
    it is the background.
    """
    decoder, reading = _prepare(spec, PlantableDecoder)
    with torch.no_grad():
        gathered = decoder.gather(reading, ALL)
        assert gathered.shape[-1] == decoder.gathered_size, (
            f"gathered_size is {decoder.gathered_size}, not {gathered.shape[-1]}"
        )
        decoder.plant_tables(gathered[0], gathered[1], 8.0)
        require_near(
            decoder(reading)[:2],
            torch.tensor([4.0, -4.0])[:, None].expand(2, DECODER_LABELS),
            atol=1e-2,
        )


@check(DecoderSpec)
def a_planted_head_scores_by_its_weights(spec: DecoderSpec) -> None:
    """A logit is the product of weights and what is gathered, a constant, and a share of the
    strength of attention.
    """
    decoder, reading = _prepare(spec, ClosedFormDecoder)
    with torch.no_grad():
        found, size = decoder.gather_with_strength(reading, ALL), decoder.gathered_size
        assert found.change.shape == (len(LENGTHS), DECODER_LABELS, size), (
            f"the change has shape {tuple(found.change.shape)}, gathered_size is {size}"
        )
        gathered = found.mean.unsqueeze(1) + found.change
        require_near(gathered, decoder.gather(reading, ALL), rtol=1e-3, atol=1e-3)
        weights, constant = torch.randn(DECODER_LABELS, size), torch.randn(DECODER_LABELS)
        of_mean = float(decoder.sees_mean) * torch.randn(DECODER_LABELS, size)
        strength = torch.randn(DECODER_LABELS)
        decoder.plant_head(weights, of_mean, constant, strength)
        expected = torch.einsum("blv,lv->bl", gathered, weights) + found.mean @ of_mean.T
        expected += constant + strength * found.strength
        require_near(decoder(reading), expected, rtol=1e-3, atol=1e-3)


@check(DecoderSpec)
def saved_weights_give_the_same_logits(spec: DecoderSpec) -> None:
    """All that matters is in the state dict, which safetensors can hold; a saved decoder is
    built without the relevance table.
    """
    (decoder, reading), other = _prepare(spec), _build(spec, seed=1, relevance=False)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "decoder.safetensors"
        save_file(
            {name: tensor.contiguous() for name, tensor in decoder.state_dict().items()}, file
        )
        other.load_state_dict(load_file(file))
    require_near(other(reading), decoder(reading), rtol=0, atol=0)


def _require_finite(what: str, *tensors: torch.Tensor) -> None:
    assert all(bool(tensor.isfinite().all()) for tensor in tensors), f"{what}: some are not finite"


def _require_each_alone(decoder: Any, reading: Reading, logits: torch.Tensor) -> None:
    """Each document by itself, without the padding that its neighbours gave it, has its row of
    the logits.
    """
    for row, length in enumerate(LENGTHS):
        require_near(
            decoder(reading.select(slice(row, row + 1), slice(length))), logits[row : row + 1]
        )


def _rank_loss(decoder: Any, reading: Reading, labels: torch.Tensor) -> Any:
    ranks = decoder.rank(reading, labels)
    return ranks[reading.mask[:, None, :].expand_as(ranks)].square().sum()


def _prepare(
    spec: DecoderSpec,
    form: type | None = None,
    labels: int = DECODER_LABELS,
    lengths: Sequence[int] = LENGTHS,
) -> tuple[Any, Reading]:
    """The decoder and a batch of documents for it, with their words if it asks for them, as in
    a run; skips one without this form.
    """
    decoder = _build(spec, labels=labels)
    if form is not None and not isinstance(decoder, form):
        pytest.skip(f"for a {form.__name__}")
    reading = _sample(lengths)
    asked = isinstance(decoder, WordDecoder) and decoder.needs_words
    return decoder, reading if asked else Reading.of(reading.hidden, reading.mask)


def _build(
    spec: DecoderSpec, seed: int = 0, labels: int = DECODER_LABELS, *, relevance: bool = True
) -> Any:
    """The decoder with its default options; `relevance`: of the words of a table, else the run
    has none.
    """
    ids = [f"{number // 3:05d}.{number % 3}" for number in range(labels)]
    parents = [label.split(".")[0] for label in ids]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        prior = torch.linspace(0.01, 0.5, labels)
        table = _relevance(labels) if relevance else None
        shape = DecoderShape(
            hidden=HIDDEN,
            labels=labels,
            prior=prior,
            label_ids=ids,
            parents=parents,
            relevance=table,
        )
        decoder: Any = spec.build(default_options(spec), shape)
    return decoder.eval()


def _relevance(labels: int) -> csr_array:
    """Relevance [L, V] in (0, 1] of as many words for each label, other ones for each."""
    columns = (np.arange(labels)[:, None] * 11 + np.arange(RELEVANT) * 3) % TABLE_WORDS
    values = 1 - np.random.default_rng(6).random(columns.size, dtype=np.float32)
    rows = np.arange(0, columns.size + 1, RELEVANT)
    return csr_array((values, np.sort(columns).ravel(), rows), shape=(labels, TABLE_WORDS))


def _sample(lengths: Sequence[int]) -> Reading:
    """Documents of so many tokens, with words of which some are outside the relevance table."""
    draw = torch.Generator().manual_seed(5)
    mask = torch.arange(max(lengths))[None, :] < torch.tensor(lengths)[:, None]
    hidden = torch.randn(len(lengths), max(lengths), HIDDEN, generator=draw)
    words = torch.randint(-1, TABLE_WORDS, mask.shape, generator=draw).masked_fill(~mask, -1)
    return Reading.of(hidden * mask[..., None], mask, words)
