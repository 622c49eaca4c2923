"""What a decoder owes: shapes, independence of padding, order and label subsets, and one role for every parameter."""

from __future__ import annotations

import inspect
import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from plant_cli.api import DecoderShape, DecoderSpec, FoldableDecoder, PairDecoder, PlantableDecoder, Reading, SparseDecoder, WordDecoder
from plant_cli.testing.checklist import check, default_options

HIDDEN, LABELS = 64, 7
LENGTHS, SHORT = (160, 80, 1), (9, 5, 1)  # tokens of the documents; 160 and 80 are more than a window of 72
WORDS, RELEVANT = 200, 60  # words of the relevance table, and those of them that are relevant for a label
ROLES = {"attention", "value", "boost", "head"}
RTOL, ATOL = 1e-5, 1e-5
GREAT = 1e3  # size of hidden states whose scores overflow without care
PADDING = 100  # masked positions that are added
MANY, BLOCK = 50_000, 16_384  # labels that are scored at once, and at a time


@check(DecoderSpec)
def logits_have_their_shape(spec: DecoderSpec) -> None:
    """Logits [B, L], finite, for documents of one token too."""
    decoder = _build(spec)
    logits = decoder(_sample(decoder))
    assert tuple(logits.shape) == (len(LENGTHS), LABELS), f"logits have shape {tuple(logits.shape)}"
    assert bool(logits.isfinite().all()), "some logits are not finite"


@check(DecoderSpec)
def some_labels_equal_their_columns(spec: DecoderSpec) -> None:
    """Scoring chosen labels gives what scoring all of them gives there, in the order asked for."""
    import torch

    decoder, chosen = _build(spec), torch.tensor([5, 0, 3])
    reading = _sample(decoder)
    torch.testing.assert_close(decoder(reading, chosen), decoder(reading)[:, chosen], rtol=RTOL, atol=ATOL)


@check(DecoderSpec)
def chosen_pairs_equal_all_of_them(spec: DecoderSpec) -> None:
    """A decoder that scores pairs gives what scoring all labels gives there, and the gradients of these pairs alone."""
    import torch

    decoder, labels = _build(spec), torch.tensor([5, 0, 3])
    reading = _sample(decoder)
    can_choose = isinstance(decoder, PairDecoder)
    if not can_choose:
        pytest.skip("for decoders that score chosen pairs")
    wanted = torch.tensor([[True, False, True], [False, False, False], [True, True, False]])
    found, whole = decoder.score_pairs(reading, labels, wanted), decoder(reading)[:, labels]
    torch.testing.assert_close(found[wanted], whole[wanted], rtol=RTOL, atol=ATOL)
    parameters = list(decoder.parameters())
    given = (torch.autograd.grad(logits[wanted].square().sum(), parameters, allow_unused=True) for logits in (found, whole))
    for ours, expected in zip(*given, strict=True):
        assert (ours is None) == (expected is None), "other parameters get a gradient"
        if ours is not None:
            torch.testing.assert_close(ours, expected, rtol=RTOL, atol=ATOL)


@check(DecoderSpec)
def padding_changes_nothing(spec: DecoderSpec) -> None:
    """What stands at masked positions, and how many there are, does not matter."""
    import torch

    decoder = _build(spec)
    reading = _sample(decoder)
    filled = torch.where(reading.mask[..., None], reading.hidden, torch.full_like(reading.hidden, 7.0))
    words = torch.where(reading.mask, reading.words, reading.words[:, :1])
    longer = Reading(
        hidden=torch.cat([filled, torch.full((len(LENGTHS), PADDING, HIDDEN), -3.0)], dim=1),
        mask=torch.cat([reading.mask, torch.zeros(len(LENGTHS), PADDING, dtype=torch.bool)], dim=1),
        words=torch.cat([words, words[:, :1].expand(-1, PADDING)], dim=1),
    )
    torch.testing.assert_close(decoder(longer), decoder(reading), rtol=RTOL, atol=ATOL)


