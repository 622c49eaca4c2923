"""Stage 2's loss of a batch: exactly that of the pairs that count, with the anchor fading out
beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from plant_decoders import JointLaatOptions
from plant_decoders.published_decoders import JointLaat
from plant_losses import BceOptions, FocalOptions
from plant_losses.label_losses import Bce, Focal
from plant_network import candidates as label_scores
from plant_network import stage2 as finetuning
from plant_network.candidates import score_pairs
from plant_network.hardware import Hardware
from plant_network.reading import LiveReader, make_tokens
from plant_network.stage2 import Anchor, FineTuning, group_loss
from scipy.sparse import csr_array
from torch import Tensor

from plant_cli.api import DecoderShape, GroupedReading, Reading, SilentReporter, Split
from plant_cli.scoring.proposed_labels import ShortlistedLabels

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
TEXTS = ["a fever", "a cough and a leg", "a leg"]
GOLD = csr_array(np.array([[1, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0], [0, 0, 1, 0, 0, 0]]))
ROWS = np.array([2, 1])


@dataclass(frozen=True)
class Parts:
    network: Any
    reader: LiveReader
    split: Split


@pytest.fixture
def parts(small_network: Callable[..., Any]) -> Parts:
    network = small_network(labels=6)
    reader = LiveReader(network, make_tokens(network, TEXTS, SilentReporter(), "train"), CPU)
    split = Split(
        name="train", doc_ids=["a", "b", "c"], texts=TEXTS, gold=GOLD, unseen=csr_array((3, 0))
    )
    return Parts(network, reader, split)


def step(parts: Parts, loss: Any, anchor: Anchor | None = None) -> FineTuning:
    return FineTuning(parts.network, parts.reader, parts.split, loss, CPU, anchor)


def test_it_is_the_loss_over_all_labels_where_none_is_left_out(parts: Parts) -> None:
    loss = Bce(BceOptions(hard_negatives=0))
    found, weight = step(parts, loss)(ROWS, epoch=0, seed=1)
    logits = parts.network.decoder(parts.reader.read(ROWS))
    assert weight == 2.0
    assert torch.allclose(
        found, loss(logits, torch.tensor(GOLD[ROWS].toarray(), dtype=torch.float32))
    )


def test_only_positives_and_the_hardest_negatives_count(parts: Parts) -> None:
    loss = Focal(FocalOptions(hard_negatives=2, random_negatives=0))
    found, _ = step(parts, loss)(ROWS, epoch=0, seed=1)
    logits = parts.network.decoder(parts.reader.read(ROWS))
    targets = torch.tensor(GOLD[ROWS].toarray(), dtype=torch.float32)
    expected = loss(logits, targets, loss.select(logits.detach(), targets))
    assert torch.allclose(found, expected)
    found.backward()
    gradient = parts.network.decoder.queries.grad.clone()
    parts.network.zero_grad()
    expected.backward()
    assert torch.allclose(gradient, parts.network.decoder.queries.grad, atol=1e-6)


@pytest.mark.parametrize("normaliser", ["selected", "labels"])
def test_sparse_updates_give_the_loss_and_gradients_of_one_pass(
    parts: Parts, normaliser: str
) -> None:
    """Scored once with a dense gradient, or twice with a sparse one: the same numbers, and no
    gradient with a row for every label.
    """
    loss = Focal(FocalOptions(hard_negatives=2, random_negatives=1, normaliser=normaliser))
    found = {}
    for sparse in (False, True):
        parts.network.zero_grad()
        parts.network.decoder.sparse = sparse
        value, _ = FineTuning(parts.network, parts.reader, parts.split, loss, CPU, sparse=sparse)(
            ROWS, epoch=0, seed=1
        )
        value.backward()
        found[sparse] = (
            value.detach(),
            {n: p.grad for n, p in parts.network.named_parameters() if p.grad is not None},
        )
    torch.testing.assert_close(found[True][0], found[False][0])
    assert found[True][1].keys() == found[False][1].keys()
    for name, gradient in found[True][1].items():
        torch.testing.assert_close(gradient.to_dense(), found[False][1][name], rtol=1e-4, atol=1e-6)
    tables = {id(table) for table in parts.network.decoder.label_tables()}
    sparse_ones = {n for n, gradient in found[True][1].items() if gradient.is_sparse}
    assert sparse_ones == {n for n, p in parts.network.named_parameters() if id(p) in tables}


def test_with_candidates_hard_negatives_are_the_hardest_of_them(parts: Parts) -> None:
    """Whatever is not proposed counts only as a positive; all labels proposed is the loss
    without a shortlist.
    """
    loss = Focal(FocalOptions(hard_negatives=2, random_negatives=0))
    proposed = {1: [0, 1, 3, 5], 2: [0, 1, 4]}  # of the documents in these rows

    def with_candidates(found: dict[int, list[int]]) -> Tensor:
        lists = [np.array(found.get(row, []), dtype=np.int64) for row in range(3)]
        return FineTuning(
            parts.network,
            parts.reader,
            parts.split,
            loss,
            CPU,
            candidates=ShortlistedLabels(lists, 6),
        )(ROWS, epoch=0, seed=1)[0]

    logits = parts.network.decoder(parts.reader.read(ROWS)).detach()
    targets = torch.tensor(GOLD[ROWS].toarray(), dtype=torch.float32)
    selected = targets > 0
    for number, row in enumerate(ROWS):
        negatives = [label for label in proposed[row] if not targets[number, label]]
        selected[number, sorted(negatives, key=lambda label: -float(logits[number, label]))[:2]] = (
            True
        )
    torch.testing.assert_close(with_candidates(proposed), loss(logits, targets, selected))
    everything = step(parts, loss)(ROWS, epoch=0, seed=1)[0]
    torch.testing.assert_close(
        with_candidates({row: list(range(6)) for row in range(3)}), everything
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_few_candidates_all_count_beside_positives_and_random_negatives(
    parts: Parts, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more candidates than hard negatives: they are scored once, with gradient, and nothing
    else is.
    """
    loss = Focal(
        FocalOptions(hard_negatives=4, random_negatives=2)
    )  # of 2 candidates at most, half of the hard ones: 1 random
    candidates = ShortlistedLabels(
        [np.array(labels, dtype=np.int64) for labels in ([], [0, 3], [5])], 6
    )
    logits = parts.network.decoder(parts.reader.read(ROWS))
    targets = torch.tensor(GOLD[ROWS].toarray(), dtype=torch.float32)
    asked = []
    monkeypatch.setattr(
        finetuning,
        "score_pairs",
        lambda decoder, reading, wanted: (
            asked.append(wanted),
            score_pairs(decoder, reading, wanted),
        )[1],
    )
    parts.network.decoder.sparse = sparse
    tuning = FineTuning(
        parts.network, parts.reader, parts.split, loss, CPU, sparse=sparse, candidates=candidates
    )
    for seed in range(3):
        found, _ = tuning(ROWS, epoch=0, seed=seed)
        (selected,) = asked
        asked.clear()
        assert selected.sum(1).tolist() == [
            3,
            5,
        ]  # 1 positive, 1 candidate, 1 random; 2 positives, 2 candidates, 1 random
        for row, labels in enumerate(([2, 5], [0, 1, 2, 3])):
            assert selected[row, labels].all()
        torch.testing.assert_close(found, loss(logits, targets, selected))
    found.backward()
    gradient = parts.network.decoder.queries.grad.to_dense()
    touched = sorted(gradient.abs().sum(1).nonzero().squeeze(1).tolist())
    assert touched == selected.any(0).nonzero().squeeze(1).tolist()


