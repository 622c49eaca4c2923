"""The decoder planted-l2r, its L2R model and inattention equal plain loops over documents,
labels, windows, tokens and dimensions.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from builders import record_again
from plant_decoders import PLANTED_L2R, PlantedL2ROptions
from plant_decoders.planted_l2r import (
    DotProduct,
    PlantedL2R,
    RelevanceByWord,
    TwoLayers,
    inattention,
    k_largest,
    masked_log_softmax,
    masked_softmax,
)
from plant_network import decoder_checks as decoders
from references import assert_equal, random_tensors, upstream_of
from scipy.sparse import csr_array, random_array
from torch import Tensor

from plant_cli.api import ArtefactError, ComponentError, DecoderShape, Reading, TrainingError
from plant_cli.data.tensors import read_tensors, write_tensors

HIDDEN, LABELS, WORDS, LENGTHS = 6, 5, 11, (13, 7, 1, 4)
RELEVANCE = csr_array(random_array((LABELS, WORDS), density=0.4, random_state=0, dtype="float32"))


def build(**options: Any) -> PlantedL2R:
    torch.manual_seed(0)
    chosen = {
        "ranker_size": 4,
        "ranker_hidden": 5,
        "static_k": 2,
        "differentiable_k": 3,
        "window": 4,
        **options,
    }
    shape = DecoderShape(
        hidden=HIDDEN, labels=LABELS, prior=torch.linspace(0.1, 0.4, LABELS), relevance=RELEVANCE
    )
    decoder = PlantedL2R(PlantedL2ROptions(**chosen), shape).double()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.5)
    return decoder


def reading() -> Reading:
    torch.manual_seed(1)
    mask = torch.arange(max(LENGTHS))[None] < torch.tensor(LENGTHS)[:, None]
    words = torch.randint(-1, WORDS, mask.shape).masked_fill(~mask, -1)
    return Reading(
        hidden=torch.randn(*mask.shape, HIDDEN, dtype=torch.float64), mask=mask, words=words
    )


def softmax(scores: list[Tensor], keep: list[bool]) -> list[Tensor]:
    total = sum(torch.exp(s) for s, k in zip(scores, keep, strict=True) if k)
    return [
        torch.exp(s) / total if k else torch.zeros_like(s)
        for s, k in zip(scores, keep, strict=True)
    ]


def largest(scores: list[float], k: int | None) -> list[bool]:
    limit = -math.inf if k is None else sorted(scores, reverse=True)[min(k, len(scores)) - 1]
    return [score >= limit for score in scores]


def f(decoder: PlantedL2R, label: int, word: int) -> Tensor:
    """The L2R model on one pair."""
    word = WORDS if word < 0 else word
    return decoder.ranker(torch.tensor([word]), torch.tensor([label]))[0, 0]


def attend(decoder: PlantedL2R, label: int, hidden: list[Tensor], words: list[int]) -> list[Tensor]:
    """A + S + P of one label in one window."""
    options, parts = decoder.options, {}
    parts["learned"] = softmax(
        [sum(h[d] * decoder.queries[label, d] for d in range(HIDDEN)) for h in hidden],
        [True] * len(hidden),
    )
    raw = [float(RELEVANCE[label, w]) if w >= 0 else 0.0 for w in words]
    kept = [r if keep else 0.0 for r, keep in zip(raw, largest(raw, options.static_k), strict=True)]
    total = sum(kept) if options.static_rows == "sum" and sum(kept) > 0 else 1.0
    parts["static"] = [torch.tensor(r / total, dtype=torch.float64) for r in kept]
    scores = [f(decoder, label, w) for w in words]
    keep = largest([float(s.detach()) for s in scores], options.differentiable_k)
    if options.inattention == "zero":
        scores, keep = (
            [s if k else s * 0 for s, k in zip(scores, keep, strict=True)],
            [True] * len(scores),
        )
    parts["differentiable"] = softmax(scores, keep)
    left = [name for name in ("learned", "static", "differentiable") if getattr(options, name)]
    weights = dict.fromkeys(left, torch.ones((), dtype=torch.float64))
    if options.combine == "learned":
        exps = {
            name: torch.exp(decoder.shares[i])
            for i, name in enumerate(("learned", "static", "differentiable"))
            if name in left
        }
        weights = {name: len(left) * exps[name] / sum(exps.values()) for name in left}
    return [sum(weights[name] * parts[name][t] for name in left) for t in range(len(hidden))]


def plain(decoder: PlantedL2R, given: Reading) -> Tensor:
    options, rows = decoder.options, []
    for document, length in enumerate(LENGTHS):
        for label in range(LABELS):
            size = options.window if options.state else length
            state, total = torch.zeros(HIDDEN, dtype=torch.float64), 0.0
            for start in range(0, length, size):
                tokens = range(start, min(start + size, length))
                hidden = [given.hidden[document, t] for t in tokens]
                weights = attend(
                    decoder, label, hidden, [int(given.words[document, t]) for t in tokens]
                )
                gathered = sum(w * h for w, h in zip(weights, hidden, strict=True))
                value = gathered * decoder.boost[label] if options.boost else gathered
                weight = torch.exp(decoder.window_sharpness * value.sum())
                total = total + weight
                state = state + weight / total * (value - state)  # the whole vector
            rows.append(state.sum() + decoder.bias[label])
    return torch.stack(rows).view(len(LENGTHS), LABELS)


VARIANTS: list[dict[str, Any]] = [
    {},
    {"ranker": "dot-product"},
    {"state": False},
    {"boost": False},
    {"combine": "learned"},
    {"combine": "learned", "static": False},
    {"learned": False},
    {"static": False},
    {"differentiable": False},
    {"learned": False, "static": False},
    {"static_k": None, "differentiable_k": None},
    {"static_rows": "raw", "inattention": "zero"},
    {"inattention": "zero", "state": False, "window": 2},
    {"window": 1},
]


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_values_and_gradients_are_those_of_the_loop(options: dict[str, Any]) -> None:
    decoder, given = build(**options), reading()
    given.hidden.requires_grad_()
    fast, slow = decoder(given), plain(decoder, given)
    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-11)
    upstream, wanted = upstream_of(slow), [given.hidden, *decoder.parameters()]
    gradients = [
        torch.autograd.grad((logits * upstream).sum(), wanted, allow_unused=True)
        for logits in (fast, slow)
    ]
    for parameter, one, other in zip(wanted, *gradients, strict=True):
        none = torch.zeros_like(parameter)
        torch.testing.assert_close(
            none if one is None else one, none if other is None else other, rtol=0, atol=1e-10
        )


@pytest.mark.parametrize(
    "options", [{}, {"state": False}, {"combine": "learned", "static_k": 1}], ids=str
)
def test_blocks_of_labels_change_nothing(options: dict[str, Any]) -> None:
    whole, blocks, given = build(**options), build(**options, elements=1), reading()
    weight = torch.randn(len(LENGTHS), LABELS, dtype=torch.float64)
    for decoder in (whole, blocks):
        (decoder(given) * weight).sum().backward()
    torch.testing.assert_close(blocks(given), whole(given), rtol=0, atol=1e-12)
    for one, other in zip(whole.parameters(), blocks.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None)
        if one.grad is not None and other.grad is not None:
            torch.testing.assert_close(other.grad, one.grad, rtol=0, atol=1e-11)


def test_stage_1_sees_the_l2r_model_and_nothing_else() -> None:
    """Differences of log attention are differences of f; words outside the table share one
    embedding.
    """
    decoder, given = build(), reading()
    labels = torch.tensor([3, 1])
    ranks = decoder.rank(given, labels)
    for document, length in enumerate(LENGTHS):
        for row, label in enumerate(labels.tolist()):
            scores = torch.stack(
                [f(decoder, label, int(w)) for w in given.words[document, :length]]
            )
            torch.testing.assert_close(
                ranks[document, row, :length], scores.log_softmax(0), rtol=0, atol=1e-12
            )
    ranks[given.mask[:, None].expand_as(ranks)].square().sum().backward()
    reached = {
        name for name, p in decoder.named_parameters() if p.grad is not None and bool(p.grad.any())
    }
    assert reached <= {name for name, _ in decoder.named_parameters() if name.startswith("ranker")}
    assert {"ranker.word", "ranker.label", "ranker.first.weight"} <= reached


def plain_attention(decoder: PlantedL2R, given: Reading, document: int, label: int) -> Tensor:
    """What each token's value counts in the last state, as a share."""
    options, length = decoder.options, LENGTHS[document]
    size, found, total = (
        options.window if options.state else length,
        torch.zeros(0, dtype=torch.float64),
        0.0,
    )
    for start in range(0, length, size):
        hidden = list(given.hidden[document, start : min(start + size, length)])
        weights = torch.stack(
            attend(
                decoder, label, hidden, given.words[document, start : start + len(hidden)].tolist()
            )
        )
        gathered = weights @ torch.stack(hidden)
        evidence = (gathered * decoder.boost[label] if options.boost else gathered).sum()
        weight = torch.exp(decoder.window_sharpness * evidence)
        total = total + weight
        found = torch.cat([found * (1 - weight / total), weights * weight / total])
    return found / found.sum() if float(found.sum()) > 0 else torch.full_like(found, 1 / length)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