@check(DecoderSpec)
def documents_stand_alone(spec: DecoderSpec) -> None:
    """A document's logits do not depend on its neighbours in the batch."""
    import torch

    decoder = _build(spec)
    reading = _sample(decoder)
    order = torch.tensor([2, 0, 1])
    torch.testing.assert_close(decoder(reading.select(order)), decoder(reading)[order], rtol=RTOL, atol=ATOL)
    for number, length in enumerate(LENGTHS):
        alone = decoder(reading.select(slice(number, number + 1), slice(length)))
        torch.testing.assert_close(alone, decoder(reading)[number : number + 1], rtol=RTOL, atol=ATOL)


@check(DecoderSpec)
def attention_sums_to_one(spec: DecoderSpec) -> None:
    """Attention [B, l, T] is a distribution over real tokens, and `rank` the logarithm of one: of the same, or of the planted part."""
    import torch

    decoder, chosen = _build(spec), torch.tensor([6, 2])
    reading = _sample(decoder)
    weights, logs = decoder.attention(reading, chosen), decoder.rank(reading, chosen)
    assert tuple(weights.shape) == tuple(logs.shape) == (len(LENGTHS), 2, reading.mask.shape[1])
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(LENGTHS), 2), rtol=RTOL, atol=ATOL)
    padding = ~reading.mask[:, None, :].expand_as(weights)
    assert not bool(weights[padding].any()), "padding is attended"
    assert bool(torch.isneginf(logs[padding]).all()), "rank is not -inf at padding"
    torch.testing.assert_close(logs.exp().sum(-1), torch.ones(len(LENGTHS), 2), rtol=RTOL, atol=ATOL)


@check(DecoderSpec)
def every_parameter_has_one_role(spec: DecoderSpec) -> None:
    """Roles are attention, value and head, and cover the parameters once."""
    decoder = _build(spec)
    roles = decoder.parameter_roles()
    assert set(roles) <= ROLES, f"unknown roles {sorted(set(roles) - ROLES)}"
    assert list(roles.get("attention", [])), "nothing has the role attention: stage 1 would train nothing"
    listed = [id(parameter) for parameters in roles.values() for parameter in parameters]
    assert len(listed) == len(set(listed)), "a parameter has two roles"
    assert set(listed) == {id(parameter) for parameter in decoder.parameters()}, "roles do not cover the parameters"


@check(DecoderSpec)
def ranking_trains_the_attention(spec: DecoderSpec) -> None:
    """Stage 1 reaches every parameter with the role attention and none with the role head."""
    import torch

    decoder = _build(spec)
    reading = _sample(decoder)
    ranks = decoder.rank(reading, torch.arange(LABELS))
    ranks[reading.mask[:, None, :].expand_as(ranks)].square().sum().backward()
    roles = decoder.parameter_roles()
    assert any(p.grad is not None and bool(p.grad.any()) for p in roles["attention"]), "the attention gets no gradient"
    assert all(p.grad is None or not bool(p.grad.any()) for p in roles.get("head", [])), "the head gets a gradient from ranking"


@check(DecoderSpec)
def sparse_gradients_are_the_dense_ones(spec: DecoderSpec) -> None:
    """A decoder with label tables hands on gradients of the asked rows alone, equal to the dense ones."""
    import torch

    dense, sparse, chosen = _build(spec), _build(spec), torch.tensor([5, 0, 3])
    has_tables = isinstance(sparse, SparseDecoder)
    if not has_tables:
        pytest.skip("for decoders with label tables")
    reading = _sample(sparse)
    sparse.sparse = True
    for decoder in (dense, sparse):
        decoder(reading, chosen).square().sum().backward()
        ranks = decoder.rank(reading, chosen)
        ranks[reading.mask[:, None, :].expand_as(ranks)].square().sum().backward()
    for table, other in zip(sparse.label_tables(), dense.label_tables(), strict=True):
        assert len(table) == LABELS, f"a label table has {len(table)} rows for {LABELS} labels"
        if table.grad is not None:
            assert table.grad.is_sparse, "the gradient of a label table is dense"
            torch.testing.assert_close(table.grad.to_dense(), other.grad, rtol=RTOL, atol=ATOL)


