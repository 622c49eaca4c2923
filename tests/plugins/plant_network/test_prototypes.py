"""Tables planted from prototypes: the numbers of a plain loop, training documents only, and the
sharpness that validation likes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from plant_network import prototypes
from plant_network.checkpointing import trained_state
from plant_network.hardware import Hardware
from plant_network.materials import Material
from plant_network.prototypes import SCALE, Prototypes
from plant_network.reading import LiveReader, make_tokens
from plant_network.stage2 import warn_of_lost_order
from scipy.sparse import csr_array
from torch import nn

from plant_cli.api import ComponentError, Interrupted, Reading, SilentReporter, Split
from plant_cli.runs.session import Session

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
TEXTS = [
    "a fever and a cough",
    "fever",
    "a leg, broken in two places, and the arm",
    "the arm",
    "cough cough cough",
]
GOLD = np.array(
    [[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 1, 0, 0]]
)  # nobody has the last label


def make(network: Any, stopping: bool = False, batch: int = 2, seed: int = 0) -> Prototypes:
    reader = LiveReader(network, make_tokens(network, TEXTS, SilentReporter(), "train"), CPU)
    ids = [str(row) for row in range(len(TEXTS))]
    split = Split(
        name="train",
        doc_ids=ids,
        texts=TEXTS,
        gold=csr_array(GOLD),
        unseen=csr_array((len(TEXTS), 0)),
    )
    session = Session(
        reporter=SilentReporter(),
        run_path=Path("run"),
        folder=Path("run/finetune"),
        should_stop=lambda: stopping,
    )
    return Prototypes(
        network, Material(split=split, reader=reader), CPU, seed=seed, batch=batch, session=session
    )


def gathered(network: Any, text: str) -> torch.Tensor:
    reading = Reading.of(*network.backbone.encode(network.backbone.tokenize([text])))
    return network.decoder.gather(reading, torch.arange(4))[0]


def logits(network: Any, text: str) -> torch.Tensor:
    with torch.no_grad():
        return network.decoder(
            Reading.of(*network.backbone.encode(network.backbone.tokenize([text])))
        )[0]


@pytest.mark.parametrize("numbers", [1, 1 << 20])
def test_equals_a_plain_loop_over_documents(
    small_network: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, numbers: int
) -> None:
    monkeypatch.setattr(prototypes, "NUMBERS_ADDED", numbers)
    network = small_network().eval()
    with torch.no_grad():
        all_gathered = torch.stack([gathered(network, text) for text in TEXTS])
    background = all_gathered.mean(0)
    owned = torch.from_numpy(GOLD).bool()
    expected = torch.stack([all_gathered[owned[:, label], label].mean(0) for label in range(3)])
    new = gathered(network, "a fever in the leg").detach()
    make(network).choose_sharpness(lambda: {"value": 0.0}, "value", (1.0,))
    found = logits(network, "a fever in the leg")
    away = expected - background[:3]
    share = ((new[:3] - background[:3]) * away).sum(1) / away.square().sum(1)
    torch.testing.assert_close(found[:3], SCALE * (share - 0.5), rtol=1e-4, atol=1e-4)
    assert found[3].item() == pytest.approx(
        -SCALE / 2, abs=1e-4
    )  # without a document of its own, a label is as unlikely as any background


def test_the_sharpness_that_is_judged_best_is_left_in_the_network(
    small_network: Callable[..., Any],
) -> None:
    network = small_network()
    start = network.decoder.to_query.weight.detach().clone()
    asked: list[float] = []

    def judge() -> dict[str, float]:
        asked.append((network.decoder.to_query.weight / start).mean().item())
        return {"value": -abs(asked[-1] - 0.5), "other": asked[-1]}

    planting = make(network)
    figures = planting.choose_sharpness(judge, "value", (1.0, 0.5, 0.25))
    assert not any("that was offered" in note for note in planting.session.reporter.notes)
    assert figures == {
        "sharpness": 0.5,
        "value": pytest.approx(0.0, abs=1e-6),
        "other": pytest.approx(0.5),
    }
    assert asked == pytest.approx([0.25, 0.5, 1.0])
    torch.testing.assert_close(network.decoder.to_query.weight.detach(), start * 0.5)
    half = {n: p.detach().clone() for n, p in network.decoder.named_parameters()}
    other = small_network()
    make(other).choose_sharpness(lambda: {"value": 0.0}, "value", (0.5,))
    for name, parameter in other.decoder.named_parameters():
        torch.testing.assert_close(half[name], parameter.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("best", "said"),
    [(0.25, "0.25, the flattest that was offered"), (1.0, "1, the sharpest that was offered")],
)
def test_a_sharpness_at_the_edge_of_what_was_offered_is_told(
    small_network: Callable[..., Any], best: float, said: str
) -> None:
    network = small_network()
    start = network.decoder.to_query.weight.detach().clone()
    planting = make(network)
    planting.choose_sharpness(
        lambda: {"v": -abs((network.decoder.to_query.weight / start).mean().item() - best)},
        "v",
        (1.0, 0.5, 0.25),
    )
    assert any(
        f"attention enters with sharpness {said} (validation v" in note
        for note in planting.session.reporter.notes
    )
    alone = make(small_network())
    alone.choose_sharpness(lambda: {"v": 0.0}, "v", (best,))  # nothing else was offered
    assert not any("that was offered" in note for note in alone.session.reporter.notes)


def test_a_decoder_that_cannot_plant_its_tables_is_refused(
    small_network: Callable[..., Any],
) -> None:
    network = small_network()
    network.decoder = nn.Linear(2, 2)
    with pytest.raises(ComponentError, match="cannot start its tables"):
        make(network)


def test_it_stops_when_asked_to(small_network: Callable[..., Any]) -> None:
    with pytest.raises(Interrupted):
        make(small_network(), stopping=True).choose_sharpness(
            lambda: {"value": 0.0}, "value", (1.0,)
        )


def test_the_background_is_of_a_few_documents_that_follow_from_the_seed(
    small_network: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prototypes, "BACKGROUND", 2)
    found = set()
    for seed in (0, 0, 1, 2, 3):
        planting = make(small_network().eval(), seed=seed)
        assert planting.sampled.sum() == 2
        found.add(tuple(planting.sampled.tolist()))
    assert 1 < len(found) < 5


@pytest.mark.parametrize("tables", [1, 1 << 20])
def test_sharpnesses_in_one_pass_give_what_a_pass_for_each_gives(
    small_network: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tables: int
) -> None:
    monkeypatch.setattr(prototypes, "TABLE_BYTES", tables)
    factors = (1.0, 0.5, 0.3, 0.0)
    together = make(small_network().eval())
    names = frozenset(name for name, _ in together.network.named_parameters())
    start = trained_state(together.network, names)
    read = together.train.reader.read
    passes: list[int] = []
    monkeypatch.setattr(
        together.train.reader, "read", lambda rows: passes.extend(rows) or read(rows)
    )
    with torch.no_grad():
        found = dict(together._tables(factors, start))
        assert len(passes) == len(TEXTS) * (len(factors) if tables == 1 else 1)
        monkeypatch.setattr(prototypes, "GradedDecoder", str)  # which no decoder is
        expected = dict(together._tables(factors, start))
    for factor in factors:
        for one, other in zip(found[factor], expected[factor], strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    assert not torch.allclose(found[1.0][0], found[0.3][0], atol=1e-4)


@pytest.mark.parametrize(
    ("values", "chosen"),  # values from the flattest on
    [
        ((0.5, 0.5, 0.5), 0.25),
        ((0.3598, 0.3568, 0.3604), 0.25),  # 0.0006 of 0.64 that lack: not clear
        ((0.4870, 0.4918, 0.4987), 1.0),
        ((0.9656, 0.9666, 0.9668), 1.0),  # 0.0002 of 0.033 that lack
        ((0.9669, 0.9674, 0.9668), 0.5),
        ((0.5, 0.6, 0.55), 0.5),  # better than the flattest, and worse than what was chosen
        ((-3.0, -3.1, -2.9), 1.0),
    ],
)
def test_a_sharper_attention_must_be_clearly_better(
    small_network: Callable[..., Any], values: tuple[float, ...], chosen: float
) -> None:
    given = iter(values)
    figures = make(small_network()).choose_sharpness(
        lambda: {"value": next(given)}, "value", (1.0, 0.5, 0.25)
    )
    assert figures == {
        "sharpness": chosen,
        "value": dict(zip((0.25, 0.5, 1.0), values, strict=True))[chosen],
    }


@pytest.mark.parametrize(
    ("left", "warned"), [(0.71, False), (0.56, False), (0.54, True), (0.41, True)]
)
def test_a_sharpness_that_destroys_the_planted_order_is_told(left: float, warned: bool) -> None:
    listener = SilentReporter()
    warn_of_lost_order(
        "nDCG@5",
        {"nDCG@5": 0.7, "random nDCG@5": 0.4},
        {"nDCG@5": left, "sharpness": 0.25},
        listener,
    )
    assert [text.partition(":")[0] for text in listener.warnings] == [
        "attention of sharpness 0.25 orders words hardly as relevance does"
    ] * warned
    assert all(
        f"nDCG@5 {100 * left:.1f}, 70.0 as planted, 40.0 in random order" in text
        for text in listener.warnings
    )
