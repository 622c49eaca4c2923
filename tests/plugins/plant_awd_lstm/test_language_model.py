"""The language model: its words, its network as plain loops in double precision, and the
streams that it is trained on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from plant_awd_lstm import AwdLstmOptions
from plant_awd_lstm.language_model import (
    BEGIN,
    IGNORED,
    PAD,
    SPECIAL,
    UNKNOWN,
    Encoder,
    LanguageModel,
    LstmLayer,
    Sizes,
    Streams,
    Vocabulary,
    detach,
    document_batches,
    first_rows,
    fit_vocabulary,
    locked_dropout,
    read_language_model_vocabulary,
)
from references import assert_equal, random_tensors
from torch import Tensor
from torch.nn import functional

from plant_cli.api import ArtefactError, DataError


def test_frequent_words_have_rows_of_their_own() -> None:
    vocabulary = fit_vocabulary(["b b b a a c", "a c <begin> d"], min_count=2, max_words=2)
    assert vocabulary.words == (*SPECIAL, "a", "b")
    ids, spans = vocabulary.read("A, b?")
    assert ids.tolist() == [3, UNKNOWN, 4, UNKNOWN]
    assert spans.tolist() == [[0, 1], [1, 2], [3, 4], [4, 5]]
    assert [vocabulary.read(text)[0].tolist() for text in ("a", "")] == [[3], []]


def test_marks_in_a_text_are_no_marks() -> None:
    vocabulary = fit_vocabulary(["a b <begin> begin"], min_count=1, max_words=99)
    assert BEGIN not in vocabulary.read("<begin> begin")[0]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Größere naïve café", ["Größere", "naïve", "café"]),
        ("cafe\u0301 5mg x²", ["cafe\u0301", "5mg", "x²"]),
        ("MRI 肺炎 scan", ["MRI", "肺", "炎", "scan"]),
        ("MRI肺", ["MRI", "肺"]),
        ("a😀b", ["a", "😀", "b"]),
    ],
)
def test_every_character_belongs_to_a_token(text: str, tokens: list[str]) -> None:
    vocabulary = Vocabulary((*SPECIAL, "a"))
    assert [text[start:end] for start, end in vocabulary.read(text)[1]] == tokens


def test_one_word_is_too_few() -> None:
    with pytest.raises(DataError, match="vocabulary of 1 word") as caught:
        fit_vocabulary(["fever fever fever", "fever cough"], min_count=2, max_words=10)
    assert "2 distinct words, the most frequent occurs 4 times" in caught.value.where
    with pytest.raises(DataError, match="vocabulary of 0 words"):
        fit_vocabulary(["", " "], min_count=1, max_words=10)


def test_it_is_saved_as_a_list(tmp_path: Path, vocabulary: Vocabulary) -> None:
    vocabulary.save(tmp_path)
    again = read_language_model_vocabulary(tmp_path)
    assert again == vocabulary
    assert again.hash == vocabulary.hash != Vocabulary(vocabulary.words[:-1]).hash


@pytest.mark.parametrize(
    "content",
    ['{"a": 1}', '["a", "b"]', '["<pad>", "<unknown>", "<begin>", "a", "a"]', '["<pad>"', "[1]"],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "vocabulary.json").write_text(content)
    with pytest.raises(ArtefactError, match="damaged"):
        read_language_model_vocabulary(tmp_path)


QUIET = AwdLstmOptions(
    embedding_dropout=0, input_dropout=0, hidden_dropout=0, output_dropout=0, weight_dropout=0
)


def plain_lstm(
    layer: LstmLayer, inputs: Tensor, hidden: Tensor, cell: Tensor, recurrent: Tensor
) -> Tensor:
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
    inputs, *state = random_tensors((2, 7, 3), (1, 2, 5), (1, 2, 5))
    torch.manual_seed(1)
    outputs, (hidden, _) = layer(inputs, state)
    torch.manual_seed(1)
    recurrent = functional.dropout(layer.weight_hh, share, training=True)
    plain = plain_lstm(layer, inputs, state[0][0], state[1][0], recurrent)
    leaves = [inputs, *layer.parameters()]
    assert_equal((outputs, leaves), (plain, leaves), tolerance=1e-11)
    torch.testing.assert_close(hidden[0], plain[:, -1], rtol=0, atol=1e-12)
    assert int((recurrent == 0).sum()) > 0 or not share
    again = layer.eval()(inputs, state)[0]
    torch.testing.assert_close(
        again,
        plain_lstm(layer, inputs, state[0][0], state[1][0], layer.weight_hh),
        rtol=0,
        atol=1e-12,
    )


def test_all_five_dropouts_are_those_of_a_plain_loop() -> None:
    """Masks drawn by hand in the order of reading: words, input, then of each layer its weights
    and what it gives.
    """
    shares = {
        "embedding_dropout": 0.3,
        "input_dropout": 0.25,
        "hidden_dropout": 0.4,
        "output_dropout": 0.5,
        "weight_dropout": 0.2,
    }
    torch.manual_seed(0)
    encoder = Encoder(20, Sizes(embedding=4, hidden=6, layers=3), AwdLstmOptions(**shares)).double()
    ids, zero = torch.randint(1, 20, (2, 9)), torch.zeros(2, 6, dtype=torch.float64)
    torch.manual_seed(1)
    found = encoder(ids)

    def mask(share: float, size: int) -> Tensor:
        return torch.empty(2, 1, size, dtype=torch.float64).bernoulli_(1 - share) / (1 - share)

    torch.manual_seed(1)
    words = (torch.rand(20) >= 0.3).double() / 0.7
    outputs = torch.stack(
        [encoder.embedding.weight[row] * words[row] for row in ids.flatten()]
    ).view(2, 9, 4) * mask(0.25, 4)
    for number, (layer, size) in enumerate(zip(encoder.layers, (6, 6, 4), strict=True)):
        assert isinstance(layer, LstmLayer)
        outputs = outputs * mask(0.4, 6) if number else outputs
        recurrent = functional.dropout(layer.weight_hh, 0.2, training=True)
        outputs = plain_lstm(layer, outputs, zero[:, :size], zero[:, :size], recurrent)
    torch.testing.assert_close(found.raw, outputs, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.dropped, outputs * mask(0.5, 4), rtol=0, atol=1e-12)
    assert bool((found.raw != 0).all())
    assert 0 < int((found.dropped == 0).sum()) < found.dropped.numel()


def test_windows_with_carried_state_are_one_reading() -> None:
    torch.manual_seed(0)
    encoder = Encoder(20, Sizes(embedding=4, hidden=6, layers=3), QUIET).double().eval()
    ids = torch.randint(1, 20, (3, 11))
    first = encoder(ids[:, :4])
    second = encoder(ids[:2, 4:], first_rows(detach(first.states), 2))
    torch.testing.assert_close(
        torch.cat([first.raw[:2], second.raw], 1), encoder(ids).raw[:2], rtol=0, atol=1e-12
    )


def test_the_language_model_shares_the_weights_of_its_embedding() -> None:
    torch.manual_seed(0)
    model = LanguageModel(Encoder(20, Sizes(embedding=4, hidden=6, layers=2), QUIET)).double()
    ids = torch.randint(1, 20, (2, 5))
    logits, outputs = model(ids)
    torch.testing.assert_close(
        logits, outputs.raw @ model.encoder.embedding.weight.T + model.output_bias
    )
    assert not [name for name, _ in model.named_parameters() if "decoder" in name]


def test_dropout_is_locked_over_the_tokens() -> None:
    torch.manual_seed(0)
    found = locked_dropout(torch.ones(3, 8, 40), 0.5, training=True)
    assert torch.equal(found, found[:, :1].expand_as(found))
    assert set(found.unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(found[0], found[1])
    assert torch.equal(locked_dropout(found, 0.5, training=False), found)


DOCUMENTS = [
    np.array(d, dtype=np.int32) for d in ([10, 11, 12, 13, 14], [20], [], [30, 31, 32], [40, 41])
]


def streams(**options: int) -> Streams:
    return Streams(documents=DOCUMENTS, direction="forward", **{"batch": 2, "window": 3, **options})


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_windows_follow_one_another(direction: Literal["forward", "backward"]) -> None:
    made = Streams(documents=DOCUMENTS, direction=direction, batch=2, window=3)
    windows = list(made.windows(seed=1, epoch=0))
    assert len(windows) == made.steps
    inputs, targets = (
        np.concatenate([getattr(w, name) for w in windows], axis=1)
        for name in ("inputs", "targets")
    )
    assert inputs.shape == (2, (made.tokens - 1) // 2) == (2, 7)
    assert (inputs[:, 1:] == targets[:, :-1]).all()
    assert targets[0, -1] == inputs[1, 0]
    text = [*inputs[0].tolist(), *inputs[1].tolist(), int(targets[1, -1])]
    pieces = " ".join(map(str, text)).split(str(BEGIN))
    wanted = [" ".join(map(str, d[:: 1 if direction == "forward" else -1])) for d in DOCUMENTS]
    assert sorted(piece.strip() for piece in pieces[1:-1]) <= sorted(wanted)
    assert set(text) <= {BEGIN, *np.concatenate(DOCUMENTS).tolist()}


def test_every_epoch_has_an_order_of_its_own_and_the_same_twice() -> None:
    first, again, next_one = (
        [w.inputs.tolist() for w in streams().windows(seed=1, epoch=e)] for e in (0, 0, 1)
    )
    assert first == again != next_one


def test_a_text_shorter_than_a_window_is_one_stream() -> None:
    made = streams(batch=64, window=72)
    assert (made.count, made.steps) == (1, 1)
    (window,) = made.windows(seed=0, epoch=0)
    assert window.inputs.shape == (1, made.tokens - 1) == (1, 15)


def test_batches_of_documents_hold_every_token_once() -> None:
    windows = list(document_batches(DOCUMENTS, "backward", 2))
    assert windows[0].inputs.tolist() == [
        [BEGIN, 14, 13, 12, 11, 10],
        [BEGIN, 32, 31, 30, PAD, PAD],
    ]
    assert windows[0].targets.tolist() == [
        [14, 13, 12, 11, 10, BEGIN],
        [32, 31, 30, BEGIN, IGNORED, IGNORED],
    ]
    targets = np.concatenate([w.targets.ravel() for w in windows])
    assert sorted(targets[targets != IGNORED].tolist()) == sorted(
        [*np.concatenate(DOCUMENTS).tolist(), *[BEGIN] * 5]
    )