@check(DecoderSpec)
def a_document_without_tokens_gets_logits(spec: DecoderSpec) -> None:
    """A document whose tokens are all masked gets finite logits, and spoils no gradient."""
    import torch

    decoder = _build(spec)
    reading = _sample(decoder)
    reading.mask[1] = False
    logits, ranks = decoder(reading), decoder.rank(reading, torch.arange(LABELS))
    assert bool(logits.isfinite().all()), "a document without tokens has logits that are not finite"
    assert not bool(ranks.isnan().any()), "ranks of a document without tokens are not numbers"
    torch.testing.assert_close(logits[0], decoder(_sample(decoder))[0], rtol=RTOL, atol=ATOL)
    (logits.sum() + ranks[ranks.isfinite()].square().sum()).backward()
    for name, parameter in decoder.named_parameters():
        assert parameter.grad is None or bool(parameter.grad.isfinite().all()), f"the gradient of {name} is not finite"


@check(DecoderSpec)
def a_single_label_is_scored(spec: DecoderSpec) -> None:
    """A corpus with one label is a corpus: logits and ranks of their shape, of each document alone, and gradients that are numbers."""
    import torch

    decoder, label = _build(spec, labels=1), torch.zeros(1, dtype=torch.int64)
    reading = _sample(decoder)
    logits, ranks = decoder(reading), decoder.rank(reading, label)
    assert tuple(logits.shape) == (len(LENGTHS), 1), "logits of one label have another shape than [B, 1]"
    assert tuple(ranks.shape) == (len(LENGTHS), 1, reading.mask.shape[1])
    torch.testing.assert_close(decoder(reading, label), logits, rtol=RTOL, atol=ATOL)
    torch.testing.assert_close(ranks.exp().sum(-1), torch.ones(len(LENGTHS), 1), rtol=RTOL, atol=ATOL)
    for number, length in enumerate(LENGTHS):
        alone = decoder(reading.select(slice(number, number + 1), slice(length)))
        torch.testing.assert_close(alone, logits[number : number + 1], rtol=RTOL, atol=ATOL)
    logits.square().sum().backward()
    assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in decoder.parameters()), "a gradient of one label is not finite"


@check(DecoderSpec)
def very_many_labels_equal_their_blocks(spec: DecoderSpec) -> None:
    """Of 50,000 labels, all at once and block by block give the same logits; of short documents, which many labels can afford."""
    import torch

    decoder = _build(spec, labels=MANY)
    reading = _sample(decoder, SHORT)
    with torch.no_grad():
        blocks = torch.split(torch.arange(MANY), BLOCK)
        torch.testing.assert_close(torch.cat([decoder(reading, block) for block in blocks], 1), decoder(reading), rtol=RTOL, atol=ATOL)


@check(DecoderSpec)
def words_may_be_missing(spec: DecoderSpec) -> None:
    """A run without a relevance table, and a document of words that the table does not have, are scored."""
    import torch

    without = _build(spec, relevance=False)
    reading = Reading.of(_sample().hidden, _sample().mask)
    assert bool(without(reading).isfinite().all()), "some logits are not finite without a relevance table"
    decoder = _build(spec)
    assert bool(decoder(reading).isfinite().all()), "some logits are not finite where no word is in the relevance table"
    ranks = decoder.rank(reading, torch.arange(LABELS))
    assert not bool(ranks.isnan().any()), "ranks are not numbers where no word is in the relevance table"


@check(DecoderSpec)
def sharp_attention_stays_a_distribution(spec: DecoderSpec) -> None:
    """Hidden states of great size, whose scores overflow without the usual care, give finite logits and rows that sum to one."""
    import torch

    decoder = _build(spec)
    reading = _sample(decoder)
    great = Reading.of(GREAT * reading.hidden, reading.mask, reading.words)
    assert bool(decoder(great).isfinite().all()), "logits are not finite where scores are great"
    weights = decoder.attention(great, torch.arange(LABELS))
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(LENGTHS), LABELS), rtol=RTOL, atol=1e-3)


