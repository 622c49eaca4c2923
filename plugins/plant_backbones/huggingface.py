"""Backbones from Hugging Face models: loading, windows and offsets; adapters and 4-bit weights
by `quantization`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import transformers
from huggingface_hub import try_to_load_from_cache
from huggingface_hub.constants import ENDPOINT
from huggingface_hub.utils import get_session
from plant_network.compute import TOKEN_MULTIPLE, send
from plant_network.hardware import find_device, find_dtype, free_memory
from plant_network.recomputation import Recomputation, activation_bytes
from plant_network.replays import PASS_SHARE, POSITION_MULTIPLE, Replays
from plant_network.trainable_layers import restore_trainable, save_trainable, split_layers
from safetensors import SafetensorError
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from torch import Tensor, nn
from torch.nn import functional

from plant_backbones import quantization
from plant_backbones.bert import Bert, load_bert, make_bert
from plant_backbones.bf16_models import Bf16Model, is_short, unmasked
from plant_backbones.gguf_models import read_gguf_model
from plant_backbones.profile import HuggingFaceOptions, Packed, PublishedShape
from plant_backbones.windows import (
    Windows,
    check_overlap,
    cut,
    join_windows,
    readable_positions,
)
from plant_cli.api import ArtefactError, ComponentError, ResourceError, TokenBatch, first_line
from plant_cli.kit import hash_strings

HUB_ID = re.compile(
    r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?"
)  # what a path with a folder of a folder, `.` or `~` is not
HUB_SECONDS = 3.0  # waited for the hub
MODEL_FILES = ("config.json", "tokenizer.json")  # of every model in a folder, beside its weights
PICKLED = (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".pickle")


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Which model, and how its architecture names its parts."""

    # hub id or local folder; of a packed model, the id under which the original is published
    model: str
    adapter_targets: tuple[str, ...]  # names of the linear maps that get adapters (q, k, v, o)
    other_targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The same for architectures (`model_type`) with other names."""
    window: int | None = None  # positions of one window (None: those of the model's configuration)
    revision: str | None = None  # commit, tag or branch of a hub model (None: the newest)
    published: str | None = (
        None  # hub id under which others find the same weights, where `model` is a folder
    )
    kind: Literal["encoder", "causal"] = "encoder"
    device: str = (
        "auto"  # where quantised weights are made (auto: the first GPU, else the processor)
    )
    precision: str = "auto"  # of products (`MachineSection`)
    prompt: str = ""
    """Words that the model was trained to read first, such as `passage:`; every window begins
    with them, and their hidden states are left out. No space at the end: the tokenizer puts one
    before the text that follows.
    """
    shape: PublishedShape | None = (
        None  # by which `plant plan` goes where the model is not on this machine
    )
    gguf: str | None = None  # a GGUF file in the folder `model`, or a path of its own
    packed: Packed | None = (
        None  # the model itself, if a plugin has read it; else it is loaded from `model`
    )


class HuggingFaceBackbone:
    """A Hugging Face encoder or causal model read as a backbone (`plant_cli.api.Backbone`)."""

    def __init__(self, profile: Profile, options: HuggingFaceOptions) -> None:
        if profile.gguf is not None:
            path = _find_gguf(profile, profile.gguf)
            packed = read_gguf_model(
                path, short=options.quantization != "none", published=profile.published
            )
            profile = replace(profile, packed=packed)
        elif (
            profile.shape is not None
            and torch.get_default_device().type == "meta"
            and not _is_at_hand(profile)
        ):
            profile = replace(profile, packed=_outline(profile, profile.shape))
        self.tokenizer = load_tokenizer(profile, options)
        self.network = load_pretrained(profile, options)
        config = self.network.config
        positions = readable_positions(self.network)
        self.window = min(options.window or profile.window or positions, positions)
        self.overlap = options.overlap
        self.max_length = options.max_tokens
        self.hidden_size = int(config.hidden_size)
        self.tokenizer_hash = hash_strings([self.tokenizer.backend_tokenizer.to_str()])
        first, self.suffix = special_tokens(self.tokenizer)
        self.prefix = [
            *first,
            *self.tokenizer(profile.prompt, add_special_tokens=False)["input_ids"],
        ]
        check_overlap(self.window, self.overlap, len(self.prefix) + len(self.suffix))
        pad = self.tokenizer.pad_token_id
        self.pad = int(pad if pad is not None else self.tokenizer.eos_token_id or 0)
        self.adapted = options.adapter in ("lora", "dora")
        self.profile = profile
        self.options = options

    @property
    def estimated(self) -> bool:
        """Whether its tokens only tell how many there are about."""
        return self.profile.packed is not None and self.profile.packed.estimated

    @property
    def origin(self) -> str:
        """Where the weights come from."""
        if self.profile.packed is not None:
            return self.profile.packed.origin
        revision = f" at revision {self.profile.revision}" if self.profile.revision else ""
        return f"{self.profile.published or self.profile.model}{revision}"

    @property
    def number_format(self) -> str:
        """The form of quantised weights, for people; empty where they compute in fp32."""
        if self.short is None:
            return ""
        expanded = getattr(self.network, "hf_quantizer", None) is None  # as transformers leaves it
        return (
            ", in "
            f"bf16{', with 4-bit weights written out' if expanded else ', with weights in 4 bits'}"
        )

    def tokenize(self, texts: Sequence[str]) -> TokenBatch:
        """Tokens of texts, with character offsets."""
        tokens = self.tokenizer(
            list(texts),
            add_special_tokens=False,
            return_offsets_mapping=True,
            truncation=False,
            return_attention_mask=False,
            verbose=False,
        )
        limit = self.max_length
        ids = [np.asarray(row[:limit], dtype=np.int32) for row in tokens["input_ids"]]
        spans = [
            np.asarray(row[:limit], dtype=np.int32).reshape(-1, 2)
            for row in tokens["offset_mapping"]
        ]
        return TokenBatch(
            ids=ids, spans=spans, dropped=[max(0, len(row) - limit) for row in tokens["input_ids"]]
        )

    @cached_property
    def short(self) -> Bf16Model | None:
        """What makes the network compute in bf16 throughout; None where it does not."""
        return Bf16Model(self.network) if is_short(self.network, self.options) else None

    @cached_property
    def recomputation(self) -> Recomputation:
        """Which batches compute their activations twice."""
        return Recomputation(self.network, self.options.gradient_checkpointing)

    @cached_property
    def replays(self) -> Replays | None:
        """The passes that a card replays; None elsewhere, and for models with a mask or that
        compute activations twice.
        """
        chosen, device = self.options, next(self.network.parameters()).device
        if (
            self.short is None
            or self.profile.kind != "causal"
            or chosen.gradient_checkpointing
            or not chosen.cuda_graphs
        ):
            return None
        return (
            Replays(self._read_freshly, self.short.parameters, self._fits)
            if device.type == "cuda"
            else None
        )

    def _read(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        given: dict[str, Any] = (
            {"use_cache": False}
            if getattr(self.network.config, "use_cache", None) is not None
            else {}
        )
        if mask is not None:
            given["attention_mask"] = mask
        states: Tensor = self.network(input_ids=ids, **given).last_hidden_state
        return states

    def _read_freshly(self, ids: Tensor) -> tuple[Tensor, list[Tensor]]:
        assert self.short is not None
        with self.short.fresh_leaves() as leaves:
            return self._read(ids), leaves

    def _fits(self, positions: int) -> bool:
        """Whether a card may keep the memory that activations of so many positions take."""
        device, twice = next(self.network.parameters()).device, self.recomputation.choose(positions)
        return not twice and activation_bytes(self.network, positions) <= PASS_SHARE * free_memory(
            device
        )

    def _replay(self, ids: Tensor, device: torch.device) -> Tensor | None:
        """Hidden states of windows [W, S], in as many rows as the captured pass has; None where
        they are read as usual.
        """
        key = (
            self.replays.find(ids.shape)
            if self.replays is not None and self.network.training
            else None
        )
        if self.replays is None or key is None:
            return None
        return self.replays.run(
            key, send(functional.pad(ids, (0, 0, 0, key[0] - len(ids)), value=self.pad), device)
        )

    def cut(self, batch: TokenBatch, multiple: int = TOKEN_MULTIPLE) -> Windows:
        """The documents in windows, whose positions are rounded up to a multiple."""
        frame: dict[str, Any] = {"prefix": self.prefix, "suffix": self.suffix, "pad": self.pad}
        return cut(batch, size=self.window, overlap=self.overlap, multiple=multiple, **frame)

    def encode(self, batch: TokenBatch) -> tuple[Tensor, Tensor]:
        """Hidden states [B, T, H] and mask [B, T]."""
        multiple = TOKEN_MULTIPLE if self.replays is None else POSITION_MULTIPLE
        windows = self.cut(batch, multiple)
        device = next(self.network.parameters()).device
        whole = device.type == "cuda" and bool(
            windows.mask.all()
        )  # on a processor, the sums of attention take another order
        states = None
        with ExitStack() as stack:
            if self.short is not None:
                stack.enter_context(self.short.ready(device))
                if self.profile.kind == "causal" and stack.enter_context(
                    unmasked(self.network.config, windows.ids.shape[1])
                ):
                    whole, states = True, self._replay(windows.ids, device)
            if states is None:
                self.recomputation.choose(windows.ids.numel())
                states = self._read(
                    send(windows.ids, device), None if whole else send(windows.mask.long(), device)
                )
        return join_windows(
            states.float(), windows
        )  # quantised networks may give bf16; decoders read fp32

    def module(self) -> nn.Module:
        """What is trained and saved."""
        module: nn.Module = self.network
        return module

    def layer_groups(self) -> Sequence[Sequence[nn.Parameter]]:
        """Layers that are unfrozen together, from first to last."""
        return split_layers(self.network)

    def save(self, folder: Path) -> None:
        """Write an adapter in peft's layout, or the trainable weights."""
        if self.adapted:
            quantization.save_adapter(self.network, folder / "adapter")
        else:
            save_trainable(self.network, folder / "backbone.safetensors")

    def export(self, folder: Path, *, merge: bool) -> Mapping[str, Any]:
        """Write the model for other programs; of a packed model all weights, unless other
        programs can read it.
        """
        written, packed = None, self.profile.packed
        if merge or self.options.adapter == "full" or (packed is not None and not packed.readable):
            written = "backbone"
            network = (
                _load_any(self.profile, self.options)
                if isinstance(self.network, Bert)
                else self.network
            )
            self.network = quantization.merge_adapter(network, self.options)
            self.network.save_pretrained(str(folder / written), safe_serialization=True)
        elif self.adapted:
            written = "adapter"
            self.save(folder)
        if written:
            self.tokenizer.save_pretrained(str(folder / written))
        return {
            "folder": written,
            "merged": written == "backbone",
            "base_model": self.profile.published or self.profile.model,
            "revision": self.profile.revision,
            "origin": self.origin,
            "prompt": self.profile.prompt,
            "architecture": self.network.config.model_type,
            "dtype": str(next(self.network.parameters()).dtype).removeprefix("torch.")
            if written == "backbone"
            else None,
            **self.options.model_dump(include={"adapter", "quantization", "overlap", "max_tokens"}),
            "window": self.window,
        }

    def restore(self, folder: Path) -> None:
        """Read what `save` wrote."""
        if self.adapted:
            quantization.restore_adapter(self.network, folder / "adapter")
        else:
            restore_trainable(self.network, folder / "backbone.safetensors")