@torch.no_grad()
def test_attention_is_what_a_token_counts_in_the_logit(options: dict[str, Any]) -> None:
    decoder, given = build(**options), reading()
    weights = decoder.attention(given, torch.arange(LABELS))
    for document, length in enumerate(LENGTHS):
        for label in range(LABELS):
            expected = plain_attention(decoder, given, document, label)
            torch.testing.assert_close(
                weights[document, label, :length], expected, rtol=0, atol=1e-11
            )
            assert not bool(weights[document, label, length:].any())


def test_it_is_loaded_without_the_relevance_table() -> None:
    decoder, given = build(), reading()
    fresh = PlantedL2R(decoder.options, DecoderShape(hidden=HIDDEN, labels=LABELS)).double()
    fresh.load_state_dict(decoder.state_dict())
    assert torch.equal(fresh(given), decoder(given))


def test_every_variant_of_stage_2_reads_the_weights_of_one_stage_1() -> None:
    weights = build().state_dict()
    variants = [options for options in VARIANTS if options.get("ranker") is None]
    for options in variants:
        decoder = build(**options)
        decoder.load_state_dict(weights)
        assert all(
            torch.equal(value, weights[name]) for name, value in decoder.state_dict().items()
        )
    assert len(variants) > 5
    with pytest.raises(RuntimeError, match="Error"):
        build(ranker="dot-product").load_state_dict(weights)


