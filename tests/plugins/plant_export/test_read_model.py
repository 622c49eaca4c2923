"""The file that reads an exported model without plant gives what plant gives."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import run_at
from plant_analysers.plugin import ALGORITHMS
from plant_export import read_model
from plant_export.read_model import Model

from plant_cli import fit, load
from plant_cli.data.languages import FUNCTION_WORDS, describe_languages, find_language
from plant_cli.data.tensors import write_tensors
from plant_cli.data.words import spell
from plant_cli.scoring.packed_arrays import pack_arrays

ODD = [
    "don't fever, FEVER; naïve Straße İstanbul",
    "type 2, Type: 2 and type-2 of 12/03/2019, 3.5 and 3-4, call 0401234567",
    "BRCA1 in C# and C++ or .NET, Python 3.11 and R2.d2",
    "東京大学 2019年に 第2回、カタカナ",
    "кошка и 3 собаки, тип 2",
    "ภาษาไทย ២០ हिन्दी की किताब ٣ كتب",
    "é e\u0301 a\u200cb",
    "",
]
GERMAN = [
    f"Die {one} der {two} ist in der Bibliothek zu finden und nicht im Netz"
    for one in ("Häuser", "Bücher", "Karten")
    for two in "ABCDEF"
]
ENGLISH = [
    f"The {one} of the {two} is in the library and not on the web"
    for one in ("houses", "books", "maps")
    for two in "ABCDEF"
]
QUESTIONS = [
    "Das Buch und die Karte",
    "the house of the library and the web that is not",
    "Häusern in der Bibliothek und im Netz ist",
    "xyzzy",
    *ODD,
]
SCORERS: dict[str, Any] = {
    "all": ["words", "titles", "neighbours", "linear"],
    "very many labels": [
        {"name": "words", "exact": 1},
        {"name": "neighbours", "exact": 1, "neighbours": 3},
    ],
    "other options": [
        {"name": "titles", "passage": 0, "lead": 0},
        {"name": "neighbours", "lead": 0, "pieces": False, "power": 1},
    ],
}


@pytest.fixture(scope="module", params=SCORERS)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported model of texts in two languages, one of which is reduced."""
    place, labels = (
        tmp_path_factory.mktemp("read"),
        [[one] for one in ("HOUSE", "BOOK", "MAP") for _ in range(6)] * 2,
    )
    titles = {"HOUSE": "Haus", "BOOK": "Buch", "MAP": "Karte"}
    fit(GERMAN + ENGLISH, labels, titles, scorers=SCORERS[request.param], validation=0.2).save(
        place / "run"
    )
    run_at(place / "run", "export", f"export.folder={place / 'exported'}")
    return place / "exported"


def test_labels_and_scores_are_those_of_plant(exported: Path) -> None:
    theirs, ours = load(exported), Model(exported)
    assert json.loads((exported / "corpus" / "splits.json").read_text())["analyser"]["methods"] == {
        "de": "lemmas",
        "en": "none",
    }
    for text in [*QUESTIONS, *GERMAN[:4]]:
        wanted, found = theirs.suggest([text])[0], ours.suggest(text)
        assert [(one.label, one.title, one.band) for one in wanted] == [
            (one["label"], one["title"], one["band"]) for one in found
        ]
        for one, other in zip(wanted, found, strict=True):
            assert other["score"] == pytest.approx(one.score, abs=1e-6)
            assert other["threshold"] == pytest.approx(one.threshold)
    assert ours.suggest(GERMAN[0])[0]["label"] == "HOUSE"


def test_the_file_runs_without_plant(exported: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from read_model import Model; "
        "Model(sys.argv[1]).suggest('Buch'); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(exported)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"plant_cli", "torch", "polars", "pydantic", "safetensors", "regex"} & {
        name.partition(".")[0] for name in done.stdout.split()
    }


@pytest.mark.parametrize("rule", ["letters", "mixed", "names"])
@pytest.mark.parametrize("text", ODD)
def test_words_are_those_of_plant(rule: Any, text: str) -> None:
    assert read_model._spell(text, rule) == spell(text, rule)


def test_languages_are_those_of_plant(tmp_path: Path) -> None:
    path = tmp_path / "languages.json"
    path.write_text(json.dumps(describe_languages()), "utf-8")
    analyser = read_model._Analyser({"methods": {"en": "none", "de": "lemmas"}}, path)
    texts = [
        *(written for _, written in FUNCTION_WORDS.values()),
        *ODD,
        "ελληνικά και λατινικά",
        "漢字",
        "한국어 책",
    ]
    assert [analyser._find_language(text) for text in texts] == list(map(find_language, texts))


def test_stems_are_named_as_in_plant() -> None:
    assert read_model._ALGORITHMS == ALGORITHMS


def test_a_network_is_refused(tmp_path: Path) -> None:
    (tmp_path / "finetune").mkdir()
    (tmp_path / "finetune" / "model.json").write_text("{}")
    with pytest.raises(ValueError, match="needs plant"):
        Model(tmp_path)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simplemma", None)
    with pytest.raises(ImportError, match=r"pip install simplemma==1\.0"):
        read_model._find_reducer("lemmas", "de", {"simplemma": "1.0"})


@pytest.mark.parametrize(
    "file",
    [
        "export.json",
        "finetune/scorers.json",
        "finetune/scorers/_words.safetensors",
        "labels.json",
        "corpus/splits.json",
    ],
)
@pytest.mark.parametrize("content", [b"{}", b"\xff" * 64])
def test_a_damaged_file_ends_in_one_line(
    exported: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    content: bytes,
) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(exported, folder)
    (folder / file).write_bytes(content)
    monkeypatch.setattr(sys, "argv", ["read_model.py", "--model", str(folder), "--text", "Buch"])
    with pytest.raises(SystemExit) as left:
        read_model._main()
    said = capsys.readouterr()
    assert (left.value.code, said.out, said.err.count("\n")) == (1, "", 1)


def test_arrays_of_every_type_are_read(tmp_path: Path) -> None:
    arrays = {
        kind: np.arange(6).reshape(2, 3).astype(kind)
        for kind in ("f4", "f8", "i4", "i8", "u1", "u8", "?")
    }
    arrays |= {
        f"{kind} {step}": np.cumsum([0, 1, 1, 300, 7, -9])[::step].astype(kind)
        for kind in ("i4", "i8")
        for step in (1, -1)
    }
    arrays["deflated"] = np.arange(100_000) * 3
    packed, layouts = pack_arrays(arrays)
    write_tensors(tmp_path / "a.safetensors", packed, {"arrays": layouts}, framework="np")
    for name, found in read_model._read_arrays(tmp_path / "a.safetensors").items():
        assert (found.dtype, found.tolist()) == (arrays[name].dtype, arrays[name].tolist()), name