def test_random_negatives_follow_from_the_seed(parts: Parts) -> None:
    tuning = step(parts, Focal(FocalOptions(hard_negatives=1, random_negatives=1)))
    losses = [tuning(ROWS, epoch=0, seed=seed)[0].item() for seed in (3, 3, *range(10, 20))]
    assert losses[0] == losses[1]
    assert len(set(losses)) > 1


def test_the_anchor_fades_out_linearly() -> None:
    anchor = Anchor(planter=None, loss=None, weight=0.8, epochs=4)  # type: ignore[arg-type]
    assert [anchor.strength(epoch) for epoch in range(6)] == pytest.approx(
        [0.8, 0.6, 0.4, 0.2, 0.0, 0.0]
    )


def test_random_negatives_do_not_follow_what_was_drawn_before(parts: Parts) -> None:
    tuning = step(parts, Focal(FocalOptions(hard_negatives=1, random_negatives=1)))
    losses = set()
    for before in range(8):
        torch.manual_seed(before)
        losses.add(tuning(ROWS, epoch=0, seed=3)[0].item())
    assert len(losses) == 1


GROUPS = torch.tensor([0, 0, 1, 1, 2, 2])


def with_groups(reading: Reading) -> GroupedReading:
    """Three groups, scored by the first token."""
    return GroupedReading(
        hidden=reading.hidden,
        mask=reading.mask,
        words=reading.words,
        group_logits=reading.hidden[:, 0, :3],
    )