@check(DecoderSpec)
def half_precision_stays_near(spec: DecoderSpec) -> None:
    """Under bf16 and fp16 products logits stay in fp32 and near, and attention, whose softmax is in fp32, sums to one.

    With great hidden states rounding may choose another token: logits are finite there, where fp16 overflows without the usual care.
    """
    import torch

    decoder = _build(spec)
    reading = _sample(decoder)
    exact = decoder(reading)
    for dtype, scale in itertools.product((torch.bfloat16, torch.float16), (1.0, GREAT)):
        given = Reading.of(scale * reading.hidden, reading.mask, reading.words)
        with torch.autocast("cpu", dtype=dtype):
            coarse, weights = decoder(given), decoder.attention(given, torch.arange(LABELS))
            halved = decoder(Reading.of(given.hidden.to(dtype), given.mask, given.words))
        shown = f"in {dtype} with hidden states of size {scale:g}"
        assert coarse.dtype == weights.dtype == torch.float32, f"logits are {coarse.dtype}, attention is {weights.dtype} {shown}"
        assert bool(coarse.isfinite().all() and halved.isfinite().all()), f"logits are not finite {shown}"
        torch.testing.assert_close(weights.sum(-1), torch.ones(len(LENGTHS), LABELS), rtol=RTOL, atol=1e-3)
        if scale == 1:
            assert bool((coarse - exact).abs().max() < 0.05 * exact.abs().max().clamp_min(1.0)), (
                f"logits are far from those in fp32 {shown}"
            )


@check(DecoderSpec)
def folding_changes_nothing(spec: DecoderSpec) -> None:
    """The folded form gives the same logits, of all labels and of chosen ones."""
    import torch

    decoder, chosen = _build(spec), torch.tensor([5, 0, 3])
    reading = _sample(decoder)
    can_fold = isinstance(decoder, FoldableDecoder)
    if not can_fold:
        pytest.skip("for decoders that can be folded")
    with torch.no_grad():
        expected, folded = decoder(reading), decoder.fold()
        torch.testing.assert_close(folded(reading), expected, rtol=RTOL, atol=ATOL)
        torch.testing.assert_close(folded(reading, chosen), expected[:, chosen], rtol=RTOL, atol=ATOL)


@check(DecoderSpec)
def groups_are_read_beside_labels(spec: DecoderSpec) -> None:
    """What a decoder of two levels has read is scored and ranked like the reading itself, and not read again in training."""
    import torch

    decoder, chosen = _build(spec), torch.tensor([5, 0, 3])
    if not hasattr(decoder, "read_groups"):
        pytest.skip("for decoders that score groups of labels")
    assert inspect.getattr_static(decoder, "groups", None) is not None, "groups is no property: Python 3.12 and later see no buffers"
    read = decoder.read_groups(reading := _sample(decoder))
    assert tuple(decoder.groups.shape) == (LABELS,), f"groups have shape {tuple(decoder.groups.shape)}, not one number a label"
    assert tuple(read.group_logits.shape) == (len(LENGTHS), int(decoder.groups.max()) + 1), "group_logits have another shape than [B, G]"
    torch.testing.assert_close(decoder(read), decoder(reading), rtol=RTOL, atol=ATOL)
    torch.testing.assert_close(decoder(read, chosen), decoder(reading, chosen), rtol=RTOL, atol=ATOL)
    torch.testing.assert_close(decoder.rank(read, chosen), decoder.rank(reading, chosen), rtol=RTOL, atol=ATOL)
    decoder.train()
    read = decoder.read_groups(reading)
    torch.testing.assert_close(decoder(read), decoder(read), rtol=RTOL, atol=ATOL)


