"""A training is set up from splits, batches and losses that fit together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from builders import record_again
from clinic import Clinic
from hypothesis import given
from hypothesis import strategies as st
from plant_network import materials
from plant_network.hardware import Hardware
from plant_network.materials import (
    BUCKET,
    add_titles,
    build_loss,
    cut_step,
    find_room,
    make_steps,
    micro_sizes,
    padding_share,
)
from plant_network.reading import sorted_batches
from safetensors.torch import load_file
from scipy.sparse import csr_array

from plant_cli.api import (
    ArtefactError,
    Choice,
    ComponentError,
    DecoderSpec,
    LossSpec,
    Options,
    ResourceError,
    SilentReporter,
    Split,
)
from plant_cli.data.labels import LabelTable
from plant_cli.data.records import stamp
from plant_cli.data.tensors import write_tensors
from plant_cli.registry import installed
from plant_cli.scoring.top_labels import Room
from plant_cli.training.training_options import TrainingOptions


def test_attention_planted_in_another_network_is_refused(trained: Clinic) -> None:
    trained.planted()
    with pytest.raises(ArtefactError, match="another network") as caught:
        trained.run("finetune", "model.decoder.heads=4")
    folder = trained.path / "pretrain-attn"
    assert caught.value.where == f"decoder: {folder} has heads=2, this stage heads=4", (
        "what is equal is not listed"
    )


def test_a_model_of_another_label_order_is_refused(trained: Clinic) -> None:
    trained.planted()
    path = trained.path / "pretrain-attn" / "model.safetensors"
    write_tensors(path, load_file(path), stamp(labels="0" * 64, tokenizer="1" * 64))
    record_again(path.parent)
    with pytest.raises(ArtefactError) as caught:
        trained.run("finetune")
    assert str(trained.path) in caught.value.where


def test_options_that_only_stage_2_reads_may_differ(trained: Clinic) -> None:
    trained.planted()
    spec = next(spec for spec in installed().specs(DecoderSpec) if spec.name == "label-attention")
    object.__setattr__(spec, "stage2_options", ("dropout",))
    try:
        trained.run("finetune", "model.decoder.dropout=0.1")
        with pytest.raises(ArtefactError, match="another network"):
            trained.run(
                "finetune",
                "model.decoder.dropout=0.1",
                "model.decoder.prior_bias=false",
                force=True,
            )
    finally:
        object.__setattr__(spec, "stage2_options", ())


def test_titles_are_documents_with_their_label_alone() -> None:
    gold, none = csr_array(np.array([[1, 1, 0]])), csr_array((1, 2), dtype=np.int64)
    split = Split(name="train", doc_ids=["d"], texts=["fever"], gold=gold, unseen=none)
    labels = LabelTable(
        ids=["a", "b", "c"], titles=["Fever", None, "Cough"], train_counts=[1, 1, 1]
    )
    found = add_titles(split, labels, SilentReporter())
    assert found.texts == ["fever", "Fever", "Cough"]
    assert found.doc_ids == ["d", "title of a", "title of c"]
    assert found.gold.toarray().tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert found.unseen.shape == (3, 2)
    bare = LabelTable(ids=["a", "b", "c"], titles=["Fever", None, "Cough"], train_counts=[1, 1, 0])
    assert add_titles(split, bare, SilentReporter(), every=False).texts == ["fever", "Cough"]


def test_without_titles_nothing_is_added_and_that_is_told() -> None:
    split = Split(
        name="train",
        doc_ids=["d"],
        texts=["x"],
        gold=csr_array(np.array([[1]])),
        unseen=csr_array((1, 0)),
    )
    reporter = SilentReporter()
    assert (
        add_titles(split, LabelTable(ids=["a"], titles=[None], train_counts=[1]), reporter) is split
    )
    assert "no label has a title" in reporter.warnings[0]


def test_attention_is_planted_on_titles_too(trained: Clinic) -> None:
    trained.run("mig")
    summary = trained.run(
        "pretrain-attn", "pretrain-attn.title_documents=true", "pretrain-attn.epochs=1"
    ).summary
    assert 0 < summary["nDCG@1000"] <= 1


SIZES = st.lists(st.integers(1, 500), min_size=1, max_size=300)


@given(
    sizes=SIZES, batch=st.integers(1, 40), micro_batch=st.integers(1, 16), epoch=st.integers(0, 5)
)
def test_every_row_comes_once(sizes: list[int], batch: int, micro_batch: int, epoch: int) -> None:
    lengths = np.array(sizes)
    steps = make_steps(lengths, batch, micro_batch, seed=3, epoch=epoch)
    assert sorted(np.concatenate([rows for step in steps for rows in step]).tolist()) == list(
        range(len(sizes))
    )
    assert all(1 <= len(rows) <= micro_batch for step in steps for rows in step)
    assert all(1 <= len(step) <= len(micro_sizes(batch, micro_batch)) for step in steps)


@given(sizes=SIZES, batch=st.integers(1, 40), micro_batch=st.integers(1, 16))
def test_a_step_has_exactly_its_documents_and_the_last_one_what_is_left_over(
    sizes: list[int], batch: int, micro_batch: int
) -> None:
    if batch % micro_batch == 0:
        sizes = sizes * micro_batch  # all micro-batches are full
    found = [
        sum(map(len, step))
        for step in make_steps(np.array(sizes), batch, micro_batch, seed=0, epoch=0)
    ]
    whole, rest = divmod(len(sizes), batch)
    assert found == [batch] * whole + [rest] * (rest > 0)


@given(
    sizes=SIZES, count=st.integers(1, 5), micro_batch=st.integers(1, 16), epoch=st.integers(0, 5)
)
def test_multiples_of_the_micro_batch_come_in_the_order_of_a_plain_shuffle(
    sizes: list[int], count: int, micro_batch: int, epoch: int
) -> None:
    """A plain loop, which cuts the shuffled micro-batches into steps."""
    lengths, draw, plain = np.array(sizes), np.random.default_rng([7, epoch]), list[Any]()
    order = draw.permutation(len(lengths))
    for start in range(0, len(order), micro_batch * BUCKET):
        bucket = order[start : start + micro_batch * BUCKET]
        bucket = bucket[np.argsort(lengths[bucket], kind="stable")]
        plain.extend(
            bucket[i : i + micro_batch].tolist() for i in range(0, len(bucket), micro_batch)
        )
    plain = [plain[i] for i in draw.permutation(len(plain))]
    steps = make_steps(lengths, count * micro_batch, micro_batch, seed=7, epoch=epoch)
    assert [[rows.tolist() for rows in step] for step in steps] == [
        plain[i : i + count] for i in range(0, len(plain), count)
    ]


@pytest.mark.parametrize(
    ("batch", "micro_batch", "sizes"),
    [
        (32, 8, [8, 8, 8, 8]),
        (4, 8, [4]),
        (1, 8, [1]),
        (12, 8, [6, 6]),
        (20, 8, [7, 7, 6]),
        (28, 8, [7, 7, 7, 7]),
        (13, 8, [7, 6]),
    ],
)
def test_a_step_is_cut_evenly_into_as_few_micro_batches_as_can_be(
    batch: int, micro_batch: int, sizes: list[int]
) -> None:
    assert micro_sizes(batch, micro_batch) == sizes
    step = make_steps(np.arange(1, 1 + 4 * batch), batch, micro_batch, seed=0, epoch=0)[0]
    assert [len(rows) for rows in step] == sizes


@pytest.mark.parametrize("batch", [8, 16, 20])
def test_the_order_follows_from_seed_and_epoch_alone(batch: int) -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 500)

    def order(seed: int, epoch: int) -> list[list[list[int]]]:
        return [
            [rows.tolist() for rows in step]
            for step in make_steps(lengths, batch, 8, seed=seed, epoch=epoch)
        ]

    first = order(1, 2)
    assert first == order(1, 2)
    assert first != order(1, 3)
    assert first != order(2, 2)


@pytest.mark.parametrize("batch", [8, 32, 20])
def test_buckets_leave_little_padding(batch: int) -> None:
    lengths = np.random.default_rng(0).integers(1, 400, 4000)
    shuffled = np.array_split(np.random.default_rng(1).permutation(4000), 500)
    assert (
        padding_share(lengths, make_steps(lengths, batch, 8, seed=0, epoch=0))
        < 0.1
        < 0.4
        < padding_share(lengths, [list(shuffled)])
    )


def test_scoring_begins_with_the_longest() -> None:
    batches = sorted_batches(np.array([3, 9, 1, 9, 4]), 2)
    assert [rows.tolist() for rows in batches] == [[1, 3], [4, 0], [2]]


KNOWN = installed().specs(LossSpec)


def find(name: str, **options: Any) -> tuple[LossSpec, Options]:
    return installed().resolve(LossSpec, Choice(name=name, options=options))


def test_a_loss_is_built_with_its_options() -> None:
    loss = build_loss(*find("focal-hnm", hard_negatives=7, random_negatives=3), "label")
    assert (loss.hard_negatives, loss.random_negatives) == (7, 3)
    ranked = build_loss(*find("lambda"), "rank")(
        torch.tensor([2.0, 1.0]), torch.tensor([1.0, 0.0]), torch.tensor([0, 2])
    )
    assert float(ranked) > 0


def test_a_loss_of_the_other_stage_is_refused() -> None:
    with pytest.raises(ComponentError, match="'bce' is for stage 2, not for stage 1") as caught:
        build_loss(*find("bce"), "rank", known=KNOWN)
    assert caught.value.expected.startswith("one of ")
    assert "lambda" in caught.value.expected
    assert "bce" not in caught.value.expected
    with pytest.raises(ComponentError, match="'lambda' is for stage 1, not for stage 2") as caught:
        build_loss(*find("lambda"), "label", known=KNOWN)
    assert (
        caught.value.expected
        == f"one of {', '.join(spec.name for spec in KNOWN if spec.stage == 'label')}"
    )
    with pytest.raises(ComponentError) as caught:
        build_loss(*find("lambda"), "label")
    assert caught.value.expected == "a loss of stage 2"


@given(sizes=SIZES, tokens=st.integers(1, 4000))
def test_a_step_is_cut_by_tokens_into_equal_parts_whatever_memory_holds(
    sizes: list[int], tokens: int
) -> None:
    lengths = np.sort(sizes)
    parts = cut_step([np.arange(len(sizes))], lengths, Room(300, tokens))
    assert np.concatenate([rows for _, rows in parts]).tolist() == list(range(len(sizes)))
    assert [number for number, _ in parts] == [int(rows[0]) for _, rows in parts], (
        "a document draws by its position in the step"
    )
    counts = [len(rows) for _, rows in parts]
    assert max(counts) - min(counts) <= 1
    assert all(
        len(rows) == 1 or len(rows) * -(-lengths[rows].max() // 16) * 16 <= tokens
        for _, rows in parts
    )


@pytest.mark.parametrize(
    ("tokens", "sizes"), [(None, [3, 3, 3, 1]), (96, [1, 2, 3, 4]), (1, [1] * 10)]
)
def test_scoring_takes_the_longest_first_and_as_many_as_fit(
    tokens: int | None, sizes: list[int]
) -> None:
    lengths = np.array([3, 96, 40, 30, 32, 32, 5, 16, 48, 7])
    batches = sorted_batches(lengths, Room(3 if tokens is None else 9, tokens))
    assert [len(rows) for rows in batches] == sizes
    assert lengths[np.concatenate(batches)].tolist() == sorted(lengths, reverse=True)


CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Callable[[Any], None]]:
    """A device of so many free bytes, on which a document takes `each` bytes a token, and a batch
    `fixed` bytes; gives what runs there.

    Of more than `kept` tokens activations are computed again: each takes a byte.
    """

    def make(
        free: int, *, each: int, sizes: Any, fixed: int = 0, kept: int = 10**9
    ) -> Callable[[Any], None]:
        def run(rows: Any) -> None:
            tokens = int(sizes[rows].sum())
            run.taken = fixed + (each if tokens <= kept else 1) * tokens  # type: ignore[attr-defined]
            if run.taken > free:  # type: ignore[attr-defined]
                raise torch.OutOfMemoryError("CUDA out of memory.")

        monkeypatch.setattr(materials, "free_memory", lambda device: free)
        monkeypatch.setattr(materials, "peak_allocated", lambda work, device: work() or run.taken)  # type: ignore[attr-defined]
        return run

    return make


@pytest.mark.parametrize(
    ("free", "each", "trained", "kept", "documents"),
    [
        (
            100_000,
            100,
            0,
            10**9,
            7,
        ),  # each of the longest takes 10,000 bytes, the batch 1,000; 80% are used
        (
            100_000,
            100,
            1_000,
            10**9,
            6,
        ),  # moments and the best epoch will take 3 x 4 bytes for each number
        (2_600, 15, 0, 10**9, 1),  # a second one does not fit
        (
            100_000,
            700,
            0,
            150,
            1,
            # one fits as it is, two only if activations are computed again: that is slower than one by
            # one
        ),
        (100_000, 2_000, 0, 50, 790),  # not even one fits as it is
    ],
)
def test_room_is_found_from_one_and_two_of_the_longest_documents(
    card: Any, free: int, each: int, trained: int, kept: int, documents: int
) -> None:
    sizes = np.array([10, 100, 50])
    run = card(free, each=each, sizes=sizes, fixed=1_000, kept=kept)
    options = TrainingOptions(micro_batch="auto", batch=32)
    assert find_room(run, sizes, options, CPU, [torch.zeros(trained)]) == Room(32, documents * 112)


@pytest.mark.parametrize(
    ("free", "said"), [(30_000, "one of 50 tokens fits"), (500, "none of the shorter ones fits")]
)
def test_too_little_memory_for_one_document_is_told_with_what_fits(
    card: Any, free: int, said: str
) -> None:
    sizes = np.array([10, 100, 50])
    with pytest.raises(ResourceError, match="too little memory for one document") as caught:
        find_room(
            card(free, each=400, sizes=sizes), sizes, TrainingOptions(micro_batch="auto"), CPU
        )
    assert said in caught.value.expected
    assert "the longest document has 100 tokens" in caught.value.where
    assert ("max_tokens=50" if "50" in said else "a smaller backbone") in caught.value.todo


def test_a_card_that_training_will_fill_is_too_small_before_it_begins(card: Any) -> None:
    sizes = np.array([100])
    with pytest.raises(ResourceError, match="too little memory"):
        find_room(
            card(30_000, each=200, sizes=sizes),
            sizes,
            TrainingOptions(micro_batch="auto"),
            CPU,
            [torch.zeros(1_000)],
        )


def test_memory_decides_on_one_card_alone_unless_the_user_does() -> None:
    plain, said, auto = (
        TrainingOptions(),
        TrainingOptions(micro_batch=4),
        TrainingOptions(micro_batch="auto"),
    )
    asked = [("cpu", 1), ("cuda", 1), ("cuda", 2)]
    assert [[one.fills_memory(*at) for at in asked] for one in (plain, said, auto)] == [
        [False, True, False],
        [False, False, False],
        [True, True, False],
    ]
    assert [one.documents for one in (plain, said, auto)] == [8, 4, 8]