@pytest.mark.parametrize("hard", [0, 1])
def test_groups_are_learned_from_the_labels_in_them(hard: int) -> None:
    logits = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    targets = torch.tensor([[1.0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0]])
    loss = Bce(BceOptions(hard_negatives=hard))
    expected = loss(logits, torch.tensor([[1.0, 0, 0], [0, 1, 0]]))
    torch.testing.assert_close(group_loss(GROUPS, loss, logits, targets, seed=0), expected)


def test_the_loss_of_groups_is_added(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    loss = Bce(BceOptions())
    plain, _ = step(parts, loss)(ROWS, epoch=0, seed=1)
    decoder = parts.network.decoder
    monkeypatch.setattr(type(decoder), "groups", GROUPS, raising=False)
    monkeypatch.setattr(
        type(decoder), "read_groups", lambda self, reading: with_groups(reading), raising=False
    )
    both, _ = step(parts, loss)(ROWS, epoch=0, seed=1)
    reading = parts.reader.read(ROWS)
    targets = torch.from_numpy(GOLD[ROWS].toarray()).float()
    torch.testing.assert_close(
        both, plain + group_loss(GROUPS, loss, reading.hidden[:, 0, :3], targets, seed=1)
    )


@pytest.mark.parametrize("way", ["once", "blocks", "sparse", "few candidates", "many candidates"])
def test_a_batch_is_read_once_for_labels_and_groups(
    parts: Parts, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In training, where values are dropped, both losses see the same states, however labels
    are scored.
    """
    monkeypatch.setattr(
        label_scores, "LABELS_PER_BLOCK", 2 if way == "blocks" else label_scores.LABELS_PER_BLOCK
    )
    shape = DecoderShape(hidden=16, labels=6, parents=["a", "a", "b", "b", "c", "c"])
    torch.manual_seed(0)
    decoder = JointLaat(JointLaatOptions(lstm=5, inner=4, context=3, dropout=0.5), shape).train()
    decoder.context.data *= 100  # labels listen to their groups
    decoder.sparse = way == "sparse"
    parts.network.decoder = decoder
    lists = [np.arange(6) if row else np.arange(0) for row in range(3)]
    candidates = ShortlistedLabels(lists, 6) if way.endswith("candidates") else None
    hard = 6 if way == "few candidates" else 5  # of 6 labels with 1 or 2 positives: all negatives
    loss = Bce(BceOptions(hard_negatives=hard))
    targets = torch.tensor(GOLD[ROWS].toarray(), dtype=torch.float32)

    torch.manual_seed(1)
    read = decoder.read_groups(parts.reader.read(ROWS))
    expected = loss(decoder(read), targets, torch.ones_like(targets) > 0) + group_loss(
        GROUPS, loss, read.group_logits, targets, seed=1
    )
    calls: list[int] = []
    decoder.states.register_forward_hook(lambda *given: calls.append(1))
    decoder.upper.register_forward_hook(lambda *given: calls.append(2))
    torch.manual_seed(1)
    tuning = FineTuning(
        parts.network,
        parts.reader,
        parts.split,
        loss,
        CPU,
        sparse=way == "sparse",
        candidates=candidates,
    )
    found, _ = tuning(ROWS, epoch=0, seed=1)
    assert calls == [1, 2]
    torch.testing.assert_close(found, expected)
    found.backward()
    assert all(parameter.grad is not None for parameter in decoder.parameters())


def test_some_documents_keep_the_scores_of_their_groups() -> None:
    reading = with_groups(Reading.of(torch.randn(3, 4, 5), torch.ones(3, 4, dtype=torch.bool)))
    some = reading.select(slice(1, 3), slice(2))
    assert some.hidden.shape == (2, 2, 5)
    assert torch.equal(some.group_logits, reading.group_logits[1:3])