def test_parts_decide_whether_words_are_needed_and_one_must_be_left() -> None:
    assert build().needs_words
    assert not build(static=False, differentiable=False).needs_words
    with pytest.raises(ComponentError, match="no part of the attention"):
        build(learned=False, static=False, differentiable=False)


def plain_inattention(
    scores: list[float], real: list[bool], k: int | None, dropped: str
) -> list[float]:
    """One row: the k-th largest score is the limit, then a softmax."""
    positions = [i for i, there in enumerate(real) if there]
    limit = (
        sorted((scores[i] for i in positions), reverse=True)[min(k, len(positions)) - 1]
        if k is not None and positions
        else -math.inf
    )
    weight = [0.0] * len(scores)
    for i in positions:
        if scores[i] >= limit:
            weight[i] = math.exp(scores[i])
        elif dropped == "zero":
            weight[i] = 1.0
    total = sum(weight)
    return [w / total if total else 0.0 for w in weight]


@pytest.fixture
def sample() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    scores = torch.randn(4, 3, 7, dtype=torch.float64)
    scores[0, 0, 2] = scores[0, 0, 5]  # equal scores
    mask = torch.arange(7)[None, None] < torch.tensor([7, 4, 1, 0])[:, None, None]
    return scores, mask


@pytest.mark.parametrize("k", [1, 2, 4, 7, 50, None])
@pytest.mark.parametrize("dropped", ["mask", "zero"])
def test_inattention_is_that_of_the_loop(
    k: int | None, dropped: str, sample: tuple[Tensor, Tensor]
) -> None:
    scores, mask = sample
    found = inattention(scores, mask, k, dropped)  # type: ignore[arg-type]
    there = mask.expand(scores.shape)
    expected = [
        [plain_inattention(s.tolist(), m.tolist(), k, dropped) for s, m in zip(a, b, strict=True)]
        for a, b in zip(scores, there, strict=True)
    ]
    torch.testing.assert_close(
        found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-14
    )


