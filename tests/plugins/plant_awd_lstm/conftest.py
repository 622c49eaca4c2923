"""Language models with random weights, as `pretrain-lm` leaves them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from plant_awd_lstm import AwdLstmOptions
from plant_awd_lstm.language_model import Encoder, Sizes, Vocabulary, fit_vocabulary
from plant_awd_lstm.language_model_files import write_description, write_weights

TEXT = "the patient was admitted with fever and cough . no evidence of fracture ; pneumonia treated"
SIZES = Sizes(embedding=6, hidden=9, layers=2)


@pytest.fixture
def vocabulary() -> Vocabulary:
    return fit_vocabulary([TEXT], min_count=1, max_words=100)


@pytest.fixture
def language_model(tmp_path: Path, vocabulary: Vocabulary) -> Callable[..., Path]:
    """`language_model(name)`: a folder with both directions."""

    def make(
        name: str = "lm", *, seed: int = 0, sizes: Sizes = SIZES, words: Vocabulary = vocabulary
    ) -> Path:
        folder = tmp_path / name
        torch.manual_seed(seed)
        words.save(folder)
        write_description(folder, sizes, {"forward": 12.5, "backward": 13.5})
        write_weights(folder, "forward", Encoder(len(words), sizes, AwdLstmOptions()), words)
        write_weights(folder, "backward", Encoder(len(words), sizes, AwdLstmOptions()), words)
        return folder

    return make
