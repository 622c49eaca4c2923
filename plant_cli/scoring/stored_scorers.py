"""`scorers.json` and `scorers/*.safetensors`: what scores labels besides the network, and how much each part counts.

Large tensors that several scorers have, such as the vectors of the training documents, are stored once, in `scorers/_shared.safetensors`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plant_cli.api.errors import ArtefactError
from plant_cli.api.options import Choice
from plant_cli.data.files import read_json, write_json
from plant_cli.data.records import require_recorded, require_same, stamp
from plant_cli.network.windows import read_tensors, write_tensors
from plant_cli.scoring.calibration import Curve
from plant_cli.scoring.fusion import Fusion

SCORERS = "scorers.json"
FOLDER = "scorers"
FORMER = "lexical.safetensors"  # what was written before there were scorers
SHARED = "_shared"  # no scorer can have this name
LARGE = 1 << 16  # bytes from which a tensor is stored once
AGAIN = "train again: plant finetune --force"
Tensors = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class StoredScorer:
    """One scorer.

    Args:
        chosen: its name and all its options.
        views: views that it takes of a document.
        tensors: what it learned.
        alone: weights of its views when it is used alone.
    """

    chosen: Choice
    views: int
    tensors: Tensors
    alone: Fusion


@dataclass(frozen=True, kw_only=True)
class StoredScorers:
    """What the files hold.

    Args:
        scorers: in the order of the weights; none: there is a network alone.
        fusion: weights of the views of all scorers; None without scorers.
        calibration: weights of the sources, the network before the scorers, and offsets, by training frequency.
        curves: what bends their sum, by training frequency; none: it is as it is.
    """

    scorers: tuple[StoredScorer, ...]
    fusion: Fusion | None
    calibration: Fusion
    curves: tuple[Curve, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)


def write_scorers(folder: Path, stored: StoredScorers, label_hash: str, analyser_hash: str) -> None:
    """Write the files into the folder of the model that they belong to, each atomically; `scorers.json` last.

    Args:
        folder: of the stage.
        stored: what to write.
        label_hash: hash of the ordered label ids.
        analyser_hash: of what finds the words of texts.
    """
    (folder / FOLDER).mkdir(exist_ok=True)
    for old in (folder / FOLDER).iterdir():
        old.unlink()
    marks, (shared, places) = stamp(labels=label_hash), share_tensors([scorer.tensors for scorer in stored.scorers])
    for scorer, elsewhere in zip(stored.scorers, places, strict=True):
        own = {name: tensor for name, tensor in scorer.tensors.items() if name not in elsewhere}
        write_tensors(_path(folder, scorer.chosen.name), own, marks, framework="np")
    if shared:
        write_tensors(_path(folder, SHARED), shared, marks, framework="np")
    if not stored.scorers:
        (folder / FOLDER).rmdir()
    content = {
        "scorers": [
            {**_plain(scorer.chosen), "views": scorer.views, "alone": _write_fusion(scorer.alone), "shared": elsewhere}
            for scorer, elsewhere in zip(stored.scorers, places, strict=True)
        ],
        "fusion": None if stored.fusion is None else _write_fusion(stored.fusion),
        "calibration": _write_fusion(stored.calibration),
        "curves": [{"least": c.least, "logits": c.logits.tolist(), "values": c.values.tolist()} for c in stored.curves],
        "figures": dict(stored.figures),
        "analyser_hash": analyser_hash,
    }
    write_json(folder / SCORERS, {**content, **stamp(labels=label_hash)})


def share_tensors(all_tensors: Sequence[Tensors]) -> tuple[dict[str, npt.NDArray[Any]], list[dict[str, str]]]:
    """Large tensors that stand more than once, by the hash of what is in them, and the names in each scorer that stand for them.

    Args:
        all_tensors: what each scorer learned.
    """
    hashes = [{name: _hash(tensor) for name, tensor in tensors.items() if tensor.nbytes >= LARGE} for tensors in all_tensors]
    counts = Counter(key for found in hashes for key in found.values())
    places = [{name: key for name, key in found.items() if counts[key] > 1} for found in hashes]
    shared = {key: all_tensors[number][name] for number, names in enumerate(places) for name, key in names.items()}
    return shared, places


def _hash(tensor: npt.NDArray[Any]) -> str:
    digest = hashlib.sha256(f"{tensor.dtype.str} {tensor.shape}".encode())
    digest.update(np.ascontiguousarray(tensor).data)
    return digest.hexdigest()


def read_scorers(folder: Path, label_hash: str, analyser_hash: str) -> StoredScorers | None:
    """What the folder of a trained model holds, or None if there is nothing.

    Raises:
        ArtefactError: a file is missing, damaged, of another format, of another label order or of words that are found otherwise.
    """
    path = folder / SCORERS
    if (folder / FORMER).exists():
        raise ArtefactError(
            "the model adds lexical scores as an earlier version of plant did",
            where=str(folder / FORMER),
            expected=f"scorers, in {SCORERS}",
            todo=f"{AGAIN}, or use the version of plant that trained it",
        )
    if not path.exists():
        return None
    require_recorded(folder, SCORERS)
    content = read_json(path, "the weights of the scorers")
    if isinstance(content, dict):
        require_same(content, path=path, what="the file of scorers", todo=AGAIN, labels=label_hash)
        if content.get("scorers") and content.get("analyser_hash") != analyser_hash:
            raise ArtefactError(
                "the scorers were fitted to words that are found otherwise than the run finds them",
                where=f"{path} against {folder.parent / 'corpus'}",
                expected="one way to find words in the whole run",
                todo=AGAIN,
            )
    try:
        shared = _read_tensors(folder, SHARED, label_hash) if any(entry.get("shared") for entry in content["scorers"]) else {}
        return StoredScorers(
            scorers=tuple(_read_scorer(folder, entry, label_hash, shared) for entry in content["scorers"]),
            fusion=None if content["fusion"] is None else _read_fusion(content["fusion"]),
            calibration=_read_fusion(content["calibration"]),
            curves=tuple(_read_curve(entry) for entry in content.get("curves", [])),  # the first models had none
            figures=content["figures"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ArtefactError(
            "the weights of the scorers are damaged: a key is missing, or a value is not valid",
            where=str(path),
            expected="the file as `plant finetune` wrote it",
            todo=f"restore the file, or {AGAIN}",
        ) from error


def _read_scorer(folder: Path, entry: dict[str, Any], label_hash: str, shared: Tensors) -> StoredScorer:
    elsewhere = {name: shared[key] for name, key in entry.get("shared", {}).items()}  # the first models shared nothing
    return StoredScorer(
        chosen=Choice(name=str(entry["name"]), options=dict(entry["options"])),
        views=int(entry["views"]),
        tensors={**_read_tensors(folder, str(entry["name"]), label_hash), **elsewhere},
        alone=_read_fusion(entry["alone"]),
    )


def _read_tensors(folder: Path, name: str, label_hash: str) -> Tensors:
    path, what = _path(folder, name), "what the scorers share" if name == SHARED else f"the scorer '{name}'"
    tensors, marks = read_tensors(path, what, f"restore the file, or {AGAIN}", framework="np")
    require_same(marks, path=path, what=what, todo=AGAIN, labels=label_hash)
    require_recorded(folder, f"{FOLDER}/{path.name}")
    return tensors


def _read_curve(content: dict[str, Any]) -> Curve:
    logits, values = (np.asarray(content[name], dtype=np.float64) for name in ("logits", "values"))
    if logits.ndim != 1 or not len(logits) or logits.shape != values.shape or (np.diff(logits) <= 0).any() or (np.diff(values) < 0).any():
        raise ValueError("a curve that does not rise")
    return Curve(least=int(content["least"]), logits=logits, values=values)


def _path(folder: Path, name: str) -> Path:
    """The file of a scorer; `ValueError` for a name that would leave the folder."""
    if Path(name).name != name:
        raise ValueError(f"'{name}' names no file")
    return folder / FOLDER / f"{name}.safetensors"


def _plain(chosen: Choice) -> dict[str, Any]:
    return {"name": chosen.name, "options": chosen.options}


def _write_fusion(fusion: Fusion) -> dict[str, Any]:
    return {"knots": fusion.knots.tolist(), "weights": fusion.weights.tolist(), "bias": fusion.bias.tolist()}


def _read_fusion(content: dict[str, Any]) -> Fusion:
    knots, weights, bias = (np.asarray(content[name], dtype=np.float64) for name in ("knots", "weights", "bias"))
    if weights.ndim != 2 or weights.shape[1] != len(knots) or len(bias) != len(knots):
        raise ValueError("weights are given at other knots")
    return Fusion(knots=knots, weights=weights, bias=bias)
