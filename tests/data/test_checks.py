"""What is wrong with a corpus, texts that are nearly the same, and how two corpora differ."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from builders import SCHEMA
from plant_data import near_duplicates, thorough_checks
from plant_data.near_duplicates import (
    NEAR,
    WORDS_PER_TRIPLE,
    digest_and_sign,
    find_near_duplicates,
    join_signatures,
    match_duplicates,
    sign_texts,
)
from plant_data.thorough_checks import (
    THOROUGH,
    find_near_labels,
    find_odd_label_counts,
    find_unknown_labels,
)
from plant_formats.table_corpora import load as load_files

from plant_cli.api import DataSection, Dataset, SilentReporter, SplitName
from plant_cli.data import checks
from plant_cli.data.checks import (
    REQUIRED,
    Finding,
    FramesCheck,
    examine_documents,
    find_unseen_labels,
)
from plant_cli.data.documents import digest, read_digests
from plant_cli.data.drift import compare_corpora, divergence, likelihood_ratio

Row = tuple[str | None, str | None, list[str | None] | None]

LONG = "a text that is long enough"


def corpus(**splits: list[Row]) -> dict[SplitName, pl.DataFrame]:
    return {
        name: digest(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
        for name, rows in splits.items()
    }  # type: ignore[misc]


def only(check: FramesCheck, **splits: list[Row]) -> Finding:
    (finding,) = check(corpus(**splits))
    return finding


def test_nothing_is_found_in_a_sound_corpus(frames: dict[SplitName, pl.DataFrame]) -> None:
    assert [
        finding.what
        for finding in examine_documents(
            {name: digest(frame) for name, frame in frames.items()}, THOROUGH
        )
        if finding.level != "note"
    ] == []


def test_repeated_ids_are_named_with_their_rows() -> None:
    finding = only(
        checks.find_repeated_ids,
        train=[("a", LONG, []), ("b", LONG, []), ("a", LONG, [])],
        test=[("b", LONG, [])],
    )
    assert (finding.level, finding.count) == ("fatal", 4)
    assert (
        finding.where
        == "'a', document 1 of train; 'a', document 3 of train; 'b', document 2 of train; 'b', "
        "document 1 of test"
    )
    assert finding.to_error().what == "4 documents share their id with another, or have none"
    assert "--id-column" in finding.to_error().todo


def lettered(*texts: str | None, labels: list[str] | None = None) -> list[Row]:
    """Documents a, b, … with these texts."""
    return [(chr(ord("a") + place), text, labels or []) for place, text in enumerate(texts)]


UNTIDY: list[Row] = [
    ("a", LONG, ["x "]),
    ("b", LONG, ["x", "x"]),
    ("c", LONG, [""]),
    ("d", LONG, ["x", "y"]),
]
NEAR_TRAIN, NEAR_TEST = (
    lettered("The cat, 3 years old.", LONG),
    lettered("the CAT – 3 years\n old", LONG, "the cat 4 years old"),
)


@pytest.mark.parametrize(
    ("check", "splits", "found"),
    [
        (
            checks.find_repeated_ids,
            {"train": [(None, LONG, [])]},
            ("fatal", 1, "no id, document 1 of train"),
        ),
        (
            checks.find_empty_texts,
            {"train": lettered(*[" \n"] * 7, LONG)},
            ("fatal", 7, "train: 'a', 'b', 'c', 'd', 'e', … (7 in all)"),
        ),
        (
            checks.find_empty_train,
            {"test": [("b", LONG, ["x"])]},
            ("fatal", 0, "train, 0 documents; test, 1 documents"),
        ),
        (
            checks.find_unlabelled,
            {"train": [("a", LONG, ["x"]), ("b", LONG, [])]},
            ("warning", 1, "train: 'b'"),
        ),
        (
            checks.find_leaks,
            {
                "train": lettered(LONG, LONG + "!", "twice in train", "twice in train"),
                "test": [("e", LONG, [])],
            },
            ("warning", 2, "'a' in train, 'e' in test"),
        ),
        (
            thorough_checks.find_near_leaks,
            {"train": NEAR_TRAIN, "test": NEAR_TEST},
            ("warning", 2, "'a' in train, 'a' in test"),
        ),
        (
            thorough_checks.find_repeated_texts,
            {"train": lettered(LONG, LONG, "other")},
            ("warning", 2, "train: 'a', 'b'"),
        ),
        (
            thorough_checks.find_untidy_labels,
            {"train": UNTIDY},
            ("note", 3, "train: 'a', 'b', 'c'"),
        ),
        (
            thorough_checks.find_twin_labels,
            {
                "train": [("a", LONG, ["Heart  failure", "b"])],
                "test": [("b", LONG, ["heart failure", "c"])],
            },
            ("warning", 2, "'Heart  failure', 'heart failure'"),
        ),
        (
            thorough_checks.find_replaced,
            {"train": lettered("caf\ufffd", "x")},
            ("warning", 1, "train: 'a'"),
        ),
        (
            thorough_checks.find_control_characters,
            {"train": lettered("a\tb\nc\r\n", "x\x00y", "x\u0092y")},
            ("warning", 2, "train: 'b', 'c'"),
        ),
        (
            thorough_checks.find_short_texts,
            {"train": lettered("short", " " * 50, LONG)},
            ("warning", 1, "train: 'a'"),
        ),
    ],
)
def test_what_a_check_finds(
    check: FramesCheck, splits: dict[str, list[Row]], found: tuple[str, int, str]
) -> None:
    finding = only(check, **splits)
    assert (finding.level, finding.count, finding.where) == found


@pytest.mark.parametrize("labels", [[], None, [" "], [None]])
def test_no_labels_at_all(labels: list[str | None] | None) -> None:
    filled = [] if labels is None else labels
    finding = only(checks.find_empty_train, train=[("a", LONG, filled)], test=[("b", LONG, ["x"])])
    assert (finding.level, finding.where) == ("fatal", "train, 1 documents; test, 1 documents")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [("un café à Liège", "cp1252"), ("it’s “here”", "cp1252"), ("Übergröße", "latin-1"), ("привет мир", "cp1252"), ("ευχαριστώ", "latin-1"),
     ("日本語のテスト", "latin-1"), ("a \U0001f600", "cp1252"), ("isn’t", "mac-roman")],
)  # fmt: skip
def test_utf8_that_was_read_in_another_encoding(text: str, encoding: str) -> None:
    garbled = "".join(
        bytes([byte]).decode(encoding, "ignore") or chr(byte) for byte in text.encode()
    )
    assert (
        only(thorough_checks.find_garbled, train=[("a", text, []), ("b", garbled, [])]).where
        == "train: 'b'"
    )


def test_letters_that_look_like_a_wrong_encoding() -> None:
    texts = [
        "« café\u00a0» à 20\u00a0°C",
        "A MAÇÃ” caiu",
        "É»",
        "VÂ» zu",
        "Straße“, Ü–",
        "été…",
        "Ð",
        "10 £, 20 €",
    ]
    assert (
        list(
            thorough_checks.find_garbled(
                corpus(train=[(str(number), text, []) for number, text in enumerate(texts)])
            )
        )
        == []
    )


def test_characters_without_width_and_html() -> None:
    rows: list[Row] = [
        ("a", "soft\u00adhyphen", ["x"]),
        ("b", "zero\u200bwidth", ["x\u200b", "caf\u00e9"]),
        ("c", "\ufeffmark", ["cafe\u0301"]),
        ("d", "a<br/>b", []),
        ("e", "a &nbsp; b", []),
        ("f", 'a <a href="x">b</a>', []),
        ("g", "x < y > z & co; <b1>", []),
    ]
    assert only(thorough_checks.find_hidden_characters, train=rows).where == "train: 'a', 'b', 'c'"
    assert only(thorough_checks.find_hidden_labels, train=rows).where == r"'x\u200b'"
    assert only(thorough_checks.find_markup, train=rows).where == "train: 'd', 'e', 'f'"
    assert (
        only(thorough_checks.find_twin_labels, train=rows).where
        == r"'cafe\u0301', 'café', 'x', 'x\u200b'"
    )


def test_texts_that_were_cut_at_one_length() -> None:
    rows: list[Row] = [
        (str(number), "x" * min(255, 100 + 20 * number), ["x"]) for number in range(20)
    ]
    finding = only(thorough_checks.find_cut_off, train=rows[:15], test=rows[15:])
    assert (finding.level, finding.count, "255 characters" in finding.what) == ("note", 12, True)
    assert (
        list(
            thorough_checks.find_cut_off(
                corpus(train=[(str(number), "x" * (200 + number), ["x"]) for number in range(50)])
            )
        )
        == []
    )


def test_the_worst_comes_first() -> None:
    checked = thorough_checks.find_untidy_labels, *REQUIRED
    found = examine_documents(
        corpus(train=[("a", "", ["x"]), ("b", LONG, [])], test=[("c", "", [" y"])]), checked
    )
    assert [finding.level for finding in found] == ["fatal", "warning", "warning", "note"]


def test_an_empty_text_costs_its_document_and_many_stop_the_run() -> None:
    few = only(checks.find_empty_texts, train=[("a", " ", []), ("b", LONG, []), ("c", LONG, [])])
    many = only(checks.find_empty_texts, train=[("a", " ", []), ("b", "", []), ("c", LONG, [])])
    assert (few.level, few.what, few.where) == (
        "warning",
        "documents have an empty text; they are left out",
        "train: 'a'",
    )
    assert (many.level, many.what, many.where) == (
        "fatal",
        "documents have an empty text",
        "train: 'a', 'b'",
    )


def test_every_check_of_the_module_is_in_the_list() -> None:
    further = {
        "near_labels",
        "odd_label_counts",
        "cut_off",
        "unseen_labels",
        "unknown_labels",
    }  # see `plant data check`
    unlisted = {
        name
        for name, check in {**vars(checks), **vars(thorough_checks)}.items()
        if name.startswith("find_") and check not in THOROUGH
    }
    assert unlisted == {f"find_{name}" for name in further}


@pytest.mark.corpora
@pytest.mark.parametrize("name", ["tibkat-mini", "codiesp"])
def test_real_corpora_hold_what_their_description_says(name: str, corpora: Path) -> None:
    found = examine_documents(
        read_digests(load_files(DataSection(path=str(corpora / name))), SilentReporter()), THOROUGH
    )
    assert not [finding for finding in found if finding.level == "fatal"]
    assert not [finding for finding in found if finding.what.startswith("documents have a text")]


def frame(labels: list[list[str]]) -> pl.DataFrame:
    ids = [f"d{i}" for i in range(len(labels))]
    return pl.DataFrame(
        {"doc_id": ids, "text": ["t"] * len(ids), "labels": labels},
        schema_overrides={"labels": pl.List(pl.String)},
    )


def test_punctuation_and_slips() -> None:
    frames = {
        "train": frame(
            [
                ["E11.9", "E119", "Libraries", "Librarys"],
                ["Libarries", "E11.8", "short", "shorn", "Librarie"],
            ]
        )
    }
    found = {finding.what: finding for finding in find_near_labels(frames)}
    assert found["labels differ from another only by punctuation"].where == "'E11.9', 'E119'"
    assert found["pairs of labels differ by one letter"].where == "'Librarie' and 'Libraries'"


def test_case_and_blanks_are_left_to_another_check() -> None:
    assert (
        list(find_near_labels({"train": frame([["Oil", "oil", "crude  oil", "crude oil"]])})) == []
    )


def test_documents_with_very_many_labels() -> None:
    frames = {"train": frame([["a"]] * 9 + [[f"l{i}" for i in range(30)]])}
    (found,) = find_odd_label_counts(frames)
    assert (found.count, found.where) == (1, "train: 'd9' with 30")
    assert list(find_odd_label_counts({"train": frame([["a", "b"], []])})) == []


def test_what_the_table_of_labels_says() -> None:
    table = pl.LazyFrame(
        {
            "label": ["a", "b", "c"],
            "title": ["Oil", "oil ", None],
            "deprecated": [False, True, False],
        }
    )
    frames = {"train": frame([["a", "b"], ["c", "z"]])}
    found = {
        finding.what: (finding.count, finding.where)
        for finding in find_unknown_labels(Dataset(splits={}, labels=table), frames)
    }
    assert found == {
        "labels are not in the table of labels": (1, "'z'"),
        "labels are deprecated in the vocabulary": (1, "'b' (oil )"),
        "labels share their title with another": (2, "'Oil' (a), 'oil ' (b)"),
    }
    assert list(find_unknown_labels(Dataset(splits={}), frames)) == []


def test_labels_only_in_test_are_counted_most_frequent_first_by_title() -> None:
    frames = {"train": frame([["x"]]), "test": frame([["x", "y"], ["z"], ["z"]])}
    titles = pl.DataFrame({"label": ["x", "z"], "title": ["Known", "Zinc"]})
    (found,) = find_unseen_labels(frames, titles)
    assert (found.level, found.count, found.where) == ("note", 2, "test: 'z' (Zinc), 'y'")
    assert "their 3 assignments count as missed" in found.what
    assert list(find_unseen_labels({"test": frames["test"]}, titles)) == []


WORDLIST = [f"word{i}" for i in range(2000)]


def text(seed: int, words: int = 120) -> str:
    return " ".join(random.Random(seed).choices(WORDLIST, k=words))


def change(given: str, places: int, seed: int = 0) -> str:
    """The text with some words replaced."""
    words = given.split()
    for place in random.Random(seed).sample(range(len(words)), places):
        words[place] = "changed"
    return " ".join(words)


def similarity(first: str, second: str) -> float:
    """The plain reference: Jaccard similarity of word triples."""
    sets = [
        {tuple(words[i : i + WORDS_PER_TRIPLE]) for i in range(len(words) - WORDS_PER_TRIPLE + 1)}
        for words in (first.split(), second.split())
    ]
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


def match(texts: list[pl.Series]) -> np.ndarray:
    return match_duplicates(join_signatures([sign_texts(part) for part in texts]), lambda: texts)


def test_pairs_are_those_of_the_plain_reference() -> None:
    bases = [text(seed) for seed in range(40)]
    others = [change(base, places=seed % 8, seed=seed) for seed, base in enumerate(bases)]
    wanted = {
        (i, 40 + i)
        for i, (base, other) in enumerate(zip(bases, others, strict=True))
        if similarity(base, other) >= NEAR
    }
    assert 10 < len(wanted) < 40
    assert set(map(tuple, match([pl.Series(bases + others)]).tolist())) == wanted


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts without words and texts with too few lie between the others; a block is one text,
    two texts or some of the candidates.
    """
    short = ["", "too short", "of three triples at least"]
    texts = pl.Series(
        [one for i in range(30) for one in (text(i % 7), *(short if i % 8 == 1 else []))]
    )
    whole = match([texts])
    monkeypatch.setattr(near_duplicates, "_BLOCK", 300)
    np.testing.assert_array_equal(match([texts]), whole)
    monkeypatch.setattr(near_duplicates, "_HELD", 500)
    np.testing.assert_array_equal(match([texts[:3], texts[3:3], texts[3:20], texts[20:]]), whole)
    assert len(whole) == 23


