"""Words of a text, how they are reduced, and the language of a text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import regex
from effort import effort
from hypothesis import given
from hypothesis import strategies as st
from plant_network.reading import match_words

from plant_cli.api import AnalyserSpec, ComponentError, PluginRecord, SilentReporter, TokenBatch
from plant_cli.data import word_analysis as module
from plant_cli.data import words as words_module
from plant_cli.data.corpus_files import AnalyserRecord
from plant_cli.data.files import hash_json
from plant_cli.data.languages import (
    FUNCTION_WORDS,
    SCRIPTS,
    find_language,
    name_language,
    share_languages,
)
from plant_cli.data.word_analysis import PLAIN, WordAnalyser, choose_analyser, find_other_packages
from plant_cli.data.words import find_borders, number_words, spell, words
from plant_cli.registry import Registry


def plain(text: str) -> list[str]:
    return [word for word, _, _ in words(text)]


def test_words_and_their_places() -> None:
    assert words("The cat's well-fed.") == [
        ("the", 0, 3),
        ("cat", 4, 7),
        ("s", 8, 9),
        ("well", 10, 14),
        ("fed", 15, 18),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("12 3.5 _ – !", []),
        ("B12 x2y", ["b", "x", "y"]),
        ("Ärzte ŞOK ÉTÉ", ["ärzte", "şok", "été"]),
        ("нет ΣΊΣΥΦΟΣ", ["нет", "σίσυφος"]),
        ("हिन्दी में लिखो", ["हिन्दी", "में", "लिखो"]),
        ("العَرَبِيَّة", ["العَرَبِيَّة"]),
        ("می‌خواهم", ["می‌خواهم"]),
        ("한국어 단어", ["한국어", "단어"]),
        ("中国人", ["中", "中国", "国", "国人", "人"]),
        ("東京 is 好", ["東", "東京", "京", "is", "好"]),
        ("ABC中文", ["abc", "中", "中文", "文"]),
        ("น้ำ", ["น้", "น้ำ", "ำ"]),
        ("½ ² Ⅷ", []),
    ],
)
def test_scripts(text: str, expected: list[str]) -> None:
    assert sorted(plain(text)) == sorted(unicodedata.normalize("NFC", word) for word in expected)


def test_offsets_refer_to_the_original_even_where_lower_case_is_longer() -> None:
    text = "İİ x"
    assert len(text.lower()) != len(text)
    assert words(text)[1] == ("x", 3, 4)


def test_composed_and_decomposed_letters_are_one_word() -> None:
    assert plain(unicodedata.normalize("NFD", "Café")) == plain("CAFÉ") == ["café"]
    assert words(unicodedata.normalize("NFD", "Café"))[0][2] == 5


@given(st.text())
def test_every_word_is_its_slice_of_the_text(text: str) -> None:
    found = words(text)
    for word, start, end in found:
        assert 0 <= start < end <= len(text)
        assert unicodedata.normalize("NFC", text[start:end].lower()) == word
        assert regex.match(r"\p{L}", text[start])  # whose Unicode may be newer than Python's
    letters = {i for i, character in enumerate(text) if unicodedata.category(character)[0] == "L"}
    assert letters <= {i for _, start, end in found for i in range(start, end)}


@pytest.mark.parametrize(
    "split", [words, WordAnalyser(AnalyserRecord(methods={"de": "lemmas"})).spell]
)
def test_many_words_are_found_nearly_as_fast_as_by_a_plain_search(
    split: Callable[[str], list[Any]],
) -> None:
    text = "Der schnelle braune Fuchs überspringt den faulen Hund; " * 31_250
    assert len(split(text)) == 250_000
    assert effort(lambda: split(text)) < 10 * effort(lambda: re.findall(r"\w+", text))


@given(st.text() | st.text(alphabet=st.characters(max_codepoint=127)))
def test_words_without_places_are_the_same_words(text: str) -> None:
    assert spell(text) == plain(text)


MIXED = {
    "BRCA1 and brca-2": "brca1 brca and brca2 brca 2",
    "H1N1, HTML5, 3D, H₂O": "h1n1 h n html5 html 3d d h o",
    "Type 2, type-2, type: 2, Type\u00a02": "type2 type 2 " * 4,
    "Typ-2-Diabetes; COVID-19": "typ2 typ 2 diabetes covid19 covid 19",
    "stage IIIB T2N0M0 CYP2D6": "stage iiib t2n0m0 t n m cyp2d6 cyp d",
    "Art. 5, §823": "art5 art 5 823",
    "ISO 9001 and ISO 27001, ISBN 9783161484100": "iso 9001 and iso isbn",
    "Python 3.11, python 2": "python3.11 python3 python python2 python 2",
    "E11.9 or E11.65": "e11.9 e11 e 9 or e11.65 e11 e 65",
    "12/03/2019 10:30 0.5mg 1,000 2-3 192.168.0.1": "mg",
    "grades 2-3, 3 June 2019": "grades 3 june 2019",
    "C++, C#, .NET; C++11 asp.net node.js x#y A+ ... a.": "c++ c c# c .net net c++ c 11 asp net node js x y a a",
    "糖尿病２型 2019年": "糖 糖尿 尿 尿病 病 病2 2 2型 型 2019 年",
    "2형 제2형": "2형 형 제2형 제 형",
    "النوع ٢": "النوع2 النوع 2",
    "диабет II, тип 2": "диабет ii тип2 тип 2",
    "type\n2": "type 2",  # on another line
}


@pytest.mark.parametrize(("text", "expected"), MIXED.items())
def test_letters_with_digits_and_signs(text: str, expected: str) -> None:
    assert sorted(spell(text, "mixed")) == sorted(expected.split())


@given(
    st.text() | st.text(alphabet="aÄ中1２ .,-:/+#\u0301\u00a0") | st.text(alphabet="ab12 .,-:/+#\n")
)
def test_every_word_of_letters_is_a_mixed_word_too(text: str) -> None:
    found = words(text, "mixed")
    assert spell(text, "mixed") == [word for word, _, _ in found]
    assert find_borders(text, "mixed").tolist() == [place for _, *place in found]
    assert Counter(spell(text)) <= Counter(word for word, _, _ in found)
    starts = [start for _, start, _ in found]
    assert starts == sorted(starts)
    assert all(
        start < end <= len(text) and not re.search(r"\s", word) for word, start, end in found
    )


def test_names_are_kept_whole() -> None:
    assert words(" f23 Fe-2+\nα/β", "names") == [("f23", 1, 4), ("fe-2+", 5, 10), ("α/β", 11, 14)]
    assert spell(" f23 Fe-2+\nα/β", "names") == ["f23", "fe-2+", "α/β"]


def test_letters_alone_are_reduced() -> None:
    """An analyser gets letters: those before a number that belongs to them, and whole words
    without digits.
    """
    asked: list[str] = []

    def reduce(word: str) -> str:
        asked.append(word)
        return word.rstrip("s")

    reduced = module._Reduced("plain", SimpleNamespace(reduce=reduce))
    forms = spell("Stages 3, stages 2.5; stages BRCA1 H1N1s C++ 12", "mixed")
    assert [reduced[form] for form in forms] == (
        [
            "stage3",
            "stage",
            "3",
            "stage2.5",
            "stage2",
            "stage",
            "stage",
            "brca1",
            "brca",
            "h1n1s",
            "h",
            "n",
            "s",
            "c++",
            "c",
            "12",
        ]
    )
    assert asked == ["stages", "stages", "stages", "stages", "brca", "brca", "h", "n", "s", "c"]


def test_the_rule_is_part_of_the_hash_only_where_it_is_not_letters() -> None:
    old = AnalyserRecord.model_validate({"asked": "none", "methods": {"fi": "lemmas"}})
    assert old.words == "letters"
    assert old.hash == hash_json({"methods": {"fi": "lemmas"}, "packages": {}})
    assert (
        len({old.model_copy(update={"words": rule}).hash for rule in ("letters", "mixed", "names")})
        == 3
    )
    assert WordAnalyser(AnalyserRecord(words="mixed")).find_borders("type 2").tolist() == [
        [0, 6],
        [0, 4],
        [5, 6],
    ]


PHRASES = {"none": "as they stand", "lemmas": "as lemmas", "stems": "as stems"}
FINNISH = (
    "Potilaan sairaus on vakava, ja hän oli sairaalassa, kun hänen sairauttaan ei ollut "
    "vielä todettu. Sairauksien hoito se on."
)
GERMAN = (
    "Die Häuser und die Häusern der Stadt; das Haus, in dem er nicht war, wird mit den "
    "anderen Hauses auf der Karte von Berlin sein."
)
SENTENCES = {
    "ar": "كان المريض يعاني من ارتفاع في ضغط الدم الذي ظهر بعد أن توقف عن تناول الدواء في هذا "
    "العام.",
    "bg": "Пациентът е приет в болницата с висока температура, която се е появила преди три дни, "
    "но не е лекуван.",
    "cs": "Pacient byl přijat do nemocnice s horečkou, která se objevila před třemi dny, ale "
    "nebyl léčen a je v péči lékaře.",
    "da": "Patienten blev indlagt på hospitalet med feber, som var begyndt efter en rejse, og "
    "han er ikke i behandling af lægen.",
    "de": "Der Patient wurde mit Fieber in das Krankenhaus aufgenommen, das nach einer Reise "
    "begonnen hatte und nicht behandelt wurde.",
    "en": "The patient was admitted to the hospital with a fever that had begun after a journey "
    "and was not treated.",
    "es": "El paciente fue ingresado en el hospital con una fiebre que había comenzado tras un "
    "viaje y que no se trató.",
    "et": "Patsient oli haiglas, kui tema palavik tõusis, ja see ei olnud enam sama haigus, mis "
    "oli alguses, kuid arst ei teadnud.",
    "fi": "Potilas oli sairaalassa, kun hänen kuumeensa nousi, ja se ei ollut enää sama tauti, "
    "joka hän oli saanut, mutta ei kuollut.",
    "fr": "Le patient a été admis à l'hôpital avec une fièvre qui avait commencé après un voyage "
    "et n'était pas traitée.",
    "hu": "A beteg lázzal került a kórházba, és az orvos szerint ez nem volt súlyos, de még egy "
    "hétig ott kell lennie, mert nincs jól.",
    "it": "Il paziente è stato ricoverato in ospedale con una febbre che era iniziata dopo un "
    "viaggio e non è stata curata.",
    "nl": "De patiënt werd met koorts in het ziekenhuis opgenomen, die na een reis was begonnen "
    "en niet door de arts is behandeld.",
    "pl": "Pacjent został przyjęty do szpitala z gorączką, która pojawiła się po podróży, ale "
    "nie był leczony i nie jest to choroba.",
    "pt": "O paciente foi internado no hospital com uma febre que começou após uma viagem e que "
    "não foi tratada pelo médico.",
    "ro": "Pacientul a fost internat în spital cu febră, care a apărut după o călătorie, dar nu "
    "este tratat și se simte mai rău.",
    "ru": "Пациент был доставлен в больницу с температурой, которая не снижалась и после "
    "поездки, но он не был на лечении.",
    "sv": "Patienten lades in på sjukhuset med feber som hade börjat efter en resa, och den är "
    "inte behandlad av läkaren för det var sent.",
    "tr": "Hasta, bir yolculuktan sonra başlayan ateş ile hastaneye yatırıldı, ancak bu hastalık "
    "için daha önce tedavi olarak verildi.",
    "uk": "Пацієнт був у лікарні з температурою, яка не знижувалася, але він не мав цього до "
    "поїздки, як і його син та дочка.",
    "el": "Ο ασθενής εισήχθη στο νοσοκομείο με πυρετό.",
    "he": "החולה אושפז בבית החולים עם חום.",
    "hi": "मरीज को बुखार के साथ अस्पताल में भर्ती किया गया और उस का इलाज नहीं हुआ है।",
    "ja": "患者は発熱のため入院した。",
    "ko": "환자는 열이 나서 병원에 입원했다.",
    "th": "ผู้ป่วยเข้ารับการรักษาในโรงพยาบาล",
    "zh": "病人因发烧住院治疗。",
}

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
    assert [note.split(" (")[0] for note in told.notes] == [
        f"words are counted {PHRASES[auto]} in {name_language(code)}"
    ]
    assert not told.warnings
    record, told = choose("lemmas", SENTENCES[code])
    assert record.methods == {code: asked}
    assert bool(told.warnings) == (asked == "none")
    assert record.packages.keys() == (set() if asked == "none" else {"simplemma"})


def test_stems_where_there_are_no_lemmas(monkeypatch: pytest.MonkeyPatch) -> None:
    knows = module._knows
    monkeypatch.setattr(
        module, "_knows", lambda spec, language: spec.name == "stems" and knows(spec, language)
    )
    record, _ = choose("auto", SENTENCES["fi"])
    assert record.methods == {"fi": "stems"}
    assert WordAnalyser(record).spell("sairauksien sairaudesta") == ["sairauks", "sairaud"]


def test_an_analyser_that_nobody_registered() -> None:
    with pytest.raises(ComponentError, match="there is no analyser named 'lemas'") as caught:
        choose("lemas", FINNISH)
    assert "lemmas" in caught.value.expected


@pytest.mark.parametrize("asked", ["auto", "none"])
def test_without_any_analyser_words_stay_as_they_are(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "installed", Registry)
    record, _ = choose(asked, FINNISH)
    assert record.methods == ({"fi": "none"} if asked == "auto" else {})
    assert WordAnalyser(record).spell("Sairauden") == ["sairauden"]


def test_the_example_of_the_docs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's analyser in one file: registered, nothing installed; its one language need
    not be recognised.
    """
    path = (
        Path(__file__).parents[2]
        / "docs"
        / "examples"
        / "plant-example"
        / "plant_example"
        / "analyser.py"
    )
    latin = ModuleType("plant_latin")
    exec(compile(path.read_text("utf-8"), str(path), "exec"), vars(latin))
    registry = Registry()
    registry.register(latin, name="latin")
    monkeypatch.setattr(module, "installed", lambda: registry)
    record, told = choose("latin-stems", "Gallia est omnis divisa in partes tres")
    assert (record.asked, record.methods, record.shares, record.packages) == (
        "latin-stems",
        {"la": "latin-stems"},
        {"la": 1.0},
        {},
    )
    assert told.notes[0].startswith("words are counted as Latin stems in la (100%)")
    assert not told.warnings
    found = WordAnalyser(record)
    assert found.spell("Aquarum, aquam; AQUAS") == ["aqu"] * 3
    assert found.spell("O aquas!") == ["o", "aqu"]
    assert found.hash != PLAIN.hash