@pytest.mark.parametrize("dropped", ["mask", "zero"])
def test_gradients_of_inattention_are_those_of_finite_differences(
    dropped: str, sample: tuple[Tensor, Tensor]
) -> None:
    scores, mask = sample
    scores[0, 0, 2] += 0.1  # no equal scores
    assert torch.autograd.gradcheck(
        lambda x: inattention(x, mask, 3, dropped), (scores.requires_grad_(),)
    )  # type: ignore[arg-type]
    assert k_largest(
        torch.tensor([2.0, 1.0, 1.0, 1.0, 0.0]), torch.ones(5, dtype=torch.bool), 2
    ).tolist() == [True] * 4 + [False]


def test_rows_without_tokens_are_zero_and_have_gradients() -> None:
    scores = torch.randn(2, 3, requires_grad=True)
    mask = torch.tensor([[True, True, False], [False, False, False]])
    found = masked_softmax(scores, mask)
    found.square().sum().backward()
    assert found[1].tolist() == [0.0, 0.0, 0.0]
    assert scores.grad is not None
    assert bool(scores.grad.isfinite().all())
    logs = masked_log_softmax(scores, mask)
    assert torch.isneginf(logs[~mask]).all()
    torch.testing.assert_close(logs[0].exp(), found[0])


def test_bf16_scores_have_a_softmax_in_fp32() -> None:
    assert (
        masked_softmax(torch.randn(2, 3).bfloat16(), torch.ones(2, 3, dtype=torch.bool)).dtype
        == torch.float32
    )


def plain_ranker(ranker: torch.nn.Module, words: list[int], labels: list[int]) -> Tensor:
    """One pair after the other, on the concatenated embeddings."""
    rows = []
    for label in labels:
        row = []
        for word in words:
            e_word, e_label = (
                ranker.get_parameter("word")[word],
                ranker.get_parameter("label")[label],
            )
            if isinstance(ranker, DotProduct):
                row.append(
                    sum(a * b for a, b in zip(e_word, e_label, strict=True))
                    + ranker.word_bias[word]
                    + ranker.label_bias[label]
                )
            else:
                assert isinstance(ranker, TwoLayers)
                both = torch.cat([e_word, e_label])
                inner = [
                    torch.relu((w * both).sum() + b)
                    for w, b in zip(ranker.first.weight, ranker.first.bias, strict=True)
                ]
                row.append(
                    sum(v * h for v, h in zip(ranker.second.weight[0], inner, strict=True))
                    + ranker.second.bias[0]
                )
        rows.append(torch.stack(row))  # type: ignore[arg-type]
    return torch.stack(rows)


@pytest.mark.parametrize(
    "ranker", [DotProduct(WORDS, LABELS, 4), TwoLayers(WORDS, LABELS, 4, 6)], ids=["dot", "network"]
)
def test_rankers_are_those_of_the_loop(ranker: torch.nn.Module) -> None:
    parameters = list(ranker.double().parameters())
    with torch.no_grad():
        for parameter, number in zip(
            parameters, random_tensors(*(p.shape for p in parameters)), strict=True
        ):
            parameter.copy_(number)
    words, labels = [3, 0, WORDS, 7], [4, 1]
    fast, slow = (
        ranker(torch.tensor(words), torch.tensor(labels)),
        plain_ranker(ranker, words, labels),
    )
    assert_equal((fast, parameters), (slow, parameters), upstream_of(slow))


