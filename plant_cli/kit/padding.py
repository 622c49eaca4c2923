"""Sizes to which batches are padded, so that kernels see few shapes."""

from __future__ import annotations

from plant_cli.base.padding import LABEL_MULTIPLE, TOKEN_MULTIPLE, round_up

__all__ = ["LABEL_MULTIPLE", "TOKEN_MULTIPLE", "round_up"]
