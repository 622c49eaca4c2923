"""`scorers.json` and `scorers/*.safetensors`: the scorers of a trained model, and how much each part counts.

Large tensors that several scorers have, such as the vectors of the training documents, are stored once, in `scorers/_shared.safetensors`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plant_cli.api import Analyser, LabelIndex, PlantError, ScorerSpec
from plant_cli.api.errors import ArtefactError, first_line
from plant_cli.api.options import Choice
from plant_cli.data.files import read_json, write_json
from plant_cli.data.records import require_recorded, require_same, stamp
from plant_cli.network.design import ComponentLookup
from plant_cli.network.tensors import read_tensors, write_tensors
from plant_cli.scoring.calibration import Calibration, IsotonicMap
from plant_cli.scoring.frequency_linear import FrequencyLinear
from plant_cli.scoring.fused_scorers import Combination, FusedScorers, NamedScorer, ask

SCORERS = "scorers.json"
FOLDER = "scorers"
FORMER = "lexical.safetensors"  # what was written before there were scorers
SHARED = "_shared"  # no scorer can have this name
LARGE = 1 << 16  # bytes from which a tensor is stored once
AGAIN = "train again: plant finetune --force"
Tensors = Mapping[str, npt.NDArray[Any]]


def write_scorers(folder: Path, combination: Combination, figures: Mapping[str, Any], label_hash: str, analyser_hash: str) -> None:
    """Write the files into the folder of the model that they belong to, each atomically; `scorers.json` last.

    Args:
        folder: of the stage.
        combination: the scorers and the calibration.
        figures: what was measured on validation, for the record.
        label_hash: hash of the ordered label ids.
        analyser_hash: hash of what finds the words of texts.
    """
    scorers = [] if combination.scorers is None else combination.scorers.scorers
    tensors = [ask(one.name, "cannot be saved", one.scorer.tensors) for one in scorers]
    (folder / FOLDER).mkdir(exist_ok=True)
    for old in (folder / FOLDER).iterdir():
        old.unlink()
    marks, (shared, elsewhere) = stamp(labels=label_hash), share_tensors(tensors)
    for scorer, learned, stored in zip(scorers, tensors, elsewhere, strict=True):
        alone = {name: tensor for name, tensor in learned.items() if name not in stored}
        write_tensors(_path(folder, scorer.name), alone, marks, framework="np")
    if shared:
        write_tensors(_path(folder, SHARED), shared, marks, framework="np")
    if not scorers:
        (folder / FOLDER).rmdir()
    fused, calibration = combination.scorers, combination.calibration
    content = {
        "scorers": [
            {"name": one.name, "options": one.chosen.options, "views": one.views, "alone": _write(fused.alone[one.name]), "shared": stored}
            for one, stored in zip(scorers, elsewhere, strict=True)
            if fused is not None
        ],
        "fusion": None if fused is None else _write(fused.fusion),
        "calibration": _write(calibration.linear),
        "curves": [{"least": c.least, "logits": c.logits.tolist(), "values": c.values.tolist()} for c in calibration.maps],
        "figures": dict(figures),
        "analyser_hash": analyser_hash,
    }
    write_json(folder / SCORERS, {**content, **stamp(labels=label_hash)})


def share_tensors(all_tensors: Sequence[Tensors]) -> tuple[dict[str, npt.NDArray[Any]], list[dict[str, str]]]:
    """Large tensors that several scorers have, by the hash of their content, and of each scorer the hash of each that it shares.

    Args:
        all_tensors: what each scorer learned, by name.
    """
    hashes = [{name: _hash(tensor) for name, tensor in tensors.items() if tensor.nbytes >= LARGE} for tensors in all_tensors]
    counts = Counter(key for keys in hashes for key in keys.values())
    elsewhere = [{name: key for name, key in keys.items() if counts[key] > 1} for keys in hashes]
    shared = {key: all_tensors[number][name] for number, names in enumerate(elsewhere) for name, key in names.items()}
    return shared, elsewhere


def _hash(tensor: npt.NDArray[Any]) -> str:
    digest = hashlib.sha256(f"{tensor.dtype.str} {tensor.shape}".encode())
    digest.update(np.ascontiguousarray(tensor).data)
    return digest.hexdigest()


def read_scorers(folder: Path, labels: LabelIndex, analyser: Analyser, component: ComponentLookup) -> Combination | None:
    """The scorers and the calibration in the folder of a trained model, or None if there is nothing.

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
        require_same(content, path=path, what="the file of scorers", todo=AGAIN, labels=labels.hash)
        if content.get("scorers") and content.get("analyser_hash") != analyser.hash:
            raise ArtefactError(
                "the scorers were fitted to words that are found otherwise than the run finds them",
                where=f"{path} against {folder.parent / 'corpus'}",
                expected="one way to find words in the whole run",
                todo=AGAIN,
            )
    try:
        if "figures" not in content:
            raise KeyError("figures")
        entries = content["scorers"]
        shared = _read_tensors(folder, SHARED, labels.hash) if any(entry.get("shared") for entry in entries) else {}
        learned = [_gather_tensors(folder, entry, labels.hash, shared) for entry in entries]
        chosen = [Choice(name=str(entry["name"]), options=dict(entry["options"])) for entry in entries]
        views, alone = [int(entry["views"]) for entry in entries], [_read(entry["alone"]) for entry in entries]
        fusion = None if content["fusion"] is None else _read(content["fusion"])
        maps = tuple(_read_map(entry) for entry in content.get("curves", []))  # the first models had none
        calibration = Calibration(linear=_read(content["calibration"]), maps=maps)
    except (KeyError, TypeError, ValueError) as error:
        raise ArtefactError(
            "the weights of the scorers are damaged: a key is missing, or a value is not valid",
            where=str(path),
            expected="the file as `plant finetune` wrote it",
            todo=f"restore the file, or {AGAIN}",
        ) from error
    counts = np.asarray(labels.train_counts, dtype=np.int64)
    scorers = None
    if fusion is not None:
        named = [
            NamedScorer(chosen=one, scorer=_load(folder, one, tensors, component), views=number)
            for one, tensors, number in zip(chosen, learned, views, strict=True)
        ]
        by_name = {one.name: model for one, model in zip(named, alone, strict=True)}
        scorers = FusedScorers(scorers=named, fusion=fusion, alone=by_name, train_counts=counts)
    return Combination(scorers=scorers, calibration=calibration, train_counts=counts)


