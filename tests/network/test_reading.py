"""Tokens of a split, and the order in which it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from plant_cli.api import SilentReporter
from plant_cli.network.cuts import Cut, measure_cut
from plant_cli.network.hardware import Hardware
from plant_cli.network.reading import LiveReader, lengths, sorted_batches, tokenize

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)


def test_tokens_do_not_depend_on_the_batch_and_what_is_cut_is_told(small_network: Callable[..., Any]) -> None:
    network = small_network(max_tokens=3)
    texts = ["one two three four five", "six", "", "a b c d"]
    reporter = SilentReporter()
    small, large = (tokenize(network, texts, reporter, "train", batch=size) for size in (1, 512))
    assert [ids.tolist() for ids in small.ids] == [ids.tolist() for ids in large.ids]
    assert lengths(small).tolist() == [3, 1, 0, 3]
    assert small.dropped == [2, 0, 0, 1]
    assert "2 of 4 documents (50.0%) are longer than 3 tokens; 3 tokens beyond (30.0% of all)" in reporter.warnings[0]
    assert measure_cut(large) == Cut(documents=0.5, tokens=0.3)


def test_documents_longer_than_a_window_are_not_cut(small_network: Callable[..., Any]) -> None:
    network, reporter = small_network(window=8, max_tokens=64), SilentReporter()
    tokens = tokenize(network, ["word " * 60, "six"], reporter, "test")
    reading = LiveReader(network, tokens, CPU).read(np.array([0, 1]))
    assert reading.mask.sum(1).tolist() == [60, 1]
    assert bool(reading.hidden[0][reading.mask[0]].abs().sum(-1).all())
    assert (measure_cut(tokens), reporter.warnings) == (Cut(), [])


def test_batches_hold_every_row_once_the_longest_first() -> None:
    batches = sorted_batches(np.array([2, 9, 4, 9, 1]), 2)
    assert [batch.tolist() for batch in batches] == [[1, 3], [2, 0], [4]]


def test_gradients_flow_through_a_live_reader_unless_the_backbone_is_frozen(small_network: Callable[..., Any]) -> None:
    network = small_network()
    reader = LiveReader(network, tokenize(network, ["a fever"], SilentReporter(), "train"), CPU)
    assert reader.read(np.array([0])).hidden.requires_grad
    network.freeze_backbone()
    assert not reader.read(np.array([0])).hidden.requires_grad


def test_what_a_backbone_leaves_in_padding_is_cleared(small_network: Callable[..., Any]) -> None:
    network = small_network()
    reader = LiveReader(network, network.backbone.tokenize(["one two three", "one"]), CPU)
    expected, encode = reader.read(np.arange(2)), network.backbone.encode

    def leave_rubbish(tokens: Any) -> Any:
        hidden, mask = encode(tokens)
        return hidden.masked_fill(~mask[..., None], float("nan")), mask

    network.backbone.encode = leave_rubbish
    torch.testing.assert_close(reader.read(np.arange(2)).hidden, expected.hidden, rtol=0, atol=0)
    assert not expected.hidden[~expected.mask].any()


def test_documents_of_all_lengths_come_in_few_shapes(small_network: Callable[..., Any]) -> None:
    network = small_network(max_tokens=64)
    tokens = tokenize(network, ["word " * length for length in range(1, 41)], SilentReporter(), "train")
    reader = LiveReader(network, tokens, CPU)
    found = [reader.read(np.array([row])) for row in range(40)]
    assert {reading.hidden.shape[1] for reading in found} == {16, 32, 48}
    assert [int(reading.mask.sum()) for reading in found] == list(range(1, 41))
    assert all(not reading.hidden[~reading.mask].any() for reading in found)


def test_words_are_laid_out_beside_the_tokens_and_padding_has_none(small_network: Callable[..., Any]) -> None:
    network = small_network(max_tokens=64)
    tokens = tokenize(network, ["fever cough", "leg"], SilentReporter(), "train")
    rows = [np.array([4, -1]), np.array([2])]
    found = LiveReader(network, tokens, CPU, rows).read(np.array([1, 0]))
    assert found.words.shape == found.mask.shape
    assert found.words[:, :3].tolist() == [[2, -1, -1], [4, -1, -1]]
    assert (found.words[~found.mask] == -1).all()
    without = LiveReader(network, tokens, CPU).read(np.array([1, 0]))
    assert (without.words == -1).all()
