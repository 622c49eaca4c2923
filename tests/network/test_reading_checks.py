"""A corpus against a backbone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from plant_cli.network.reading_checks import find_cut_texts, find_languages

ENGLISH = "the patient was seen in the clinic and had been there for a week with his wife"
GERMAN = "der Patient war eine Woche in der Klinik und ist dann mit seiner Frau nach Hause gegangen"


def frames(*texts: str) -> Any:
    return {"train": list(texts)}


def backbone(languages: tuple[str, ...] | None, name: str = "b") -> Any:
    return SimpleNamespace(name=name, languages=languages)


def test_languages() -> None:
    mixed = frames(ENGLISH, ENGLISH, GERMAN)
    (note,) = find_languages(mixed, None)
    assert (note.level, note.what) == ("note", "languages are recognised: 67% English, 33% German")
    (warning,) = find_languages(mixed, backbone(("en",)))
    assert warning.level == "warning"
    assert "the backbone b was trained on en" in warning.what
    assert warning.todo == "choose a backbone of these languages"
    (warning,) = find_languages(mixed, backbone(("en",)), [backbone(("en",)), backbone(None), backbone(("de", "en"), "many")])
    assert warning.todo == "choose a backbone of these languages, such as many"
    assert [finding.level for finding in find_languages(mixed, backbone(("en", "de")))] == ["note"]
    assert list(find_languages(frames(ENGLISH), backbone(("en",)))) == []
    assert [finding.level for finding in find_languages(frames(GERMAN), backbone(("en",)))] == ["warning"]


def test_texts_longer_than_the_window() -> None:
    class Five:
        def tokenize(self, texts: list[str]) -> Any:
            words = [text.split() for text in texts]
            return SimpleNamespace(ids=[line[:5] for line in words], dropped=[max(0, len(line) - 5) for line in words])

    given: Any = Five()
    (found,) = find_cut_texts(frames("a b c", "a b c d e f g h i j"), given, "five")
    assert (found.count, found.level) == (1, "warning")
    assert found.what == "documents of 2 are longer than the backbone five reads; 38% of all tokens are not read"
    assert list(find_cut_texts(frames("a b c"), given, "five")) == []
    assert list(find_cut_texts(frames(), given, "five")) == []