def load_tokenizer(profile: Profile, options: HuggingFaceOptions) -> Any:
    """The model's fast tokenizer; a slow one has no character offsets and is refused."""
    if profile.packed is not None:
        return profile.packed.tokenizer
    with _explained(profile):
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            profile.model, **_source(profile), trust_remote_code=options.trust_remote_code
        )
        if not tokenizer("a")[
            "input_ids"
        ]:  # some classes come up empty where tokenizer.json is missing
            raise OSError("its tokenizer knows no words: tokenizer.json is missing")
    if not tokenizer.is_fast:
        raise ComponentError(
            f"the tokenizer of {profile.model} is a slow one ({type(tokenizer).__name__})",
            where=profile.model,
            expected="a fast tokenizer (tokenizer.json): only these give character offsets, which "
            "tie words to tokens",
            todo="convert it with transformers' convert_slow_tokenizer and save it in the folder "
            "of the model",
        )
    return tokenizer


def load_pretrained(profile: Profile, options: HuggingFaceOptions) -> Any:
    """The model without its language-model head, with adapters and quantised weights when asked
    for.

    Under `torch.device("meta")` it is built from config.json alone, as `plant plan` asks: all
    shapes, no weights.
    """
    packed = profile.packed
    if packed is None and torch.get_default_device().type != "meta":
        _refuse_pickles(Path(profile.model))
    if (
        profile.kind == "encoder" and options.adapter == "none" and options.quantization == "none"
    ):  # a frozen BERT needs torch alone
        with _explained(profile):
            if packed is None:
                plain = load_bert(Path(profile.model))
            else:
                plain = (
                    make_bert(packed.config.to_dict(), packed.weights)
                    if packed.architecture == "BertModel"
                    else None
                )
        if plain is not None:
            return plain
    return _load_any(profile, options)


