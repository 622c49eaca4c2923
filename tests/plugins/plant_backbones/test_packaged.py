"""The real weights and tokenizer from their packages, where these are installed."""

import ctypes
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pytest
import torch
from plant_backbones import MultilingualOptions
from plant_backbones.packaged import (
    PACKAGED_WEIGHTS,
    TOKENIZER,
    load_multilingual,
    read_packaged,
    read_tokenizer,
)

from plant_cli.api import MachineSection

TEXTS = [
    "The patient was admitted with pneumonia and treated with antibiotics.",
    "Potilas otettiin sairaalaan keuhkokuumeen vuoksi.",
    "Größere Änderungen – naïve café, x² ≥ 3; İstanbul.",
    "日本語のテストです。～",
    "한국어는 대한민국의 공용어이다",
    "हिन्दी विश्व की एक प्रमुख भाषा है",
    "العربية لغة سامية",
    "Ελληνικά",
]
TRANSLATIONS = {
    "How is pneumonia treated?": "Miten keuhkokuumetta hoidetaan?",
    "The bridge over the river is made of steel.": "Die Brücke über den Fluss ist aus Stahl.",
    "Interest rates were raised by the central bank.": "El banco central subió los tipos de interés.",
    "The library lends books for four weeks.": "図書館は本を四週間貸し出します。",
}


def packages_are_installed() -> bool:
    try:
        return all(version(file.package) == file.version for file in (PACKAGED_WEIGHTS, TOKENIZER))
    except PackageNotFoundError:
        return False


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not packages_are_installed(), reason="the extra `multilingual` is not installed"
    ),
]


@pytest.fixture(scope="module")
def backbone() -> Any:
    found: Any = load_multilingual(MultilingualOptions(), MachineSection(device="cpu"))
    found.module().eval()
    return found


def embed(backbone: Any, text: str) -> torch.Tensor:
    """As the packages' own code embeds: the mean over all tokens of one window, the special
    ones and the prefix among them.
    """
    ids = [*backbone.prefix, *backbone.tokenize([text]).ids[0].tolist(), *backbone.suffix]
    with torch.no_grad():
        states = backbone.network(input_ids=torch.tensor([ids])).last_hidden_state
    return torch.nn.functional.normalize(states[0].mean(0), dim=0)


@pytest.fixture(scope="module")
def engine() -> Any:
    """The package's compiled code; it is for one Python, but needs none of it."""
    found = sorted(PACKAGED_WEIGHTS.locate().parent.glob("_engine*.so"))
    try:
        library = ctypes.CDLL(str(found[0]))
    except (IndexError, OSError) as error:
        pytest.skip(f"the package's compiled module cannot be loaded: {error}")
    library.e5_load.restype = ctypes.c_void_p
    library.e5_embed.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
    library.e5_token_count.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    return library


def test_embeddings_are_those_of_the_package_itself(backbone: Any, engine: Any) -> None:
    """The package rounds activations to 8 bits; cosines seen: 0.99987 to 0.99994."""
    model = ctypes.c_void_p(engine.e5_load(str(PACKAGED_WEIGHTS.locate()).encode()))
    for text in TEXTS:
        theirs = np.empty(384, dtype=np.float32)
        assert engine.e5_embed(model, text.encode(), 0, theirs.ctypes.data) == 0
        assert float(embed(backbone, text) @ torch.from_numpy(theirs)) > 0.9995, text
        tokens = len(backbone.prefix) + len(backbone.tokenize([text]).ids[0]) + len(backbone.suffix)
        assert engine.e5_token_count(model, text.encode(), 0) == tokens, text


def test_a_sentence_lies_nearest_to_its_translation(backbone: Any) -> None:
    theirs = torch.stack([embed(backbone, text) for text in TRANSLATIONS.values()])
    ours = torch.stack([embed(backbone, text) for text in TRANSLATIONS])
    cosines = ours @ theirs.T
    assert cosines.argmax(1).tolist() == cosines.argmax(0).tolist() == [0, 1, 2, 3]
    assert cosines.diag().min() > 0.85


def test_the_tokenizer_is_the_published_one_without_tokens_of_white_space() -> None:
    from tokenizers import Tokenizer

    published = Tokenizer.from_file(str(TOKENIZER.locate()))
    ours = read_tokenizer(TOKENIZER.locate())
    for text in TEXTS:
        found = ours(f" {text}  \n", add_special_tokens=False, return_offsets_mapping=True)
        assert found["input_ids"] == published.encode(text, add_special_tokens=False).ids
        assert all(
            start < end and not f" {text}"[start].isspace()
            for start, end in found["offset_mapping"]
        )


def test_the_sizes_are_those_of_the_published_model() -> None:
    config = read_packaged().config
    assert (
        config.hidden_size,
        config.num_hidden_layers,
        config.vocab_size,
        config.max_position_embeddings,
    ) == (384, 12, 250_037, 512)
