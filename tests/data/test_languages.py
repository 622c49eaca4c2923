"""The language of texts, recognised by script and function words."""

import pytest

from plant_cli.data.languages import FUNCTION_WORDS, SCRIPTS, find_language, name_language, share_languages
from plant_cli.data.words import spell

# One sentence each, none of them from what the lists were tried on.
SENTENCES = {
    "ar": "كان المريض يعاني من ارتفاع في ضغط الدم الذي ظهر بعد أن توقف عن تناول الدواء في هذا العام.",
    "bg": "Пациентът е приет в болницата с висока температура, която се е появила преди три дни, но не е лекуван.",
    "cs": "Pacient byl přijat do nemocnice s horečkou, která se objevila před třemi dny, ale nebyl léčen a je v péči lékaře.",
    "da": "Patienten blev indlagt på hospitalet med feber, som var begyndt efter en rejse, og han er ikke i behandling af lægen.",
    "de": "Der Patient wurde mit Fieber in das Krankenhaus aufgenommen, das nach einer Reise begonnen hatte und nicht behandelt wurde.",
    "en": "The patient was admitted to the hospital with a fever that had begun after a journey and was not treated.",
    "es": "El paciente fue ingresado en el hospital con una fiebre que había comenzado tras un viaje y que no se trató.",
    "et": "Patsient oli haiglas, kui tema palavik tõusis, ja see ei olnud enam sama haigus, mis oli alguses, kuid arst ei teadnud.",
    "fi": "Potilas oli sairaalassa, kun hänen kuumeensa nousi, ja se ei ollut enää sama tauti, joka hän oli saanut, mutta ei kuollut.",
    "fr": "Le patient a été admis à l'hôpital avec une fièvre qui avait commencé après un voyage et n'était pas traitée.",
    "hu": "A beteg lázzal került a kórházba, és az orvos szerint ez nem volt súlyos, de még egy hétig ott kell lennie, mert nincs jól.",
    "it": "Il paziente è stato ricoverato in ospedale con una febbre che era iniziata dopo un viaggio e non è stata curata.",
    "nl": "De patiënt werd met koorts in het ziekenhuis opgenomen, die na een reis was begonnen en niet door de arts is behandeld.",
    "pl": "Pacjent został przyjęty do szpitala z gorączką, która pojawiła się po podróży, ale nie był leczony i nie jest to choroba.",
    "pt": "O paciente foi internado no hospital com uma febre que começou após uma viagem e que não foi tratada pelo médico.",
    "ro": "Pacientul a fost internat în spital cu febră, care a apărut după o călătorie, dar nu este tratat și se simte mai rău.",
    "ru": "Пациент был доставлен в больницу с температурой, которая не снижалась и после поездки, но он не был на лечении.",
    "sv": "Patienten lades in på sjukhuset med feber som hade börjat efter en resa, och den är inte behandlad av läkaren för det var sent.",
    "tr": "Hasta, bir yolculuktan sonra başlayan ateş ile hastaneye yatırıldı, ancak bu hastalık için daha önce tedavi olarak verildi.",
    "uk": "Пацієнт був у лікарні з температурою, яка не знижувалася, але він не мав цього до поїздки, як і його син та дочка.",
    "el": "Ο ασθενής εισήχθη στο νοσοκομείο με πυρετό.",
    "he": "החולה אושפז בבית החולים עם חום.",
    "hi": "मरीज को बुखार के साथ अस्पताल में भर्ती किया गया और उस का इलाज नहीं हुआ है।",
    "ja": "患者は発熱のため入院した。",
    "ko": "환자는 열이 나서 병원에 입원했다.",
    "th": "ผู้ป่วยเข้ารับการรักษาในโรงพยาบาล",
    "zh": "病人因发烧住院治疗。",
}


@pytest.mark.parametrize(("code", "text"), SENTENCES.items())
def test_a_sentence_is_enough(code: str, text: str) -> None:
    assert find_language(text) == code


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12.5 mg, 3 × 4; 2021-05-06",
        "Pneumonia bilateral",
        "DIN 14-3:1971 ; DIN 14-4:1971 ; DIN 16-1:1980 ; DIN EN 1360:2013",  # `din` and `en` are function words, elsewhere
        "Qtly div 35 cts vs 35 cts in prior qtr Payable April one Record March 14",
    ],
)
def test_what_is_not_recognised_is_none(text: str) -> None:
    assert find_language(text) is None


def test_letters_of_formulas_do_not_make_a_text_greek() -> None:
    assert find_language("The α and β chains of the protein are not in the cell, but they are bound by λ.") == "en"


def test_the_language_is_that_of_most_words_not_of_most_different_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    german, english = "eins zwei drei vier elf", "one two three four"
    table = {word: [code] for code, words in (("de", german), ("en", english)) for word in words.split()}
    monkeypatch.setattr("plant_cli.data.languages._languages_by_word", lambda: table)
    assert find_language(f"{german} {english} {english} {english}") == "en"


def test_little_kana_between_chinese_characters_is_japanese() -> None:
    assert find_language("患者の発熱と入院経過観察") == "ja"


def test_shares_of_a_mixed_corpus() -> None:
    texts = [SENTENCES["es"]] * 6 + [SENTENCES["en"]] * 3 + ["-"]
    assert share_languages(texts) == {"es": 0.6, "en": 0.3, None: 0.1}
    assert share_languages(texts * 1000) == pytest.approx({"es": 0.6, "en": 0.3, None: 0.1}, abs=0.06)
    assert share_languages([]) == {}


def test_every_language_has_a_name() -> None:
    assert name_language("fi") == "Finnish"
    assert name_language("ja") == "Japanese"


def test_function_words_are_words_as_texts_are_split_into() -> None:
    for code, (name, listed) in FUNCTION_WORDS.items():
        found = listed.split()
        assert len(code) == 2
        assert name.istitle()
        assert len(found) == len(set(found)) >= 20, code
        assert [spell(word) for word in found] == [[word] for word in found], code


def test_a_language_is_recognised_in_one_way() -> None:
    assert not SCRIPTS.keys() & FUNCTION_WORDS.keys()