def test_each_later_text_is_paired_with_the_first_that_it_is_like() -> None:
    base = text(0)
    assert match([pl.Series([text(1), base, base, text(2), base])]).tolist() == [[1, 2], [1, 4]]


@pytest.mark.parametrize(("words", "pairs"), [(12, 1), (11, 0)])
def test_ten_triples_of_words_are_enough_and_nine_are_not(words: int, pairs: int) -> None:
    assert len(match([pl.Series([text(0, words)] * 2)])) == pairs


@pytest.mark.parametrize("texts", [[], [""], ["a b", "a b"], ["", "", text(0)]])
def test_nothing_to_compare(texts: list[str]) -> None:
    assert match([pl.Series(texts, dtype=pl.String)]).shape == (0, 2)


def test_findings_tell_splits_apart_and_leave_equal_texts_to_other_checks() -> None:
    train = pl.DataFrame(
        {
            "doc_id": ["a", "b", "c"],
            "text": [text(1), text(2), change(text(2), 2)],
            "labels": [["x"]] * 3,
        }
    )
    test = pl.DataFrame(
        {"doc_id": ["d", "e"], "text": [change(text(1), 2), text(2).upper()], "labels": [["x"]] * 2}
    )
    frames = {"train": train, "test": test}
    dataset = Dataset(splits={name: frame.lazy() for name, frame in frames.items()})  # type: ignore[misc]
    digests, signatures = digest_and_sign(dataset, SilentReporter())
    found = {
        finding.what: finding
        for finding in find_near_duplicates(dataset, digests, SilentReporter(), signatures)
    }
    across = found["texts are nearly the same as one of another split"]
    assert (across.count, across.where, across.level) == (
        1,
        "'d' in test as 'a' in train",
        "warning",
    )
    assert (
        found["texts are nearly the same as another of their split"].where
        == "'c' in train as 'b' in train"
    )


