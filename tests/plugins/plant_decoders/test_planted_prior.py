"""Kept planting: attention with relevance in its scores equals the plain formula, values and
gradients, in double precision.
"""

import numpy as np
import pytest
import torch
from plant_decoders import LabelAttentionOptions
from plant_decoders.label_attention import LabelAttention
from plant_decoders.planted_prior import keep_most_relevant
from scipy.sparse import csr_array
from torch import Tensor

from plant_cli.api import DecoderShape, Reading

LABELS, HIDDEN, WORDS, HEADS = 7, 12, 9, 3


def table() -> csr_array:
    draw = np.random.default_rng(3)
    dense = np.where(draw.random((LABELS, WORDS)) < 0.4, draw.random((LABELS, WORDS)), 0)
    return csr_array(dense.astype(np.float32))


def build(relevance: csr_array | None, **options: object) -> LabelAttention:
    torch.manual_seed(0)
    given = {"heads": HEADS, "pool": 5, "relevance_weight": 1.0, "relevance_floor": 0.1, **options}
    shape = DecoderShape(hidden=HIDDEN, labels=LABELS, relevance=relevance)
    decoder = LabelAttention(LabelAttentionOptions(**given), shape).double()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return decoder


def batch() -> Reading:
    draw = torch.Generator().manual_seed(5)
    hidden = torch.randn(4, 6, HIDDEN, generator=draw, dtype=torch.float64)
    mask = torch.ones(4, 6, dtype=torch.bool)
    mask[1, 3:] = False
    mask[2, 0] = False
    words = torch.randint(-1, WORDS, (4, 6), generator=draw)
    words[3] = -1  # no word of this document is in the table
    return Reading.of(hidden, mask, words)


def plain(decoder: LabelAttention, reading: Reading, relevance: csr_array) -> tuple[Tensor, Tensor]:
    """Logits [B, L] and attention [B, h, L, T] by the formula."""
    assert decoder.prior is not None
    dense = torch.from_numpy(relevance.toarray()).double()
    r = torch.where(reading.words >= 0, dense[:, reading.words.clamp(min=0)], 0).transpose(0, 1)
    added = torch.log(1 + (r / decoder.prior.floor) ** 2)
    states = decoder.norm(reading.hidden)
    queries, directions, constant = decoder.terms()
    q, g = (x.view(LABELS, HEADS, -1) for x in (queries, directions))
    k, v = (
        x.view(*states.shape[:2], HEADS, -1)
        for x in (decoder.to_key(states), decoder.to_value(states))
    )
    scores = torch.einsum("lhd,bthd->bhlt", q, k) / (HIDDEN / HEADS) ** 0.5
    scores = scores + decoder.prior.weights[:, None, None] * added.unsqueeze(1)
    scores = scores.masked_fill(~reading.mask[:, None, None], -torch.inf)
    attention = torch.softmax(scores, -1)
    strength = (
        torch.logsumexp(scores, -1) - reading.mask.sum(1).double().log()[:, None, None]
    ).mean(1)
    means = (attention * torch.einsum("lhd,bthd->bhlt", g, v)).sum((1, 3))
    return means + constant + decoder.prior.strength * strength, attention


def test_logits_and_gradients_are_those_of_the_formula() -> None:
    relevance = table()
    decoder, reading = build(relevance), batch()
    expected, attention = plain(decoder, reading, relevance)
    found = decoder(reading)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(
        decoder.attention(reading, torch.arange(LABELS)), attention.mean(1), rtol=1e-10, atol=1e-12
    )
    upstream = torch.randn_like(expected)
    parameters = list(decoder.parameters())
    plainly = torch.autograd.grad(expected, parameters, upstream, allow_unused=True)
    ours = torch.autograd.grad(found, parameters, upstream, allow_unused=True)
    assert decoder.prior is not None
    names = [name for name, _ in decoder.named_parameters()]
    assert {"prior.weights", "prior.strength"} <= set(names)
    for name, one, other in zip(names, ours, plainly, strict=True):
        assert one is not None, name
        assert other is not None, name
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10, msg=name)


def test_chosen_labels_and_pairs_have_the_scores_of_all() -> None:
    relevance = table()
    decoder, reading, labels = build(relevance), batch(), torch.tensor([5, 0, 3])
    every = decoder(reading)
    torch.testing.assert_close(decoder(reading, labels), every[:, labels])
    wanted = torch.rand(4, 3, generator=torch.Generator().manual_seed(1)) < 0.5
    pairs = decoder.score_pairs(reading, labels, wanted)
    torch.testing.assert_close(pairs[wanted], every[:, labels][wanted])
    torch.testing.assert_close(decoder.fold()(reading, labels), every[:, labels])
    torch.testing.assert_close(
        decoder.fold().attention(reading, labels), decoder.attention(reading, labels)
    )


def test_without_queries_words_alone_give_the_same() -> None:
    decoder, reading, labels = build(table(), pooled=True), batch(), torch.arange(LABELS)
    decoder.sharpen(0.0)
    with torch.no_grad():
        assert decoder.prior is not None
        decoder.prior.weights.copy_(torch.tensor([0.5, 1.0, 2.0]))
        by_words = decoder(reading)
        folded = decoder.fold()(reading, labels)
        found = decoder.gather_with_strength(reading, labels)
        wanted = torch.rand(4, LABELS, generator=torch.Generator().manual_seed(1)) < 0.5
        pairs = decoder.score_pairs(reading, labels, wanted)
    by_tokens = decoder(reading)  # with a gradient
    torch.testing.assert_close(by_words, by_tokens)
    torch.testing.assert_close(folded, by_tokens)
    torch.testing.assert_close(pairs[wanted], by_tokens[wanted])
    with torch.no_grad():  # a query that is next to nothing takes the other way
        decoder.to_query.bias.fill_(1e-12)
        other = decoder.gather_with_strength(reading, labels)
    torch.testing.assert_close(tuple(found), tuple(other))


