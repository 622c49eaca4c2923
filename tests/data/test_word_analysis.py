"""Words are counted as lemmas or stems of the language of the texts, and their places are those of the forms."""

from __future__ import annotations

import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from plant_cli.api import ComponentError, SilentReporter, TokenBatch
from plant_cli.data import word_analysis as module
from plant_cli.data.corpus_files import AnalyserRecord
from plant_cli.data.languages import name_language
from plant_cli.data.word_analysis import PLAIN, WordAnalyser, choose_analyser, find_other_packages
from plant_cli.data.words import find_borders, number_words, spell, words
from plant_cli.network.reading import match_texts
from plant_cli.registry import Registry
from tests.data.test_languages import SENTENCES

PHRASES = {"none": "as they stand", "lemmas": "as lemmas", "stems": "as stems"}
FINNISH = "Potilaan sairaus on vakava, ja hän oli sairaalassa, kun hänen sairauttaan ei ollut vielä todettu. Sairauksien hoito se on."
GERMAN = "Die Häuser und die Häusern der Stadt; das Haus, in dem er nicht war, wird mit den anderen Hauses auf der Karte von Berlin sein."
ENGLISH = SENTENCES["en"]


def choose(asked: Any, *texts: str) -> tuple[AnalyserRecord, SilentReporter]:
    told = SilentReporter()
    return choose_analyser(asked, texts, told), told


@pytest.mark.parametrize(
    ("code", "auto", "asked"),
    [
        ("fi", "lemmas", "lemmas"),
        ("de", "lemmas", "lemmas"),
        ("ru", "lemmas", "lemmas"),
        ("el", "lemmas", "lemmas"),
        ("en", "none", "lemmas"),
        ("es", "none", "lemmas"),
        ("th", "none", "none"),
        ("zh", "none", "none"),
    ],
)
def test_the_language_decides(code: str, auto: str, asked: str) -> None:
    record, told = choose("auto", SENTENCES[code])
    assert record.methods == {code: auto}
    assert [note.split(" (")[0] for note in told.notes] == [f"words are counted {PHRASES[auto]} in {name_language(code)}"]
    assert not told.warnings
    record, told = choose("lemmas", SENTENCES[code])
    assert record.methods == {code: asked}
    assert bool(told.warnings) == (asked == "none")
    assert record.packages.keys() == (set() if asked == "none" else {"simplemma"})


def test_stems_where_there_are_no_lemmas(monkeypatch: pytest.MonkeyPatch) -> None:
    knows = module._knows
    monkeypatch.setattr(module, "_knows", lambda spec, language: spec.name == "stems" and knows(spec, language))
    record, _ = choose("auto", SENTENCES["fi"])
    assert record.methods == {"fi": "stems"}
    assert WordAnalyser(record).spell("sairauksien sairaudesta") == ["sairauks", "sairaud"]


def test_an_analyser_that_nobody_registered() -> None:
    with pytest.raises(ComponentError, match="there is no analyser named 'lemas'") as caught:
        choose("lemas", FINNISH)
    assert "lemmas" in caught.value.expected


@pytest.mark.parametrize("asked", ["auto", "none"])
def test_without_any_analyser_words_stay_as_they_are(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "installed", Registry)
    record, _ = choose(asked, FINNISH)
    assert record.methods == ({"fi": "none"} if asked == "auto" else {})
    assert WordAnalyser(record).spell("Sairauden") == ["sairauden"]


def test_the_example_of_the_docs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's analyser in one file: registered, nothing installed; its one language need not be recognised."""
    path = Path(__file__).parents[2] / "docs" / "examples" / "plant-example" / "plant_example" / "analyser.py"
    latin = ModuleType("plant_latin")
    exec(compile(path.read_text("utf-8"), str(path), "exec"), vars(latin))
    registry = Registry()
    registry.register(latin, name="latin")
    monkeypatch.setattr(module, "installed", lambda: registry)
    record, told = choose("latin-stems", "Gallia est omnis divisa in partes tres")
    assert (record.asked, record.methods, record.shares, record.packages) == ("latin-stems", {"la": "latin-stems"}, {"la": 1.0}, {})
    assert told.notes[0].startswith("words are counted as Latin stems in la (100%)")
    assert not told.warnings
    found = WordAnalyser(record)
    assert found.spell("Aquarum, aquam; AQUAS") == ["aqu"] * 3
    assert found.spell("O aquas!") == ["o", "aqu"]
    assert found.hash != PLAIN.hash