def corpus_drift(
    seed: int,
    documents: int,
    extra: str = "",
    labels: tuple[str, ...] = ("a", "b"),
    share: float = 0.5,
) -> pl.DataFrame:
    rng = random.Random(seed)
    words = [f"w{chr(97 + i)}{chr(97 + j)}" for i in range(10) for j in range(10)]
    texts = [" ".join([*rng.choices(words, k=20), extra]) for _ in range(documents)]
    rows = [
        (str(i), text, [label for label in labels if rng.random() < share])
        for i, text in enumerate(texts)
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def plain_ratio(k: int, n: int, j: int, m: int) -> float:
    """The textbook formula, cell by cell."""
    total, both = n + m, k + j
    cells = [
        (k, n * both / total),
        (n - k, n * (total - both) / total),
        (j, m * both / total),
        (m - j, m * (total - both) / total),
    ]
    return 2 * sum(o * math.log(o / e) for o, e in cells if o)


def test_the_likelihood_ratio_is_that_of_the_textbook() -> None:
    pairs = [(0, 5), (3, 3), (10, 90), (100, 200), (0, 0)]
    found = likelihood_ratio(
        np.array([k for k, _ in pairs], float), np.array([j for _, j in pairs], float), (100, 200)
    )
    np.testing.assert_allclose(found, [plain_ratio(k, 100, j, 200) for k, j in pairs], atol=1e-9)


def test_divergence() -> None:
    assert divergence({"a": 1}, {"b": 7}) == pytest.approx(1.0)
    assert divergence({"a": 2, "b": 4}, {"a": 1, "b": 2}) == pytest.approx(0.0)
    first = 0.5 * math.log2(0.5 / 0.75) + 0.5 * math.log2(0.5 / 0.25)
    assert divergence({"a": 1, "b": 1}, {"a": 1}) == pytest.approx(
        (first + math.log2(1 / 0.75)) / 2
    )
    assert divergence({}, {"a": 1}) == 0.0


def test_equal_corpora_do_not_drift() -> None:
    found = compare_corpora(corpus_drift(1, 300), corpus_drift(2, 300))
    assert found.new_words_share == 0
    assert found.unseen_share == 0
    assert not found.labels["changed"].any()
    assert found.words["changed"].sum() <= 5
    assert found.words_distance == pytest.approx(found.words_chance, abs=0.005)


def test_what_changed_is_found() -> None:
    found = compare_corpora(
        corpus_drift(1, 300), corpus_drift(2, 200, extra="covid", labels=("a", "c"), share=0.9)
    )
    labels = {row["label"]: row for row in found.labels.to_dicts()}
    assert labels["a"]["changed"]
    assert labels["a"]["change"] > 0
    assert labels["b"]["changed"]
    assert (labels["b"]["after"], labels["c"]["before"]) == (0, 0)
    assert labels["b"]["change"] < 0
    assert found.words.row(0, named=True)["word"] == "covid"
    assert found.new_words_share == pytest.approx(1 / 21)
    assert found.unseen_share == pytest.approx(
        labels["c"]["after"] / (labels["a"]["after"] + labels["c"]["after"])
    )
    assert found.words_distance > 2 * found.words_chance
    assert (found.before.documents, found.after.words_median) == (300, 21.0)


def test_rare_things_are_not_tested() -> None:
    rare = corpus_drift(1, 50).with_columns(
        labels=pl.Series([["x"]] + [[]] * 49, dtype=pl.List(pl.String))
    )
    found = compare_corpora(rare, corpus_drift(2, 50, labels=()))
    assert found.labels.select("label", "p", "changed").rows() == [("x", None, False)]