def test_the_distribution_of_an_analyser_is_recorded_if_it_names_no_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = AnalyserSpec(
        name="plain-words", summary="Words.", languages=("la",), load=lambda options, language: None
    )  # type: ignore[arg-type,return-value]
    owner = PluginRecord(name="latin", distribution="pytest", version=version("pytest"))
    known = SimpleNamespace(
        specs=lambda kind: [spec], find=lambda kind, name: spec, owner=lambda kind, name: owner
    )
    monkeypatch.setattr(module, "installed", lambda: known)
    assert choose("plain-words", "Gallia")[0].packages == {"pytest": version("pytest")}


@pytest.mark.parametrize("asked", ["auto", "none", "lemmas", "stems"])
def test_texts_in_no_recognised_language_stay_as_they_are(asked: str) -> None:
    record, told = choose(asked, "Häuser 12 mg", "houses; Häuser")
    found = WordAnalyser(record)
    assert found.spell("Häuser houses") == ["häuser", "houses"]
    assert found.hash == PLAIN.hash
    assert told.warnings == (
        [
            f"words are counted as they stand, not as {asked}: the language of the documents is "
            "not recognised"
        ]
        if asked in ("lemmas", "stems")
        else []
    )
    assert told.notes == (
        [
            "words are counted as they stand: the language of the documents is not recognised "
            "(--analyser)"
        ]
        if asked == "auto"
        else []
    )


