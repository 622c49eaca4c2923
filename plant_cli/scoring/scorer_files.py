"""`scorers.json` and `scorers/*.safetensors`: the scorers of a trained model, and how much each
part counts.

Large tensors that several scorers have, such as the vectors of the training documents, are stored
once, in `scorers/_shared.safetensors`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plant_cli.api import Analyser, LabelIndex, PlantError, ScorerSpec, promises
from plant_cli.api.components import ComponentLookup
from plant_cli.api.errors import ArtefactError, ComponentError, damaged_file, first_line
from plant_cli.api.functions import ExitCalled
from plant_cli.api.options import Choice
from plant_cli.api.read_only import read_only
from plant_cli.data.files import read_json, write_json
from plant_cli.data.records import require_recorded, require_same, stamp
from plant_cli.data.tensors import pack_strings, read_tensors, unpack_strings, write_tensors
from plant_cli.scoring.calibration import Calibration, IsotonicMap
from plant_cli.scoring.decisions import TRAIN_AGAIN
from plant_cli.scoring.frequency_linear import FrequencyLinear
from plant_cli.scoring.fused_scorers import Combination, FusedScorers, NamedScorer, ask
from plant_cli.scoring.known_words import KnownWords
from plant_cli.scoring.label_residuals import LabelResiduals
from plant_cli.scoring.packed_arrays import pack_arrays, unpack_arrays

SCORERS_FILE = "scorers.json"
FOLDER = "scorers"
KNOWN_WORDS, USUAL = "known_words", ("documents", "enough", "share")
PACKED = "arrays"  # the mark of a file that says how its arrays are packed
# no scorer can have these names
SHARED_TENSORS, WORD_TENSORS, RESIDUAL_TENSORS = "_shared", "_words", "_residuals"
RESIDUALS = "residuals"
LARGE_TENSOR = 1 << 16  # bytes from which a tensor is stored once
Tensors = Mapping[str, npt.NDArray[Any]]


def write_scorers(
    folder: Path,
    combination: Combination,
    figures: Mapping[str, Any],
    label_hash: str,
    analyser_hash: str,
    *,
    own_counts: bool = False,
) -> None:
    """Write the files into the folder of their model, `scorers.json` last; `own_counts`:
    documents are not counted as in the run.
    """
    fused, calibration = combination.scorers, combination.calibration
    scorers = [] if fused is None else fused.scorers
    known = None if fused is None else fused.known
    tensors = [
        ask(one.name, "cannot be saved", one.scorer.tensors, promises.ARRAYS) for one in scorers
    ]
    if known is not None:
        tensors.append(
            {
                "words": pack_strings(known.words),
                "named": pack_strings(known.named),
                "frequencies": known.frequencies,
            }
        )
    (folder / FOLDER).mkdir(exist_ok=True)
    for old in (folder / FOLDER).iterdir():
        old.unlink()
    shared, elsewhere = share_tensors(tensors)
    files = {
        own: {name: tensor for name, tensor in learned.items() if name not in stored}
        for own, learned, stored in zip(
            [*(one.name for one in scorers), WORD_TENSORS], tensors, elsewhere, strict=False
        )
    }
    if fused is not None and fused.residuals is not None:
        files[RESIDUAL_TENSORS] = {
            "labels": fused.residuals.labels,
            "added": fused.residuals.added,
        }
    for name, arrays in {**files, **({SHARED_TENSORS: shared} if shared else {})}.items():
        packed, layouts = pack_arrays(arrays)
        write_tensors(
            _path(folder, name),
            packed,
            {**stamp(labels=label_hash), PACKED: layouts},
            framework="np",
        )
    if not scorers:
        (folder / FOLDER).rmdir()
    content = {
        "scorers": [
            {
                "name": one.name,
                "options": one.chosen.options,
                "views": one.views,
                "alone": _write(fused.alone[one.name]),
                "shared": stored,
            }
            for one, stored in zip(scorers, elsewhere, strict=False)
            if fused is not None
        ],
        "fusion": None if fused is None else _write(fused.fusion),
        RESIDUALS: RESIDUAL_TENSORS in files,
        **(
            {}
            if known is None
            else {
                KNOWN_WORDS: {
                    **{name: getattr(known, name) for name in USUAL},
                    "shared": elsewhere[-1],
                }
            }
        ),
        "calibration": _write(calibration.linear),
        "curves": [
            {"least": c.least, "logits": c.logits.tolist(), "values": c.values.tolist()}
            for c in calibration.maps
        ],
        **({"excluded": list(combination.excluded)} if combination.excluded else {}),
        **({"common": sorted(combination.common)} if combination.common else {}),
        **({"train_counts": combination.train_counts.tolist()} if own_counts else {}),
        "figures": dict(figures),
        "analyser_hash": analyser_hash,
    }
    write_json(folder / SCORERS_FILE, {**content, **stamp(labels=label_hash)})


def share_tensors(
    all_tensors: Sequence[Tensors],
) -> tuple[dict[str, npt.NDArray[Any]], list[dict[str, str]]]:
    """Large tensors that several scorers have, by the hash of their content, and of each scorer
    the hash of each that it shares.
    """
    hashes = [
        {name: _hash(tensor) for name, tensor in tensors.items() if tensor.nbytes >= LARGE_TENSOR}
        for tensors in all_tensors
    ]
    counts = Counter(key for keys in hashes for key in keys.values())
    elsewhere = [{name: key for name, key in keys.items() if counts[key] > 1} for keys in hashes]
    shared = {
        key: all_tensors[number][name]
        for number, names in enumerate(elsewhere)
        for name, key in names.items()
    }
    return shared, elsewhere


def _hash(tensor: npt.NDArray[Any]) -> str:
    digest = hashlib.sha256(f"{tensor.dtype.str} {tensor.shape}".encode())
    digest.update(np.ascontiguousarray(tensor).data)
    return digest.hexdigest()


def read_scorers(
    folder: Path, labels: LabelIndex, analyser: Analyser, component: ComponentLookup
) -> Combination | None:
    """The scorers and the calibration in the folder of a trained model, or None if there is
    nothing.
    """
    path = folder / SCORERS_FILE
    if not path.exists():
        return None
    require_recorded(folder, SCORERS_FILE)
    content = read_json(path, "the weights of the scorers")
    if isinstance(content, dict):
        require_same(
            content, path=path, what="the file of scorers", todo=TRAIN_AGAIN, labels=labels.hash
        )
        if content.get("scorers") and content.get("analyser_hash") != analyser.hash:
            raise ArtefactError(
                "the scorers were fitted to words that are found otherwise than the run finds them",
                where=f"{path} against {folder.parent / 'corpus'}",
                expected="one way to find words in the whole run",
                todo=TRAIN_AGAIN,
            )
    try:
        if "figures" not in content:
            raise KeyError("figures")
        entries, hashed = content["scorers"], labels.hash
        heard = [content[KNOWN_WORDS]] if KNOWN_WORDS in content else []  # the first files had none
        shared = (
            _read_tensors(folder, SHARED_TENSORS, hashed)
            if any(entry["shared"] for entry in [*entries, *heard])
            else {}
        )
        named, alone = [], {}
        for entry in entries:
            chosen = Choice(name=str(entry["name"]), options=dict(entry["options"]))
            elsewhere = {name: shared[key] for name, key in entry["shared"].items()}
            scorer = _load(
                folder,
                chosen,
                {**_read_tensors(folder, chosen.name, hashed), **elsewhere},
                component,
            )
            named.append(NamedScorer(chosen=chosen, scorer=scorer, views=int(entry["views"])))
            alone[chosen.name] = _read(entry["alone"])
        counts = np.asarray(content.get("train_counts", labels.train_counts), dtype=np.int64)
        if counts.shape != (len(labels),):
            raise ValueError("counts of other labels")
        fusion = None if content["fusion"] is None else _read(content["fusion"])
        excluded, common = (
            tuple(map(int, content.get("excluded", ()))),
            frozenset(map(str, content.get("common", ()))),
        )
        if any(not 0 <= label < len(labels) for label in excluded):
            raise ValueError("a label that there is not")
        known = _read_known(folder, heard[0], hashed, shared) if heard else None
        residuals = _read_residuals(folder, hashed, len(labels)) if content.get(RESIDUALS) else None
        calibration = Calibration(
            linear=_read(content["calibration"]), maps=tuple(map(_read_map, content["curves"]))
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        expected, todo = (
            "the file as `plant finetune` wrote it",
            f"restore the file, or {TRAIN_AGAIN}",
        )
        why = "a key is missing, or a value is not valid"
        raise damaged_file(
            "the file of scorers", why, path, expected=expected, todo=todo
        ) from error
    scorers = (
        None
        if fusion is None
        else FusedScorers(
            scorers=named,
            fusion=fusion,
            alone=alone,
            train_counts=counts,
            known=known,
            residuals=residuals,
        )
    )
    return Combination(
        scorers=scorers,
        calibration=calibration,
        train_counts=counts,
        excluded=excluded,
        common=common,
    )


def _load(folder: Path, chosen: Choice, tensors: Tensors, component: ComponentLookup) -> Any:
    try:
        spec, options = component(ScorerSpec, chosen)
    except ComponentError as error:  # another version, or without its plugin
        where, todo = (
            f"{folder / SCORERS_FILE}, {error.where}",
            f"use the version and the plugins that the model was trained with, or {TRAIN_AGAIN}",
        )
        raise ArtefactError(error.what, where=where, expected=error.expected, todo=todo) from error
    try:
        return spec.load(options, tensors)
    except (PlantError, MemoryError, ExitCalled):
        raise
    except Exception as error:  # whatever damaged arrays make of their reader
        raise ArtefactError(
            f"the scorer '{chosen.name}' cannot be made again: {first_line(error)}",
            where=str(folder),
            expected="its arrays as `plant finetune` wrote them",
            todo=f"restore the files, or {TRAIN_AGAIN}",
        ) from error


def _read_tensors(folder: Path, name: str, label_hash: str) -> Tensors:
    path, what = (
        _path(folder, name),
        "what the scorers share" if name == SHARED_TENSORS else f"the scorer '{name}'",
    )
    tensors, marks = read_tensors(path, what, f"restore the file, or {TRAIN_AGAIN}", framework="np")
    require_same(marks, path=path, what=what, todo=TRAIN_AGAIN, labels=label_hash)
    require_recorded(folder, f"{FOLDER}/{path.name}")
    if PACKED not in marks:
        raise ArtefactError(
            f"{what} is stored as an earlier version of plant stored it",
            where=str(path),
            expected="packed arrays",
            todo=f"{TRAIN_AGAIN}, or use the version of plant that wrote it",
        )
    arrays = unpack_arrays(tensors, marks[PACKED])
    if not promises.ARRAYS.is_kept(arrays):
        raise damaged_file(
            what,
            "it has values that are not numbers, or infinite ones",
            path,
            expected=promises.ARRAYS.expected,
            todo=f"restore the file, or {TRAIN_AGAIN}",
        )
    return {tensor: read_only(array) for tensor, array in arrays.items()}


def _read_known(
    folder: Path, content: dict[str, Any], label_hash: str, shared: Tensors
) -> KnownWords:
    tensors = {
        **_read_tensors(folder, WORD_TENSORS, label_hash),
        **{name: shared[key] for name, key in content["shared"].items()},
    }
    words, frequencies = unpack_strings(tensors["words"]), tensors["frequencies"]
    if frequencies.shape != (len(words),):
        raise ValueError("words without frequencies")
    documents, enough, share = (float(content[name]) for name in USUAL)
    named = unpack_strings(tensors["named"])
    return KnownWords(
        words=words,
        frequencies=frequencies,
        named=named,
        documents=int(documents),
        enough=enough,
        share=share,
    )


def _read_residuals(folder: Path, label_hash: str, labels: int) -> LabelResiduals:
    tensors = _read_tensors(folder, RESIDUAL_TENSORS, label_hash)
    residuals = LabelResiduals(labels=tensors["labels"], added=tensors["added"])
    ends = np.concatenate([[-1], residuals.labels, [labels]])
    if residuals.added.ndim != 2 or len(residuals.added) != len(residuals.labels):
        raise ValueError("residuals of other labels")
    if (np.diff(ends) <= 0).any():
        raise ValueError("labels that do not rise")
    return residuals


def _path(folder: Path, name: str) -> Path:
    """The file of a scorer; `ValueError` for a name that would leave the folder."""
    if Path(name).name != name:
        raise ValueError(f"'{name}' names no file")
    return folder / FOLDER / f"{name}.safetensors"


def _read_map(content: dict[str, Any]) -> IsotonicMap:
    logits, values = (np.asarray(content[name], dtype=np.float64) for name in ("logits", "values"))
    if (
        logits.ndim != 1
        or not len(logits)
        or logits.shape != values.shape
        or (np.diff(logits) <= 0).any()
        or (np.diff(values) < 0).any()
    ):
        raise ValueError("a map that does not rise")
    return IsotonicMap(least=int(content["least"]), logits=logits, values=values)


def _write(linear: FrequencyLinear) -> dict[str, Any]:
    return {
        "knots": linear.knots.tolist(),
        "weights": linear.weights.tolist(),
        "bias": linear.bias.tolist(),
    }


def _read(content: dict[str, Any]) -> FrequencyLinear:
    knots, weights, bias = (
        np.asarray(content[name], dtype=np.float64) for name in ("knots", "weights", "bias")
    )
    if weights.ndim != 2 or weights.shape[1] != len(knots) or len(bias) != len(knots):
        raise ValueError("weights are given at other knots")
    return FrequencyLinear(knots=knots, weights=weights, bias=bias)