def test_without_relevance_attention_is_the_learned_one() -> None:
    decoder = build(None)
    other = build(None, relevance_weight=0.0)
    other.load_state_dict(decoder.state_dict(), strict=False)
    reading = batch()
    assert torch.equal(decoder(reading), other(reading))
    mean, change, strength = decoder.gather_with_strength(reading, torch.arange(LABELS))
    gathered = mean.unsqueeze(1) + change
    torch.testing.assert_close(gathered, other.gather(reading, torch.arange(LABELS)))
    assert not strength.any()


def test_attention_that_starts_from_nothing_keeps_no_table() -> None:
    given = LabelAttentionOptions(heads=HEADS, pool=5, relevance_weight=1.0)
    shape = DecoderShape(hidden=HIDDEN, labels=LABELS, relevance=table(), planted=False)
    prior = LabelAttention(given, shape).prior
    assert prior is not None
    assert not len(prior.table.values)


def test_a_text_without_words_of_the_table_has_the_learned_attention() -> None:
    planted, reading = build(table()), batch()
    learned = build(None, relevance_weight=0.0)
    learned.load_state_dict(
        {k: v for k, v in planted.state_dict().items() if not k.startswith("prior.")}
    )
    alone = reading.select(slice(3, 4))
    labels = torch.arange(LABELS)
    torch.testing.assert_close(planted.attention(alone, labels), learned.attention(alone, labels))


@pytest.mark.parametrize("pooled", [False, True])
def test_the_head_that_is_planted_gives_its_formula(pooled: bool) -> None:
    decoder, reading, labels = build(table(), pooled=pooled), batch(), torch.arange(LABELS)
    draw = torch.Generator().manual_seed(8)
    weights, of_mean = torch.randn(
        2, LABELS, decoder.gathered_size, generator=draw, dtype=torch.float64
    )
    of_mean *= decoder.sees_mean
    constant = torch.randn(LABELS, generator=draw, dtype=torch.float64)
    of_strength = torch.randn(LABELS, generator=draw, dtype=torch.float64)
    decoder.plant_head(weights, of_mean, constant, of_strength)
    mean, change, strength = decoder.gather_with_strength(reading, labels)
    expected = torch.einsum("blv,lv->bl", mean.unsqueeze(1) + change, weights)
    expected += mean @ of_mean.T + constant + of_strength * strength
    torch.testing.assert_close(decoder(reading), expected, rtol=1e-5, atol=1e-5)


def test_the_mean_state_counts_beside_attention() -> None:
    decoder, other, reading = build(table(), pooled=True), build(table()), batch()
    assert decoder.pooled is not None
    assert decoder.pooled.weights.any()
    other.load_state_dict(
        {k: v for k, v in decoder.state_dict().items() if not k.startswith("pooled.")}
    )
    states, mask = decoder.norm(reading.hidden), reading.mask
    means = torch.stack([x[real].mean(0) for x, real in zip(states, mask, strict=True)])
    expected = other(reading) + means @ decoder.pooled.weights.T
    torch.testing.assert_close(decoder(reading), expected)
    some = torch.tensor([4, 1])
    torch.testing.assert_close(decoder(reading, some), expected[:, some])
    torch.testing.assert_close(decoder.fold()(reading, some), expected[:, some])


@pytest.mark.parametrize("pooled", [False, True])
def test_what_a_token_is_worth_is_what_the_logit_loses_without_it(pooled: bool) -> None:
    relevance = table()
    decoder, reading, labels = build(relevance, pooled=pooled), batch(), torch.arange(LABELS)
    losses = decoder.leave_out_tokens(reading, labels)
    whole = decoder(reading)
    for token in range(6):
        mask = reading.mask.clone()
        mask[:, token] = False
        without = decoder(Reading(hidden=reading.hidden, mask=mask, words=reading.words))
        there = reading.mask[:, token]
        torch.testing.assert_close(
            losses[there][:, :, token], (whole - without)[there], rtol=1e-6, atol=1e-8
        )


def test_gathered_with_several_factors_is_that_of_sharpened_attention() -> None:
    decoder, reading, labels = build(table()), batch(), torch.arange(LABELS)
    found = decoder.gather_sharpened(reading, labels, (0.0, 0.5, 1.0))
    torch.testing.assert_close(found[2], decoder.gather(reading, labels))
    decoder.sharpen(0.5)
    torch.testing.assert_close(found[1], decoder.gather(reading, labels))
    decoder.sharpen(0.0)
    torch.testing.assert_close(found[0], decoder.gather(reading, labels))


@pytest.mark.parametrize("words", [1, 2, 100])
def test_only_the_most_relevant_words_are_kept(words: int) -> None:
    relevance = table()
    kept = keep_most_relevant(relevance, words)
    assert kept is not None
    for row in range(LABELS):
        dense, ours = relevance.toarray()[row], kept.toarray()[row]
        best = np.sort(dense)[::-1][:words]
        assert sorted(ours[ours > 0], reverse=True) == pytest.approx(best[best > 0])
        assert np.array_equal(ours[ours > 0], dense[ours > 0])


def test_weights_can_be_read_without_a_table() -> None:
    decoder, fresh, reading = build(table()), build(None), batch()
    fresh.load_state_dict(decoder.state_dict())
    assert torch.equal(fresh(reading), decoder(reading))