def _load(folder: Path, chosen: Choice, tensors: Tensors, component: ComponentLookup) -> Any:
    spec, options = component(ScorerSpec, chosen)
    try:
        return spec.load(options, tensors)
    except (PlantError, MemoryError):
        raise
    except Exception as error:  # whatever damaged arrays make of their reader
        raise ArtefactError(
            f"the scorer '{chosen.name}' cannot be made again: {first_line(error)}",
            where=str(folder),
            expected="its arrays as `plant finetune` wrote them",
            todo=f"restore the files, or {AGAIN}",
        ) from error


def _gather_tensors(folder: Path, entry: dict[str, Any], label_hash: str, shared: Tensors) -> Tensors:
    elsewhere = {name: shared[key] for name, key in entry.get("shared", {}).items()}  # the first models shared nothing
    return {**_read_tensors(folder, str(entry["name"]), label_hash), **elsewhere}


def _read_tensors(folder: Path, name: str, label_hash: str) -> Tensors:
    path, what = _path(folder, name), "what the scorers share" if name == SHARED else f"the scorer '{name}'"
    tensors, marks = read_tensors(path, what, f"restore the file, or {AGAIN}", framework="np")
    require_same(marks, path=path, what=what, todo=AGAIN, labels=label_hash)
    require_recorded(folder, f"{FOLDER}/{path.name}")
    return tensors


def _path(folder: Path, name: str) -> Path:
    """The file of a scorer; `ValueError` for a name that would leave the folder."""
    if Path(name).name != name:
        raise ValueError(f"'{name}' names no file")
    return folder / FOLDER / f"{name}.safetensors"


def _read_map(content: dict[str, Any]) -> IsotonicMap:
    logits, values = (np.asarray(content[name], dtype=np.float64) for name in ("logits", "values"))
    if logits.ndim != 1 or not len(logits) or logits.shape != values.shape or (np.diff(logits) <= 0).any() or (np.diff(values) < 0).any():
        raise ValueError("a map that does not rise")
    return IsotonicMap(least=int(content["least"]), logits=logits, values=values)


def _write(linear: FrequencyLinear) -> dict[str, Any]:
    return {"knots": linear.knots.tolist(), "weights": linear.weights.tolist(), "bias": linear.bias.tolist()}


def _read(content: dict[str, Any]) -> FrequencyLinear:
    knots, weights, bias = (np.asarray(content[name], dtype=np.float64) for name in ("knots", "weights", "bias"))
    if weights.ndim != 2 or weights.shape[1] != len(knots) or len(bias) != len(knots):
        raise ValueError("weights are given at other knots")
    return FrequencyLinear(knots=knots, weights=weights, bias=bias)