def test_relevance_is_looked_up_by_word() -> None:
    table = RelevanceByWord(RELEVANCE)
    words, labels = [WORDS, 2, 8, 0], [3, 0, 4]
    dense = torch.from_numpy(RELEVANCE.toarray())
    expected = torch.stack(
        [
            torch.stack(
                [dense[label, word] if word < WORDS else torch.tensor(0.0) for word in words]
            )
            for label in labels
        ]
    )
    assert torch.equal(table(torch.tensor(words), torch.tensor(labels), LABELS), expected)
    assert int((expected > 0).sum()) > 2
    assert not bool(RelevanceByWord(None)(torch.tensor([0, 0]), torch.tensor([1]), LABELS).any())


@pytest.mark.parametrize("kind", ["dot", "network", "relevance"])
def test_built_without_a_table_it_takes_over_the_saved_sizes(kind: str) -> None:
    made = {
        "dot": lambda full: DotProduct(WORDS if full else 0, LABELS, 4),
        "network": lambda full: TwoLayers(WORDS if full else 0, LABELS, 4, 6),
        "relevance": lambda full: RelevanceByWord(RELEVANCE if full else None),
    }[kind]
    saved, empty = made(True), made(False)
    empty.load_state_dict(saved.state_dict())
    assert empty.words == saved.words == WORDS
    assert all(
        torch.equal(a, b)
        for a, b in zip(saved.state_dict().values(), empty.state_dict().values(), strict=True)
    )


def test_a_table_of_another_size_is_refused() -> None:
    with pytest.raises(RuntimeError, match="size mismatch for word"):
        DotProduct(WORDS, LABELS, 4).load_state_dict(DotProduct(WORDS + 1, LABELS, 4).state_dict())


def test_stages_on_another_backbone(clinic: Any) -> None:
    """One stage 1 serves variants of stage 2; relevance with other words is refused."""
    decoder = "model.decoder={name: planted-l2r, ranker_size: 8, ranker_hidden: 8, window: 20}"
    clinic("mig", "mig.k=50")
    result = clinic(
        "pretrain-attn", decoder, "pretrain-attn.score=log-mean", "pretrain-attn.epochs=3"
    )
    figures = result.summary
    name = next(name for name in figures if name.startswith("nDCG"))
    assert figures[name] > figures[f"random {name}"] + 0.05, figures
    clinic(
        "finetune",
        decoder,
        "finetune.scorers=none",
        "model.decoder.state=false",
        "model.decoder.static_k=3",
        tag="stateless",
    )
    with pytest.raises(ArtefactError, match="another network"):
        clinic("finetune", decoder, "model.decoder.ranker=dot-product")
    clinic(
        "predict", decoder, "model.decoder.state=false", "model.decoder.static_k=3", tag="stateless"
    )
    clinic("mig", "mig.k=50", "mig.min_df=4", force=True)
    with pytest.raises(ArtefactError, match="other words than the network"):
        clinic(
            "predict",
            decoder,
            "model.decoder.state=false",
            "model.decoder.static_k=3",
            tag="stateless",
            force=True,
        )


def test_a_state_that_is_no_number_is_told_in_training_and_in_predict(clinic: Any) -> None:
    """A table of one label is enough; nothing is written as predictions."""
    decoder = (
        "model.decoder={name: planted-l2r, ranker_size: 8, ranker_hidden: 8, window: 20}",
        "finetune.scorers=none",
    )
    for stage in ("mig", "pretrain-attn", "finetune"):
        clinic(stage, *decoder)
    for stage in ("finetune", "pretrain-attn"):
        path = clinic.path / stage / "model.safetensors"
        tensors, marks = read_tensors(path, "the weights", "")
        tensors["boost"][3] = torch.finfo(torch.float32).max  # products are infinite
        write_tensors(path, tensors, marks)
        record_again(path.parent)
    with pytest.raises(
        TrainingError, match=r"the network \(planted-l2r on tiny\) are not numbers"
    ) as caught:
        clinic("predict", *decoder)
    assert "scoring test, document" in caught.value.where
    assert not (clinic.path / "predict" / "predictions.parquet").exists()
    with pytest.raises(TrainingError, match="not a number"):
        clinic("finetune", *decoder, "finetune.epochs=2", force=True)