def _refuse_pickles(folder: Path) -> None:
    """Refuse a local model whose weights are in pickled files alone: these can hold code."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    pickled = next((name for name in sorted(names) if name.endswith(PICKLED)), None)
    if pickled is not None and not any(name.endswith(".safetensors") for name in names):
        raise ArtefactError(
            f"the weights of the model are in {pickled}, a pickled file, which can hold code: it "
            "is not read",
            where=str(folder),
            expected="weights as safetensors (model.safetensors), the only form that is read",
            todo="take the model in that form, as most models on the hub are, or have it "
            "converted by somebody who trusts its source",
        )


def _load_any(profile: Profile, options: HuggingFaceOptions) -> Any:
    """The model by transformers."""
    transformers.utils.logging.disable_progress_bar()  # the terminal shows ours
    # a pooler that is left out on purpose is no news
    transformers.utils.logging.set_verbosity_error()
    weightless = torch.get_default_device().type == "meta"
    formats = {} if weightless else quantization.loading_arguments(options, profile.device)
    with _explained(profile):
        network = _make_network(profile, options, formats, weightless=weightless)
    if options.quantization != "none" and not weightless:
        network = quantization.freeze(
            network, options, find_dtype(find_device(profile.device), profile.precision)
        )
    return prepare_network(network, profile, options)


def _make_network(
    profile: Profile, options: HuggingFaceOptions, formats: Mapping[str, Any], *, weightless: bool
) -> Any:
    """A packed model or a published one, with weights or without; encoders without their
    pooling layer.
    """
    packed, trusted = profile.packed, {"trust_remote_code": options.trust_remote_code}
    make: Callable[..., Any]
    if packed is not None:
        known = getattr(transformers, packed.architecture)
        if weightless:
            make = partial(known, packed.config)
        else:
            make = partial(
                known.from_pretrained,
                None,
                config=packed.config,
                state_dict=dict(packed.weights()),
                **formats,
            )
    else:
        config = transformers.AutoConfig.from_pretrained(
            profile.model, **_source(profile), **trusted
        )
        quantization.refuse_stored_format(config, profile.model, options)
        if weightless:
            make = partial(transformers.AutoModel.from_config, config, **trusted)
        else:
            safe = {**_source(profile), "use_safetensors": True}
            make = partial(
                transformers.AutoModel.from_pretrained, profile.model, **safe, **trusted, **formats
            )
    try:
        network = make(add_pooling_layer=False) if profile.kind == "encoder" else make()
    except TypeError:  # an architecture without the pooling layer that encoders may leave out
        network = make()
    if packed is not None:
        network.name_or_path = profile.model  # the model that an adapter says it belongs to
    return network


def prepare_network(network: Any, profile: Profile, options: HuggingFaceOptions) -> Any:
    """A loaded model made ready to learn: trainable weights, activations that the backward pass
    computes again, and adapters.
    """
    network.requires_grad_(options.adapter == "full")
    if options.gradient_checkpointing is not False:
        enable = (
            getattr(network, "activation_checkpointing_enable", None)
            or network.gradient_checkpointing_enable
        )  # older transformers
        enable({"use_reentrant": False})
    if options.adapter in ("lora", "dora"):
        targets = profile.other_targets.get(network.config.model_type, profile.adapter_targets)
        return quantization.add_adapter(network, profile.model, targets, options)
    return network


def special_tokens(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Ids that the tokenizer puts before and after a text."""
    tokens = tokenizer("a", add_special_tokens=True, return_special_tokens_mask=True)
    ids, special = list(tokens["input_ids"]), list(tokens["special_tokens_mask"])
    first = special.index(0) if 0 in special else len(ids)
    last = len(ids) - special[::-1].index(0) if 0 in special else len(ids)
    return ids[:first], ids[last:]