@check(DecoderSpec)
def planting_changes_nothing_but_parameters(spec: DecoderSpec) -> None:
    """Sharpness and planted tables lie in named parameters: these alone are kept by checkpoints, and given back after a trial."""
    import torch

    decoder, chosen = _build(spec), torch.arange(LABELS)
    can_plant = isinstance(decoder, PlantableDecoder)
    if not can_plant:
        pytest.skip("for decoders whose tables can be planted")
    with torch.no_grad():
        before, reading = [p.clone() for p in decoder.parameters()], _sample(decoder)
        logits, attention = decoder(reading), decoder.attention(reading, chosen)
        gathered = decoder.gather(reading, chosen)
        decoder.sharpen(0.25)
        decoder.plant_tables(gathered[0], gathered[1], 8.0)
        assert not torch.allclose(decoder.attention(reading, chosen), attention, rtol=RTOL, atol=ATOL), "sharpen changes no attention"
        for parameter, value in zip(decoder.parameters(), before, strict=True):
            parameter.copy_(value)
        torch.testing.assert_close(decoder(reading), logits, rtol=0, atol=0)


@check(DecoderSpec)
def planted_tables_score_by_their_prototypes(spec: DecoderSpec) -> None:
    """A logit is +scale/2 where what is gathered is the label's prototype, and −scale/2 where it is the background."""
    import torch

    decoder = _build(spec)
    reading = _sample(decoder)
    can_plant = isinstance(decoder, PlantableDecoder)
    if not can_plant:
        pytest.skip("for decoders whose tables can be planted")
    with torch.no_grad():
        gathered = decoder.gather(reading, torch.arange(LABELS))
        assert gathered.shape[-1] == decoder.gathered_size, f"gathered_size is {decoder.gathered_size}, not {gathered.shape[-1]}"
        decoder.plant_tables(gathered[0], gathered[1], 8.0)
        expected = torch.tensor([4.0, -4.0])[:, None].expand(2, LABELS)
        torch.testing.assert_close(decoder(reading)[:2], expected, rtol=RTOL, atol=1e-2)


@check(DecoderSpec)
def saved_weights_give_the_same_logits(spec: DecoderSpec) -> None:
    """All that matters is in the state dict, which safetensors can hold; a saved decoder is built without the relevance table."""
    import torch
    from safetensors.torch import load_file, save_file

    decoder, other = _build(spec), _build(spec, seed=1, relevance=False)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "decoder.safetensors"
        save_file({name: tensor.contiguous() for name, tensor in decoder.state_dict().items()}, file)
        other.load_state_dict(load_file(file))
    reading = _sample(decoder)
    torch.testing.assert_close(other(reading), decoder(reading), rtol=0, atol=0)


def _build(spec: DecoderSpec, seed: int = 0, labels: int = LABELS, *, relevance: bool = True) -> Any:
    """The decoder with its default options; `relevance`: of the words of a table, else the run has none."""
    import torch

    ids = [f"{number // 3:05d}.{number % 3}" for number in range(labels)]
    parents = [label.split(".")[0] for label in ids]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        prior = torch.linspace(0.01, 0.5, labels)
        table = _relevance(labels) if relevance else None
        shape = DecoderShape(hidden=HIDDEN, labels=labels, prior=prior, label_ids=ids, parents=parents, relevance=table)
        decoder: Any = spec.build(default_options(spec), shape)
    return decoder.eval()


def _relevance(labels: int) -> csr_array:
    """Relevance [L, V] in (0, 1] of as many words for each label, other ones for each."""
    columns = (np.arange(labels)[:, None] * 11 + np.arange(RELEVANT) * 3) % WORDS
    values = 1 - np.random.default_rng(6).random(columns.size, dtype=np.float32)
    rows = np.arange(0, columns.size + 1, RELEVANT)
    return csr_array((values, np.sort(columns).ravel(), rows), shape=(labels, WORDS))


def _sample(decoder: object = None, lengths: Sequence[int] = LENGTHS) -> Reading:
    """Documents of so many tokens. Their words, some outside the table, are given to a decoder that asks for them, as in a run."""
    import torch

    draw = torch.Generator().manual_seed(5)
    mask = torch.arange(max(lengths))[None, :] < torch.tensor(lengths)[:, None]
    hidden = torch.randn(len(lengths), max(lengths), HIDDEN, generator=draw)
    words = torch.randint(-1, WORDS, mask.shape, generator=draw).masked_fill(~mask, -1)
    asked = isinstance(decoder, WordDecoder) and decoder.needs_words
    return Reading.of(hidden * mask[..., None], mask, words if asked else None)