def test_forms_of_a_word_are_one_word() -> None:
    found = WordAnalyser(choose("auto", FINNISH)[0])
    assert found.spell("Sairaus, sairauden, SAIRAUKSIEN") == ["sairaus"] * 3
    german = WordAnalyser(choose("lemmas", GERMAN)[0])
    assert set(german.spell("Haus Häuser HÄUSERN Hauses")) == {"haus"}
    assert german.spell("xyzqs 12") == ["xyzqs"]


@pytest.mark.parametrize(
    "text",
    [FINNISH, GERMAN, SENTENCES["ru"], SENTENCES["el"], "Ha\u0308user, ΣΊΣΥΦΟΣ", "中文 Haus"],
)
def test_places_are_those_of_the_forms(text: str) -> None:
    for record in (
        AnalyserRecord(methods={"de": "lemmas"}),
        AnalyserRecord(methods={"fi": "stems"}),
    ):
        found = WordAnalyser(record)
        assert find_borders(text).tolist() == [place for _, *place in words(text)]
        assert len(found.spell(text)) == len(words(text))


def test_the_language_of_each_text_decides_where_there_are_several() -> None:
    record, told = choose("auto", *[GERMAN] * 3, ENGLISH, ENGLISH, "…")
    assert record.methods == {"de": "lemmas", "en": "none"}
    [note] = told.notes
    assert note.startswith(
        "words are counted as lemmas in German (50%), as they stand in English (33%): "
    )
    found = WordAnalyser(record)
    assert found.spell(ENGLISH) == spell(ENGLISH)
    assert "sein" in found.spell(GERMAN)
    assert "war" not in found.spell(GERMAN)
    assert found.spell("Häuser") == ["haus"]  # not recognised: the main language
    assert found.spell(SENTENCES["th"]) == spell(SENTENCES["th"])


