"""Checks of decoders. A right component passes, a wrong one is stopped with a sentence."""

from __future__ import annotations

import pytest
import torch
from plant_network import decoder_checks as decoders
from torch import Tensor, nn

from plant_cli.api import DecoderShape, DecoderSpec, Gathered, GroupedReading, Reading
from plant_cli.testing.checklist import checks_of
from tests.testing.test_checks import stopped


class Averaging(nn.Module):
    """A decoder whose attention is a softmax of one linear map; `fault` breaks one promise."""

    def __init__(self, shape: DecoderShape, fault: str) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(shape.labels, shape.hidden))
        self.head = nn.Parameter(torch.randn(shape.labels, shape.hidden))
        self.fault = fault

    def rank(self, reading: Reading, labels: Tensor) -> Tensor:
        scores = torch.einsum("bth,lh->blt", reading.hidden, self.query[labels])
        if self.fault == "empty":
            return scores.masked_fill(~reading.mask[:, None], float("-inf")).log_softmax(-1)
        if self.fault == "half-overflow" and scores.dtype == torch.float16:
            scores = scores * 8  # as great as a query of that size would make them
        masked = torch.finfo(scores.dtype).min
        logs = scores.masked_fill(~reading.mask[:, None], masked).float().log_softmax(-1)
        if self.fault == "overflow":
            logs = (
                scores.exp()
                .masked_fill(~reading.mask[:, None], 0.0)
                .div(scores.exp().sum(-1, keepdim=True))
                .log()
            )
        return logs.masked_fill(~reading.mask[:, None], float("-inf"))

    def attention(self, reading: Reading, labels: Tensor) -> Tensor:
        weights = self.rank(reading, labels).exp()
        return weights * 2 if self.fault == "attention" else weights

    def forward(self, reading: Reading, labels: Tensor | None = None) -> Tensor:
        chosen = (
            torch.arange(len(self.query)) if labels is None or self.fault == "labels" else labels
        )
        weights = self.attention(reading, chosen)
        if self.fault == "padding":
            weights = weights + 0.1
        logits = torch.einsum("blt,bth,lh->bl", weights, reading.hidden, self.head[chosen]).float()
        if self.fault == "half":
            return logits.bfloat16()
        if self.fault == "words":
            return logits / (reading.words >= 0).sum(1, keepdim=True)
        if self.fault == "blocks" and labels is not None and len(labels) > 1000:
            return logits * 1.01
        return (
            logits - logits.mean(0)
            if self.fault == "batch"
            else logits.squeeze(1)
            if self.fault == "single"
            else logits
        )

    def fold(self) -> Averaging:
        folded = Averaging(
            DecoderShape(hidden=self.query.shape[1], labels=len(self.query)), self.fault
        )
        folded.load_state_dict(self.state_dict())
        if self.fault == "fold":
            folded.head.data += 0.1
        return folded

    def parameter_roles(self) -> dict[str, list[nn.Parameter]]:
        return (
            {"attention": [self.query]}
            if self.fault == "roles"
            else {"attention": [self.query], "head": [self.head]}
        )


class Grouped(Averaging):
    """With two groups, and dropout; the fault is to read again what was read."""

    groups = torch.tensor([0, 0, 0, 1, 1, 1, 1])

    def read_groups(self, reading: Reading) -> GroupedReading:
        hidden = nn.functional.dropout(reading.hidden, 0.5, self.training)
        return GroupedReading(
            hidden=hidden, mask=reading.mask, words=reading.words, group_logits=hidden[:, 0, :2]
        )

    def forward(self, reading: Reading, labels: Tensor | None = None) -> Tensor:
        again = self.fault == "again" or not isinstance(reading, GroupedReading)
        return super().forward(self.read_groups(reading) if again else reading, labels)