def _source(profile: Profile) -> dict[str, Any]:
    """Where a model comes from: a folder (`ResourceError` if it is missing), or the hub, or
    what the hub gave before.
    """
    if Path(profile.model).is_dir():
        return {"revision": profile.revision}
    if not HUB_ID.fullmatch(profile.model):
        found = "is a file" if Path(profile.model).is_file() else "does not exist"
        raise ResourceError(
            f"the folder of the model {found}",
            where=profile.model,
            expected="a folder with config.json, tokenizer.json and safetensors, or the id of a "
            "model on the hub (OWNER/NAME)",
            todo="correct the path: --set model.backbone.model=FOLDER; of a causal model in a "
            "GGUF file, name the folder there, and the "
            "file with --set model.backbone.gguf=FILE",
        )
    return {"revision": profile.revision, "local_files_only": not _hub_answers()}


@cache
def _hub_answers() -> bool:
    """Whether the hub can be reached; asked once, because each file that is asked for in vain
    is asked for many times.
    """
    try:
        get_session().head(ENDPOINT, timeout=HUB_SECONDS)
    except Exception:  # of whichever library makes the connection
        return False
    return True


def _is_at_hand(profile: Profile) -> bool:
    """Whether a model is in a folder, or in the cache of Hugging Face at its revision."""
    if Path(profile.model).is_dir():
        return True
    found = try_to_load_from_cache(profile.model, "config.json", revision=profile.revision)
    return isinstance(found, str)