def test_a_relevance_table_of_one_word(clinic: Any, tmp_path: Path) -> None:
    """What the L2R model knows is one word; all stages run, and the word decides."""
    rows = [
        (split, text, [label])
        for split, count in (("train", 24), ("validation", 6), ("test", 6))
        for number in range(count)
        for text, label in (
            ("fever", "a"),
            ("b" * (number + 3), "b"),
        )  # each of the others is in one document alone
    ]
    pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").write_parquet(
        tmp_path / "one.parquet"
    )
    sets = (
        "data.dataset=files",
        f"data.path={tmp_path / 'one.parquet'}",
        "finetune.scorers=none",
        "finetune.head=random",
    )
    decoder = "model.decoder={name: planted-l2r, ranker_size: 8, ranker_hidden: 8, window: 20}"
    assert clinic("mig", *sets).summary["words"] == 1
    clinic("pretrain-attn", *sets, decoder)
    clinic(
        "finetune",
        *sets,
        decoder,
        "finetune.epochs=3",
        "finetune.rate_head=0.1",
        "finetune.rate_boost=0.1",
    )
    clinic("predict", *sets, decoder)


def keep_padded_windows(decoder: PlantedL2R, evidence: Tensor, batch: Any) -> Tensor:
    """`_kept` that counts windows of padding as windows."""
    return torch.softmax(decoder.window_sharpness * evidence, -1)


def rank_padding(scores: Tensor, mask: Tensor, k: int | None, dropped: str) -> Tensor:
    """`inattention` whose k best tokens may be padding."""
    return masked_softmax(scores, k_largest(scores, torch.ones_like(mask), k) & mask)


def divide_by_batch(decoder: PlantedL2R, batch: Any, labels: Tensor) -> Tensor:
    """`_static` that depends on the other documents."""
    found = batch.spread(decoder.relevance(batch.distinct, labels, len(decoder.bias))) * batch.mask
    return found / found.amax().clamp_min(0.1)


def begin_with_the_first_label(
    relevance: RelevanceByWord, words: Tensor, labels: Tensor, total: int
) -> Tensor:
    """Relevance of other labels than those asked for."""
    return WHOLE(relevance, words, torch.arange(len(labels)), total)


WHOLE = RelevanceByWord.forward


@pytest.mark.parametrize(
    ("check", "part", "wrong"),
    [
        (decoders.padding_changes_nothing, "PlantedL2R._kept", keep_padded_windows),
        (decoders.padding_changes_nothing, "inattention", rank_padding),
        (decoders.documents_stand_alone, "PlantedL2R._static", divide_by_batch),
        (
            decoders.some_labels_equal_their_columns,
            "RelevanceByWord.forward",
            begin_with_the_first_label,
        ),
        (
            decoders.very_many_labels_equal_their_blocks,
            "RelevanceByWord.forward",
            begin_with_the_first_label,
        ),
        (decoders.saved_weights_give_the_same_logits, "RelevanceByWord.sized", ()),
    ],
    ids=[
        "window-of-padding",
        "padding-ranked",
        "other-documents",
        "other-labels",
        "other-labels-of-many",
        "not-saved",
    ],
)
def test_conformance_checks_reach_what_is_planted(
    check: Any, part: str, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documents of the checks have words, and more tokens than a window; so a fault in what
    only they reach is found.
    """
    check(PLANTED_L2R)
    monkeypatch.setattr(f"plant_decoders.planted_l2r.{part}", wrong)
    with pytest.raises((AssertionError, RuntimeError)):
        check(PLANTED_L2R)
