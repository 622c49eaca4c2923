"""The network beside its equations as plain loops, in double precision."""

from __future__ import annotations

import pytest
import torch
from plant_awd_lstm.network import Encoder, LanguageModel, LstmLayer, Sizes, detach, first_rows, locked_dropout
from plant_awd_lstm.options import AwdLstmOptions
from torch import Tensor
from torch.nn import functional

QUIET = AwdLstmOptions(embedding_dropout=0, input_dropout=0, hidden_dropout=0, output_dropout=0, weight_dropout=0)


def plain_lstm(layer: LstmLayer, inputs: Tensor, hidden: Tensor, cell: Tensor, recurrent: Tensor) -> Tensor:
    """One token after the other, one gate after the other."""
    size, outputs = hidden.shape[-1], []
    for token in inputs.unbind(1):
        parts = token @ layer.weight_ih.T + layer.bias_ih + hidden @ recurrent.T + layer.bias_hh
        enter, forget, new, leave = (parts[:, i * size : (i + 1) * size] for i in range(4))
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
        hidden = torch.sigmoid(leave) * torch.tanh(cell)
        outputs.append(hidden)
    return torch.stack(outputs, 1)


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_a_layer_is_an_lstm_with_dropped_recurrent_weights(share: float) -> None:
    torch.manual_seed(0)
    layer = LstmLayer(3, 5, share).double()
    inputs = torch.randn(2, 7, 3, dtype=torch.float64, requires_grad=True)
    state = (torch.randn(1, 2, 5, dtype=torch.float64), torch.randn(1, 2, 5, dtype=torch.float64))
    torch.manual_seed(1)
    outputs, (hidden, _) = layer(inputs, state)
    torch.manual_seed(1)
    recurrent = functional.dropout(layer.weight_hh, share, training=True)
    plain = plain_lstm(layer, inputs, state[0][0], state[1][0], recurrent)
    torch.testing.assert_close(outputs, plain, rtol=0, atol=1e-12)
    torch.testing.assert_close(hidden[0], plain[:, -1], rtol=0, atol=1e-12)
    weight = torch.randn_like(plain)
    parameters = [inputs, *layer.parameters()]
    for fast, slow in zip(
        torch.autograd.grad((outputs * weight).sum(), parameters), torch.autograd.grad((plain * weight).sum(), parameters), strict=True
    ):
        torch.testing.assert_close(fast, slow, rtol=0, atol=1e-11)
    if share:
        assert int((recurrent == 0).sum()) > 0
    layer.eval()
    torch.testing.assert_close(
        layer(inputs, state)[0], plain_lstm(layer, inputs, state[0][0], state[1][0], layer.weight_hh), rtol=0, atol=1e-12
    )


def test_sizes_are_those_of_the_published_model_by_default() -> None:
    with torch.device("meta"):
        encoder = Encoder(10, Sizes(embedding=400, hidden=1152, layers=3), AwdLstmOptions())
    assert [tuple(layer.get_parameter("weight_hh").shape) for layer in encoder.layers] == [(4608, 1152), (4608, 1152), (1600, 400)]
    assert [tuple(layer.get_parameter("weight_ih").shape) for layer in encoder.layers] == [(4608, 400), (4608, 1152), (1600, 1152)]


def test_windows_with_carried_state_are_one_reading() -> None:
    torch.manual_seed(0)
    encoder = Encoder(20, Sizes(embedding=4, hidden=6, layers=3), QUIET).double().eval()
    ids = torch.randint(1, 20, (3, 11))
    first = encoder(ids[:, :4])
    second = encoder(ids[:2, 4:], first_rows(detach(first.states), 2))
    torch.testing.assert_close(torch.cat([first.raw[:2], second.raw], 1), encoder(ids).raw[:2], rtol=0, atol=1e-12)


def test_the_language_model_shares_the_weights_of_its_embedding() -> None:
    torch.manual_seed(0)
    model = LanguageModel(Encoder(20, Sizes(embedding=4, hidden=6, layers=2), QUIET)).double()
    ids = torch.randint(1, 20, (2, 5))
    logits, outputs = model(ids)
    torch.testing.assert_close(logits, outputs.raw @ model.encoder.embedding.weight.T + model.output_bias)
    assert not [name for name, _ in model.named_parameters() if "decoder" in name]


def test_a_dropped_word_is_dropped_wherever_it_stands() -> None:
    torch.manual_seed(0)
    options = QUIET.model_copy(update={"embedding_dropout": 0.5})
    encoder = Encoder(50, Sizes(embedding=4, hidden=6, layers=1), options)
    ids = torch.arange(1, 50).repeat(2, 2)
    found = encoder._embed(ids)
    torch.testing.assert_close(found[:, :49], found[:, 49:])
    dropped = (found == 0).all(-1)[0, :49]
    assert 10 < int(dropped.sum()) < 40
    torch.testing.assert_close(found[0, :49][~dropped], 2 * encoder.embedding(ids[0, :49])[~dropped])


def test_dropout_is_locked_over_the_tokens() -> None:
    torch.manual_seed(0)
    found = locked_dropout(torch.ones(3, 8, 40), 0.5, training=True)
    assert torch.equal(found, found[:, :1].expand_as(found))
    assert set(found.unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(found[0], found[1])
    assert torch.equal(locked_dropout(found, 0.5, training=False), found)