@pytest.mark.parametrize("asked", ["auto", "none", "lemmas", "stems"])
def test_texts_in_no_recognised_language_stay_as_they_are(asked: str) -> None:
    record, told = choose(asked, "Häuser 12 mg", "houses; Häuser")
    found = WordAnalyser(record)
    assert found.spell("Häuser houses") == ["häuser", "houses"]
    assert found.hash == PLAIN.hash
    assert told.warnings == (
        [f"words are counted as they stand, not as {asked}: the language of the documents is not recognised"]
        if asked in ("lemmas", "stems")
        else []
    )
    assert told.notes == (
        ["words are counted as they stand: the language of the documents is not recognised (--analyser)"] if asked == "auto" else []
    )


def test_forms_of_a_word_are_one_word() -> None:
    found = WordAnalyser(choose("auto", FINNISH)[0])
    assert found.spell("Sairaus, sairauden, SAIRAUKSIEN") == ["sairaus"] * 3
    german = WordAnalyser(choose("lemmas", GERMAN)[0])
    assert set(german.spell("Haus Häuser HÄUSERN Hauses")) == {"haus"}
    assert german.spell("xyzqs 12") == ["xyzqs"]


@pytest.mark.parametrize("text", [FINNISH, GERMAN, SENTENCES["ru"], SENTENCES["el"], "Ha\u0308user, ΣΊΣΥΦΟΣ", "中文 Haus"])
def test_places_are_those_of_the_forms(text: str) -> None:
    for record in (AnalyserRecord(methods={"de": "lemmas"}), AnalyserRecord(methods={"fi": "stems"})):
        found = WordAnalyser(record)
        assert find_borders(text).tolist() == [place for _, *place in words(text)]
        assert len(found.spell(text)) == len(words(text))


def test_the_language_of_each_text_decides_where_there_are_several() -> None:
    record, told = choose("auto", *[GERMAN] * 3, ENGLISH, ENGLISH, "…")
    assert record.methods == {"de": "lemmas", "en": "none"}
    [note] = told.notes
    assert note.startswith("words are counted as lemmas in German (50%), as they stand in English (33%): ")
    found = WordAnalyser(record)
    assert found.spell(ENGLISH) == spell(ENGLISH)
    assert "sein" in found.spell(GERMAN)
    assert "war" not in found.spell(GERMAN)
    assert found.spell("Häuser") == ["haus"]  # not recognised: the main language
    assert found.spell(SENTENCES["th"]) == spell(SENTENCES["th"])


def test_a_stray_language_counts_for_nothing() -> None:
    record, _ = choose("auto", *[FINNISH] * 30, GERMAN)
    assert list(record.methods) == ["fi"]


def test_short_texts_are_recognised_together() -> None:
    pieces = [FINNISH[start : start + 20] for start in range(0, len(FINNISH), 20)] * 20
    record, _ = choose("auto", *pieces)
    assert record.methods == {"fi": "lemmas"}


def test_another_version_of_a_package_is_told() -> None:
    record, _ = choose("auto", FINNISH)
    assert find_other_packages(record) == []
    [found] = find_other_packages(record.model_copy(update={"packages": {"simplemma": "0.1"}}))
    assert found.startswith("simplemma 0.1, now ")


def test_tokens_of_all_forms_belong_to_the_lemma() -> None:
    found = WordAnalyser(AnalyserRecord(methods={"de": "lemmas"}))
    text = "Häuser am Haus"  # tokens: "Häu" "ser" "am" "Haus"
    spans = np.array([[0, 3], [3, 6], [7, 9], [10, 14]], dtype=np.int32)
    tokens = TokenBatch(ids=[np.arange(4)], spans=[spans], dropped=[0])
    [matched] = match_texts([text], number_words([found.spell(text)]), tokens, ["haus"])
    assert matched.vocabulary.tolist() == [0, -1]
    assert {(int(t), int(w)) for t, w in zip(matched.token, matched.word, strict=True)} == {(0, 0), (1, 0), (2, 1), (3, 0)}


def test_a_quarter_of_a_million_words_takes_seconds() -> None:
    found = WordAnalyser(AnalyserRecord(methods={"de": "lemmas"}))
    text = "Der schnelle braune Fuchs überspringt den faulen Hund; " * 31_250
    found.spell(text[:200])
    start = time.process_time()
    assert len(found.spell(text)) == 250_000
    assert time.process_time() - start < 2


def test_the_forms_that_were_met_are_known() -> None:
    found = WordAnalyser(AnalyserRecord(methods={"de": "lemmas"}))
    found.spell("Häuser gute HAUS")
    assert list(found.forms()) == [("haus", "häuser"), ("gut", "gute"), ("haus", "haus")]
    assert list(PLAIN.forms()) == []