class Planted(Averaging):
    """With tables that can be planted; a bias is what the fault leaves out."""

    def __init__(self, shape: DecoderShape, fault: str) -> None:
        super().__init__(shape, fault)
        self.gathered_size, self.sees_mean = shape.hidden, False
        self.bias = nn.Parameter(torch.zeros(shape.labels))

    def forward(self, reading: Reading, labels: Tensor | None = None) -> Tensor:
        return super().forward(reading, labels) + (
            self.bias if labels is None else self.bias[labels]
        )

    def parameter_roles(self) -> dict[str, list[nn.Parameter]]:
        return {"attention": [self.query], "head": [self.head, self.bias]}

    def gather(self, reading: Reading, labels: Tensor) -> Tensor:
        return self.attention(reading, labels) @ reading.hidden

    def sharpen(self, factor: float) -> None:
        self.query.data.mul_(factor)

    def plant_tables(self, prototypes: Tensor, background: Tensor, scale: float) -> None:
        away = prototypes - background
        self.head.data = scale * away / away.square().sum(1, keepdim=True)
        if self.fault != "planting":
            self.bias.data = -(self.head * background).sum(1) - scale / 2

    def gather_with_strength(self, reading: Reading, labels: Tensor) -> Gathered:
        gathered = self.gather(reading, labels)
        none = torch.zeros(gathered.shape)
        return Gathered(none[:, 0], gathered, none[..., 0])

    def plant_head(
        self, weights: Tensor, of_mean: Tensor, constant: Tensor, strength: float
    ) -> None:
        self.head.data = weights
        if self.fault != "planting":
            self.bias.data = constant


OPTIONAL = (
    decoders.chosen_pairs_equal_all_of_them,
    decoders.sparse_gradients_are_the_dense_ones,
    decoders.groups_are_read_beside_labels,
    decoders.planted_tables_score_by_their_prototypes,
    decoders.a_planted_head_scores_by_its_weights,
)


def _decoder(fault: str = "") -> DecoderSpec:
    kind = {"planted": Planted, "planting": Planted, "grouped": Grouped, "again": Grouped}.get(
        fault, Averaging
    )
    return DecoderSpec(name="d", summary="D.", build=lambda options, shape: kind(shape, fault))


def test_decoders() -> None:
    for check in checks_of(DecoderSpec):
        if check not in OPTIONAL:
            check(_decoder())
    decoders.planted_tables_score_by_their_prototypes(_decoder("planted"))
    decoders.a_planted_head_scores_by_its_weights(_decoder("planted"))
    decoders.groups_are_read_beside_labels(_decoder("grouped"))
    stopped(decoders.every_parameter_has_one_role, _decoder("roles"), "do not cover")
    for check, fault in (
        (decoders.attention_sums_to_one, "attention"),
        (decoders.some_labels_equal_their_columns, "labels"),
        (decoders.padding_changes_nothing, "padding"),
        (decoders.documents_stand_alone, "batch"),
        (decoders.a_document_without_tokens_gets_logits, "empty"),
        (decoders.a_single_label_is_scored, "single"),
        (decoders.a_single_label_is_scored, "batch"),
        (decoders.very_many_labels_equal_their_blocks, "blocks"),
        (decoders.words_may_be_missing, "words"),
        (decoders.sharp_attention_stays_a_distribution, "overflow"),
        (decoders.half_precision_stays_near, "half"),
        (decoders.half_precision_stays_near, "half-overflow"),
        (decoders.folding_changes_nothing, "fold"),
        (decoders.planted_tables_score_by_their_prototypes, "planting"),
        (decoders.a_planted_head_scores_by_its_weights, "planting"),
        (decoders.groups_are_read_beside_labels, "again"),
    ):
        with pytest.raises(AssertionError):
            check(_decoder(fault))


def test_words_are_given_to_decoders_that_ask_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a run: all others get −1."""
    seen = []
    monkeypatch.setattr(
        Averaging,
        "forward",
        lambda self, reading, labels=None: seen.append(reading.words) or reading.hidden[:, 0, :7],
    )
    decoders.logits_have_their_shape(_decoder())
    monkeypatch.setattr(Averaging, "needs_words", True, raising=False)
    decoders.logits_have_their_shape(_decoder())
    assert seen[0].unique().tolist() == [-1]
    assert len(seen[1].unique()) > 100
