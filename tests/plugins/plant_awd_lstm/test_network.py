"""The network beside its equations as plain loops, in double precision."""

from __future__ import annotations

import pytest
import torch
from plant_awd_lstm import AwdLstmOptions
from plant_awd_lstm.language_model import Encoder, LanguageModel, LstmLayer, Sizes, detach, first_rows, locked_dropout
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


def test_all_five_dropouts_are_those_of_a_plain_loop() -> None:
    """Masks drawn by hand in the order of reading: words, input, then of each layer its weights and what it gives."""
    shares = {"embedding_dropout": 0.3, "input_dropout": 0.25, "hidden_dropout": 0.4, "output_dropout": 0.5, "weight_dropout": 0.2}
    torch.manual_seed(0)
    encoder = Encoder(20, Sizes(embedding=4, hidden=6, layers=3), AwdLstmOptions(**shares)).double()
    ids, zero = torch.randint(1, 20, (2, 9)), torch.zeros(2, 6, dtype=torch.float64)
    torch.manual_seed(1)
    found = encoder(ids)

    def mask(share: float, size: int) -> Tensor:
        return torch.empty(2, 1, size, dtype=torch.float64).bernoulli_(1 - share) / (1 - share)

    torch.manual_seed(1)
    words = (torch.rand(20) >= 0.3).double() / 0.7
    outputs = torch.stack([encoder.embedding.weight[row] * words[row] for row in ids.flatten()]).view(2, 9, 4) * mask(0.25, 4)
    for number, (layer, size) in enumerate(zip(encoder.layers, (6, 6, 4), strict=True)):
        assert isinstance(layer, LstmLayer)
        outputs = outputs * mask(0.4, 6) if number else outputs
        recurrent = functional.dropout(layer.weight_hh, 0.2, training=True)
        outputs = plain_lstm(layer, outputs, zero[:, :size], zero[:, :size], recurrent)
    torch.testing.assert_close(found.raw, outputs, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.dropped, outputs * mask(0.5, 4), rtol=0, atol=1e-12)
    assert bool((found.raw != 0).all())
    assert 0 < int((found.dropped == 0).sum()) < found.dropped.numel()


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
