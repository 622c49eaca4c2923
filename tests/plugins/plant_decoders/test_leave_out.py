"""What a logit loses without a token: the closed forms against the decoders themselves, with
the position masked, in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from plant_cli.api import LeaveOutDecoder, Reading

CHOSEN = torch.tensor([3, 0, 4])
DECODERS: list[tuple[str, dict[str, Any]]] = [
    ("label-attention", {"heads": 1, "pool": 4}),
    ("label-attention", {"heads": 3, "pool": 4, "norm": "layer", "label_rank": 2}),
    ("dot-attention", {"pool": 4}),
    ("caml", {"width": 1, "filters": 4}),
    ("laat", {"lstm": 0, "inner": 4}),
    ("plm-icd", {}),
    ("plm-ca", {}),
]


@pytest.mark.parametrize("sharpness", [1.0, 60.0])
@pytest.mark.parametrize(("name", "options"), DECODERS)
def test_as_the_decoder_itself_without_the_position(
    build: Callable[..., Any],
    reading: Reading,
    name: str,
    options: dict[str, Any],
    sharpness: float,
) -> None:
    """Also where attention is nearly all on one token, and for a document of one token."""
    decoder, sharp = build(name, **options), replace(reading, hidden=reading.hidden * sharpness)
    assert isinstance(decoder, LeaveOutDecoder)
    with torch.no_grad():
        expected = torch.zeros(3, len(CHOSEN), 7, dtype=torch.float64)
        for row, token in reading.mask.nonzero().tolist():
            mask = reading.mask.clone()
            mask[row, token] = False
            expected[row, :, token] = (
                decoder(sharp, CHOSEN) - decoder(replace(sharp, mask=mask), CHOSEN)
            )[row]
        for one in (decoder, decoder.fold()) if hasattr(decoder, "fold") else (decoder,):
            torch.testing.assert_close(
                one.leave_out_tokens(sharp, CHOSEN), expected, rtol=1e-7, atol=1e-9
            )
    assert expected.any()


@pytest.mark.parametrize("name", ["joint-laat", "planted-l2r"])
def test_others_have_no_closed_form(build: Callable[..., Any], name: str) -> None:
    from plant_cli.api import DecoderShape

    shape = DecoderShape(hidden=6, labels=5, parents=["a", "a", "b", "b", "b"])
    assert not isinstance(build(name, shape), LeaveOutDecoder)