def _outline(profile: Profile, shape: PublishedShape) -> Packed:
    """A model by its published sizes, without weights; its tokenizer cuts words into pieces of
    four letters, about as many as real ones.
    """
    tokenizer = Tokenizer(WordLevel({"": 0}, unk_token=""))
    tokenizer.pre_tokenizer = Split(Regex(r"\s?\S{1,4}"), behavior="isolated")
    config = transformers.AutoConfig.for_model(**shape._asdict())
    return Packed(
        architecture=f"{type(config).__name__.removesuffix('Config')}Model",
        config=config,
        tokenizer=transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=""),
        weights=dict,
        origin=f"the published sizes of {profile.model}",
        estimated=True,
    )


def _find_gguf(profile: Profile, name: str) -> Path:
    """A GGUF file in the model's folder, at a path of its own, or on the hub."""
    local = Path(profile.model) / name
    if local.is_file() or Path(profile.model).is_dir() or Path(name).is_absolute():
        return local
    with _explained(profile):
        return Path(transformers.utils.cached_file(profile.model, name, **_source(profile)))


@contextmanager
def _explained(profile: Profile) -> Iterator[None]:
    """Turns failures to load into an error that says which file or command is missing."""
    try:
        yield
    except (
        OSError,
        ValueError,
        SafetensorError,
    ) as error:  # a ValueError: no tokenizer of any form, or an architecture nobody knows
        model, gated = profile.model, "gated repo" in str(error)
        what, folder = f"the model {model} could not be loaded: {first_line(error)}", Path(model)
        revision = f" --revision {profile.revision}" if profile.revision else ""
        if gated:
            expected = "an account that was granted access to it"
            todo = f"ask for access at https://huggingface.co/{model}, then `hf auth login`"
        elif folder.is_dir():
            missing = [name for name in MODEL_FILES if not (folder / name).is_file()]
            what = f"the folder of the model has no {' and no '.join(missing)}" if missing else what
            expected = (
                "config.json, tokenizer.json and safetensors of a model that transformers knows"
            )
            packed = next((path.name for path in sorted(folder.glob("*.gguf"))), "")
            todo = (
                f"for a causal model in a GGUF file: --set model.backbone.gguf={packed}"
                if packed
                else "take all files as they are published"
            )
        else:
            expected = (
                "a local folder with config.json, tokenizer.json and safetensors, or a hub "
                "id that this machine can reach"
            )
            todo = (
                f"download it once where there is a network (`hf download {model}{revision}`), "
                "and give the folder: "
            )
            todo += "--set model.backbone.model=FOLDER"
        raise ResourceError(what, where=model, expected=expected, todo=todo) from error
