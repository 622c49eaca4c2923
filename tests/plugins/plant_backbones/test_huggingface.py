"""Hugging Face backbones on small random models: encoders and causal ones, adapters, 4-bit
weights; families as data.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from plant_backbones import huggingface
from plant_backbones.huggingface import HuggingFaceBackbone, Packed, Profile
from plant_backbones.profile import ATTENTION, BERT_ATTENTION, Family, HuggingFaceOptions
from pydantic import ValidationError
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertModel,
    ByT5Tokenizer,
    LlamaConfig,
    LlamaModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    RobertaConfig,
)

from plant_cli.api import ArtefactError, ComponentError, MachineSection, ResourceError

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    *"abcdefghijklmnopqrstuvwxyz",
    "fever",
    "cough",
    "patient",
]


def save_tokenizer(folder: Path, *, framed: bool) -> None:
    plain = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    if framed:
        plain.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
    PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="[PAD]", unk_token="[UNK]"
    ).save_pretrained(folder)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=24,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    save_tokenizer(folder, framed=True)
    return folder


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("causal")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=64,
    )
    LlamaModel(config).save_pretrained(folder)
    save_tokenizer(folder, framed=False)
    return folder


def load(folder: Path, kind: str = "encoder", **options: object) -> HuggingFaceBackbone:
    targets = BERT_ATTENTION if kind == "encoder" else ATTENTION
    return HuggingFaceBackbone(
        Profile(model=str(folder), adapter_targets=targets, kind=kind),
        HuggingFaceOptions(**{"overlap": 4} | options),
    )


def test_offsets_point_at_the_words_and_the_rest_is_counted(encoder: Path) -> None:
    text = "patient  had\tfever"
    batch = load(encoder, max_tokens=3).tokenize([text, "a b c d e", "a"])
    assert [text[a:b] for a, b in batch.spans[0]] == ["patient", "had", "fever"]
    assert list(batch.dropped) == [0, 2, 0]
    assert [len(i) for i in batch.ids] == [3, 3, 1]


def test_hidden_states_are_those_of_the_model_without_special_tokens_or_neighbours(
    encoder: Path,
) -> None:
    backbone = load(encoder)
    backbone.module().eval()
    batch = backbone.tokenize(["fever cough", "patient"])
    hidden, mask = backbone.encode(batch)
    ids = torch.tensor([[2, *batch.ids[0].tolist(), 3]])
    whole = backbone.network(input_ids=ids).last_hidden_state
    torch.testing.assert_close(hidden[0, :2], whole[0, 1:3])
    assert mask.tolist() == [[True, True], [True, False]]
    alone, _ = backbone.encode(backbone.tokenize(["fever cough"]))
    torch.testing.assert_close(alone[0], hidden[0], rtol=1e-5, atol=1e-6)


def test_a_prompt_stands_in_every_window_and_has_no_states(encoder: Path) -> None:
    backbone = HuggingFaceBackbone(
        Profile(model=str(encoder), adapter_targets=BERT_ATTENTION, prompt="patient a"),
        HuggingFaceOptions(window=12, overlap=4),
    )
    backbone.module().eval()
    batch = backbone.tokenize(["a b c d e f g"])
    hidden, mask = backbone.encode(batch)
    window = [2, WORDS.index("patient"), WORDS.index("a"), *batch.ids[0].tolist(), 3]
    assert mask.sum() == 7
    torch.testing.assert_close(
        hidden[0], backbone.network(input_ids=torch.tensor([window])).last_hidden_state[0, 3:-1]
    )


def test_a_packed_model_is_read_as_the_same_model_in_a_folder(encoder: Path) -> None:
    whole, calls = BertModel.from_pretrained(encoder, add_pooling_layer=False), []
    packed = Packed(
        architecture="BertModel",
        config=whole.config,
        tokenizer=AutoTokenizer.from_pretrained(encoder),
        weights=lambda: calls.append("read") or whole.state_dict(),  # type: ignore[func-returns-value]
        origin="a file of its own",
    )
    profile = Profile(model="org/original", adapter_targets=BERT_ATTENTION, packed=packed)
    with torch.device("meta"):
        assert next(
            HuggingFaceBackbone(profile, HuggingFaceOptions(overlap=4)).module().parameters()
        ).is_meta
    assert calls == []
    backbone = HuggingFaceBackbone(profile, HuggingFaceOptions(overlap=4))
    backbone.module().eval()
    expected = load(encoder)
    expected.module().eval()
    batch = expected.tokenize(["fever cough", "patient"])
    torch.testing.assert_close(backbone.encode(batch)[0], expected.encode(batch)[0], rtol=0, atol=0)
    assert (backbone.origin, backbone.network.name_or_path) == ("a file of its own", "org/original")
    assert expected.origin == str(encoder)


@pytest.mark.parametrize("roberta", [False, True])
def test_a_document_longer_than_the_model_is_read_to_its_end(
    encoder: Path, small_model: Callable[..., Path], roberta: bool
) -> None:
    """RoBERTa keeps positions for padding, which are no part of a window."""
    backbone = load(
        small_model(RobertaConfig, max_position_embeddings=34, pad_token_id=1)
        if roberta
        else encoder
    )
    backbone.module().eval()
    assert backbone.window == (32 if roberta else 24)
    hidden, mask = backbone.encode(backbone.tokenize(["a b c d e f g " * 10]))
    assert mask.sum() == 70
    assert bool(torch.isfinite(hidden).all())
    assert hidden[0, -1].abs().sum() > 0


def test_windows_that_hardly_move_on_are_refused(encoder: Path) -> None:
    with pytest.raises(ComponentError, match="overlap of 32"):
        load(encoder, window=16, overlap=32)


def test_full_training_saves_every_weight_and_a_frozen_backbone_none(
    encoder: Path, tmp_path: Path
) -> None:
    backbone = load(encoder, adapter="full")
    groups = backbone.layer_groups()
    assert len(groups) == 3
    assert sorted(id(p) for group in groups for p in group) == sorted(
        id(p) for p in backbone.module().parameters()
    )
    with torch.no_grad():
        next(iter(backbone.module().parameters())).add_(1.0)
    backbone.module().eval()
    batch = backbone.tokenize(["fever"])
    backbone.save(tmp_path)
    fresh = load(encoder, adapter="full")
    fresh.module().eval()
    fresh.restore(tmp_path)
    torch.testing.assert_close(fresh.encode(batch)[0], backbone.encode(batch)[0])
    assert not any(p.requires_grad for p in load(encoder, adapter="none").module().parameters())


@pytest.mark.parametrize("revision", [None, "abc"])
def test_a_missing_model_says_how_to_get_it_at_its_commit(revision: str | None) -> None:
    with pytest.raises(ResourceError) as caught:
        HuggingFaceBackbone(
            Profile(model="some/model", revision=revision, adapter_targets=()), HuggingFaceOptions()
        )
    assert "hf download some/model" + (" --revision abc" if revision else "") in caught.value.todo


@pytest.mark.parametrize("adapter", ["none", "full"])
def test_weights_that_were_cut_off_are_named(encoder: Path, tmp_path: Path, adapter: str) -> None:
    folder = shutil.copytree(encoder, tmp_path / "cut")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    with pytest.raises(ResourceError, match="could not be loaded") as caught:
        load(folder, adapter=adapter)
    assert caught.value.where == str(folder)


@pytest.mark.parametrize("adapter", ["none", "full"])
@pytest.mark.parametrize("name", ["pytorch_model.bin", "weights.pt", "model.pkl"])
def test_pickled_weights_are_not_read(
    encoder: Path, tmp_path: Path, name: str, adapter: str
) -> None:
    """Nor is it said how to have them read all the same."""
    folder = shutil.copytree(encoder, tmp_path / "pickled")
    torch.save(load_file(folder / "model.safetensors"), folder / name)
    load(folder, adapter=adapter)  # beside safetensors they do not matter
    (folder / "model.safetensors").unlink()
    with pytest.raises(
        ArtefactError, match=f"the weights of the model are in {name}, a pickled file"
    ) as caught:
        load(folder, adapter=adapter)
    assert "safetensors" in caught.value.expected
    assert "weights_only" not in str(caught.value)


def test_a_gated_model_says_where_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise OSError("You are trying to access a gated repo.\nMake sure to have access to it.")

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", refuse)
    with pytest.raises(ResourceError, match="gated repo") as caught:
        HuggingFaceBackbone(Profile(model="some/model", adapter_targets=()), HuggingFaceOptions())
    assert "https://huggingface.co/some/model" in caught.value.todo
    assert "hf auth login" in caught.value.todo


def test_a_slow_tokenizer_is_refused_with_the_reason(causal: Path, tmp_path: Path) -> None:
    folder = tmp_path / "slow"
    LlamaConfig.from_pretrained(causal).save_pretrained(folder)
    ByT5Tokenizer().save_pretrained(folder)
    with pytest.raises(ComponentError, match="slow one") as caught:
        load(folder, "causal")
    assert "offsets" in caught.value.expected


@pytest.mark.parametrize("config", [LlamaConfig, Qwen2Config])
def test_a_model_without_a_tokenizer_is_refused(tmp_path: Path, config: type) -> None:
    config().save_pretrained(tmp_path)
    with pytest.raises(ResourceError, match="tokenizer"):
        load(tmp_path, "causal")


def test_gradient_checkpointing_changes_no_gradient(causal: Path) -> None:
    found = []
    for checkpointing in (False, True):
        torch.manual_seed(0)
        backbone = load(
            causal, "causal", adapter="lora", lora_dropout=0.0, gradient_checkpointing=checkpointing
        )
        backbone.module().train()
        backbone.encode(backbone.tokenize(["patient fever a b"]))[0].square().sum().backward()
        found.append(
            {n: p.grad for n, p in backbone.module().named_parameters() if p.requires_grad}
        )
    assert any("layers.0" in name and bool(gradient.any()) for name, gradient in found[1].items())
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize(
    ("precision", "expand", "told"),
    [
        ("fp32", True, ""),
        ("bf16", None, ", in bf16, with weights in 4 bits"),
        ("bf16", True, ", in bf16, with 4-bit weights written out"),
    ],
)
def test_quantised_models_compute_as_precision_says(
    causal: Path, precision: str, expand: bool | None, told: str
) -> None:
    profile = Profile(
        model=str(causal),
        adapter_targets=ATTENTION,
        kind="causal",
        device="cpu",
        precision=precision,
    )
    backbone = HuggingFaceBackbone(
        profile,
        HuggingFaceOptions(adapter="lora", quantization="nf4", expand_weights=expand, overlap=4),
    )
    assert backbone.number_format == told
    backbone.module().eval()
    with torch.no_grad():
        hidden, mask = backbone.encode(backbone.tokenize(["patient fever cough a b", "a"]))
        alone, _ = backbone.encode(backbone.tokenize(["a"]))
    assert hidden.dtype == torch.float32
    assert mask.sum(1).tolist() == [5, 1]
    torch.testing.assert_close(hidden[1, :1], alone[0], rtol=2e-2, atol=2e-2)


FAMILY = Family(
    name="some",
    summary="Some.",
    models={"small": "org/small@abc", "large": "org/large"},
    other_targets={"odd": ("qkv",)},
)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []
    monkeypatch.setattr(
        huggingface, "HuggingFaceBackbone", lambda profile, options: seen.append(profile)
    )
    return seen


def test_models_go_by_short_name_id_or_folder() -> None:
    names = ("small", "org/small", "large", "else/where")
    assert [FAMILY.find(name) for name in names] == [("org/small", "abc")] * 2 + [
        ("org/large", None),
        ("else/where", None),
    ]


def test_a_family_is_a_backbone_with_its_models_in_the_help() -> None:
    options = FAMILY.options()
    assert options().model == "org/small"
    assert "large (org/large)" in str(options.model_fields["model"].description)
    with pytest.raises(ValidationError, match="extra"):
        options(nonsense=1)
    other = Family(name="any", summary="Any.", languages=("en", "de"))
    assert (FAMILY.spec().languages, other.spec().languages) == (None, ("en", "de"))
    with pytest.raises(ValidationError, match="model"):
        other.options()()


def test_what_is_asked_for_goes_before_what_the_family_says(
    loaded: list[Any], tmp_path: Path
) -> None:
    options = FAMILY.options()
    FAMILY.load(options(), MachineSection(device="cpu"))
    FAMILY.load(options(revision="def", adapter_targets=["qkv"]), MachineSection())
    FAMILY.load(options(model=str(tmp_path)), MachineSection())
    first, second, third = loaded
    assert (first.model, first.revision, first.device) == ("org/small", "abc", "cpu")
    assert (first.adapter_targets, first.other_targets) == (ATTENTION, {"odd": ("qkv",)})
    assert (second.revision, second.adapter_targets, second.other_targets) == ("def", ("qkv",), {})
    assert (third.model, third.revision) == (str(tmp_path), None)
