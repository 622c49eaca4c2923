"""Training of the published decoders on the hidden states of a frozen backbone: ours beside each written plainly, same batch, same weights.

`python -m tests.benchmarks.decoders --decoder plm-ca --labels 8929 --json FILE`. A step is forward, cross-entropy over all labels,
backward, clipping and AdamW. `ours` is the decoder of the plugin; `reference` the same weights in the form of the published code, with
its arrays of documents x labels x positions and documents x labels x hidden size (padding masked, as in ours). JointLAAT has a group of
ten labels each, and no loss of its own for them. `planted-l2r` looks at words and has no such form.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from plant_cli.api import Choice, DecoderShape, DecoderSpec, Reading
from plant_cli.registry import installed
from tests.benchmarks.contenders import Contender, run
from tests.benchmarks.training import batch, training

DECODERS = ("caml", "laat", "joint-laat", "plm-icd", "plm-ca")
GROUPED = 10  # labels of a group of joint-laat


def build(options: argparse.Namespace) -> Any:
    """The decoder, with dropout off."""
    units = {"lstm": options.lstm} if options.decoder in ("laat", "joint-laat") else {}
    spec, given = installed().resolve(DecoderSpec, Choice(name=options.decoder, options={"dropout": 0.0, **units}))
    torch.manual_seed(0)
    parents = [str(label // GROUPED) for label in range(options.labels)]
    return spec.build(given, DecoderShape(hidden=options.hidden, labels=options.labels, parents=parents))


def plain(decoder: Any, hidden: Tensor, mask: Tensor) -> Tensor:
    """Logits [B, L] by full arrays."""
    if hasattr(decoder, "lower"):
        states = hidden if decoder.states is None else decoder.states(hidden, mask)
        groups = torch.sigmoid(plain(decoder.upper, states, mask))
        return plain(decoder.lower, states, mask) + decoder.to_context(groups) @ decoder.context.mT
    if hasattr(decoder, "maps"):
        keys, values = decoder.maps(hidden, mask)
    else:
        keys, values = decoder.to_key(hidden), decoder.to_value(hidden)
    scores = torch.matmul(decoder.queries.to(keys.dtype), keys.mT).float().masked_fill(~mask.unsqueeze(1), -torch.inf)
    gathered = torch.softmax(scores, dim=-1).to(values.dtype) @ values
    if hasattr(decoder, "maps"):
        return (decoder.vectors * gathered).sum(-1) + decoder.bias
    logits: Tensor = decoder.output(decoder.norm(gathered)).squeeze(-1)
    return logits


def step(options: argparse.Namespace, score: Callable[[nn.Module, Tensor, Tensor], Tensor]) -> Callable[[], object]:
    """A whole training step."""
    hidden, mask, targets = batch(options)
    decoder = build(options)
    return training(
        options, decoder, lambda: functional.binary_cross_entropy_with_logits(score(decoder, hidden, mask).float(), targets), fused=True
    )


def ours(options: argparse.Namespace) -> Callable[[], object]:
    return step(options, lambda decoder, hidden, mask: decoder(Reading.of(hidden, mask)))


def reference(options: argparse.Namespace) -> Callable[[], object]:
    return step(options, plain)


CONTENDERS: dict[str, Contender] = {"ours": ours, "reference": reference}


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.decoders", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--decoder", choices=DECODERS, default="plm-ca")
    for name, size in (("labels", 8929), ("documents", 8), ("positions", 512), ("hidden", 384)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument(
        "--lstm", type=int, default=0, help="units of the LSTM of laat and joint-laat, which both forms run alike (published: 512)"
    )
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="bfloat16")
    run("tests.benchmarks.decoders", parser, CONTENDERS, arguments)


if __name__ == "__main__":
    main()