@pytest.mark.parametrize(
    "texts",
    [
        [*[FINNISH] * 30, GERMAN],
        [FINNISH[start : start + 20] for start in range(0, len(FINNISH), 20)] * 20,
    ],
)
def test_a_stray_language_counts_for_nothing_and_short_texts_are_recognised_together(
    texts: list[str],
) -> None:
    assert choose("auto", *texts)[0].methods == {"fi": "lemmas"}


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
    [matched] = match_words([text], number_words([found.spell(text)]), tokens, ["haus"], found)
    assert matched.vocabulary.tolist() == [0, -1]
    assert {(int(t), int(w)) for t, w in zip(matched.token, matched.word, strict=True)} == {
        (0, 0),
        (1, 0),
        (2, 1),
        (3, 0),
    }


def test_so_many_chunks_of_text_are_remembered_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = words_module._SPELT
    monkeypatch.setattr(words_module, "REMEMBERED", 100)
    remembered.clear()
    for number in range(300):
        word = "".join(chr(97 + int(digit)) for digit in str(number))
        assert spell(f"the {word} {100 * 'x'}", "mixed") == ["the", word, 100 * "x"]
        assert len(remembered) <= 100
    assert "the" in remembered


def test_the_forms_that_were_met_are_known() -> None:
    found = WordAnalyser(AnalyserRecord(methods={"de": "lemmas"}))
    found.spell("Häuser gute HAUS")
    assert list(found.forms()) == [("haus", "häuser"), ("gut", "gute"), ("haus", "haus")]
    assert list(PLAIN.forms()) == []


