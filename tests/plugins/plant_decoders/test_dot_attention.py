"""One dot product: the logits of a plain loop, and nothing but what the decoder names is trained."""

import pytest
import torch
from plant_decoders import DotAttentionOptions
from plant_decoders.label_attention import DotAttention

from plant_cli.api import ComponentError, DecoderShape, Reading

HIDDEN, LABELS, POOL = 12, 5, 3


def make() -> tuple[DotAttention, Reading]:
    torch.manual_seed(0)
    decoder = DotAttention(DotAttentionOptions(pool=POOL, init_scale=1.0), DecoderShape(hidden=HIDDEN, labels=LABELS)).double()
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter)
    hidden, mask = torch.randn(2, 7, HIDDEN, dtype=torch.float64), torch.ones(2, 7, dtype=torch.bool)
    mask[1, 4:] = False
    return decoder, Reading.of(hidden, mask)


def test_it_is_the_plain_loop() -> None:
    decoder, reading = make()
    logits = decoder(reading)
    for document in range(2):
        states = reading.hidden[document][reading.mask[document]]
        for label in range(LABELS):
            attention = torch.softmax(states @ decoder.queries[label], dim=0)
            boosted = decoder.boost_shift[label] + decoder.boost_scale[label] * (attention @ states)
            pooled = boosted.view(POOL, -1).mean(1)
            expected = pooled @ decoder.projection + decoder.common_bias[0]
            torch.testing.assert_close(logits[document, label].double(), expected, rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(decoder.attention(reading, torch.arange(LABELS))[document, label][: len(states)].double(), attention)


def test_what_it_trains_has_a_role() -> None:
    decoder, _ = make()
    named = {id(parameter) for parameters in decoder.parameter_roles().values() for parameter in parameters}
    assert named == {id(parameter) for parameter in decoder.parameters()}
    assert not decoder.parameter_roles()["value"]


def test_folded_scores_are_the_same() -> None:
    decoder, reading = make()
    torch.testing.assert_close(decoder.fold()(reading), decoder(reading))


def test_planted_queries_are_multiplied_with_states_as_they_are() -> None:
    decoder, reading = make()
    queries = torch.randn(LABELS, HIDDEN, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    decoder.plant_queries(queries)
    expected = torch.softmax(queries @ reading.hidden[0].T, dim=-1)
    torch.testing.assert_close(decoder.attention(reading, torch.arange(LABELS))[0], expected, rtol=0, atol=1e-6)


def test_a_rank_above_the_hidden_size_is_refused() -> None:
    with pytest.raises(ComponentError, match="rank 13"):
        DotAttention(DotAttentionOptions(pool=POOL, label_rank=HIDDEN + 1), DecoderShape(hidden=HIDDEN, labels=LABELS))