# One sentence each, none of them from what the lists were tried on.


@pytest.mark.parametrize(
    ("code", "text"),
    [
        *SENTENCES.items(),
        ("en", "The α and β chains of the protein are not in the cell, but they are bound by λ."),
        ("ja", "患者の発熱と入院経過観察"),
    ],
)
def test_a_sentence_is_enough(code: str, text: str) -> None:
    assert find_language(text) == code


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12.5 mg, 3 × 4; 2021-05-06",
        "Pneumonia bilateral",
        # `din` and `en` are function words, elsewhere
        "DIN 14-3:1971 ; DIN 14-4:1971 ; DIN 16-1:1980 ; DIN EN 1360:2013",
        "Qtly div 35 cts vs 35 cts in prior qtr Payable April one Record March 14",
    ],
)
def test_what_is_not_recognised_is_none(text: str) -> None:
    assert find_language(text) is None


def test_the_language_is_that_of_most_words_not_of_most_different_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    german, english = "eins zwei drei vier elf", "one two three four"
    table = {
        word: [code] for code, words in (("de", german), ("en", english)) for word in words.split()
    }
    monkeypatch.setattr("plant_cli.data.languages._languages_by_word", lambda: table)
    assert find_language(f"{german} {english} {english} {english}") == "en"


def test_shares_of_a_mixed_corpus() -> None:
    texts = [SENTENCES["es"]] * 6 + [SENTENCES["en"]] * 3 + ["-"]
    assert share_languages(texts) == {"es": 0.6, "en": 0.3, None: 0.1}
    assert share_languages(texts * 1000) == pytest.approx(
        {"es": 0.6, "en": 0.3, None: 0.1}, abs=0.06
    )
    assert share_languages([]) == {}


def test_function_words_are_words_as_texts_are_split_into() -> None:
    for code, (name, listed) in FUNCTION_WORDS.items():
        found = listed.split()
        assert len(code) == 2
        assert name.istitle()
        assert len(found) == len(set(found)) >= 20, code
        assert [spell(word) for word in found] == [[word] for word in found], code


def test_a_language_is_recognised_in_one_way() -> None:
    assert not SCRIPTS.keys() & FUNCTION_WORDS.keys()
    assert (name_language("fi"), name_language("ja")) == ("Finnish", "Japanese")
