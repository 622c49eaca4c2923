"""Documents are read as token batches with the word of each token; what is cut off or unknown
is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from plant_backbones import TinyOptions
from plant_backbones.tiny import TinyBackbone
from plant_formats.table_corpora import load as load_files
from plant_network.design import Design
from plant_network.hardware import Hardware
from plant_network.reading import (
    OUTSIDE,
    DocumentWords,
    LiveReader,
    find_token_words,
    lengths,
    make_tokens,
    match_words,
    sorted_batches,
    warn_of_cut,
)

from plant_cli.api import (
    BackboneSpec,
    DataSection,
    Dataset,
    DecoderSpec,
    Evidence,
    ModelSection,
    NoOptions,
    Options,
    SilentReporter,
    TokenBatch,
    option,
)
from plant_cli.data.corpus_files import AnalyserRecord
from plant_cli.data.prepare import prepare
from plant_cli.data.store import open_corpus
from plant_cli.data.word_analysis import PLAIN, WordAnalyser
from plant_cli.data.words import number_words
from plant_cli.relevance.relevance_table import load_statistics
from plant_cli.scoring.cuts import Cut, CutEvidence, cut_summary, measure_cut
from plant_cli.scoring.reading_checks import find_cut_texts, find_languages, warn_of_languages

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
Make = Callable[..., Any]


def tokenize(
    network: Any, texts: list[str], reporter: Any, name: str, batch: int = 512, evidence: Any = None
) -> Any:
    """Tokens of a split, with the warning about the part that is not read."""
    tokens = make_tokens(network, texts, reporter, name, batch)
    warn_of_cut(network, tokens, reporter, name, evidence)
    return tokens


def test_tokens_do_not_depend_on_the_batch_and_what_is_cut_is_told(small_network: Make) -> None:
    network, reporter = small_network(max_tokens=3), SilentReporter()
    texts = ["one two three four five", "six", "", "a b c d"]
    small, large = (tokenize(network, texts, reporter, "train", batch=size) for size in (1, 512))
    assert [ids.tolist() for ids in small.ids] == [ids.tolist() for ids in large.ids]
    assert lengths(small).tolist() == [3, 1, 0, 3]
    assert small.dropped == [2, 0, 0, 1]
    assert (
        "2 of 4 documents (50.0%) are longer than 3 tokens; 3 tokens beyond (30.0% of all)"
        in reporter.warnings[0]
    )
    assert measure_cut(large) == Cut(documents=0.5, tokens=0.3)
    assert [batch.tolist() for batch in sorted_batches(np.array([2, 9, 4, 9, 1]), 2)] == [
        [1, 3],
        [2, 0],
        [4],
    ]


def test_documents_of_all_lengths_come_in_few_shapes_and_are_not_cut_at_a_window(
    small_network: Make,
) -> None:
    network, reporter = small_network(window=8, max_tokens=64), SilentReporter()
    tokens = tokenize(network, ["word " * length for length in range(1, 41)], reporter, "train")
    reader = LiveReader(network, tokens, CPU)
    found = [reader.read(np.array([row])) for row in range(40)]
    assert {reading.hidden.shape[1] for reading in found} == {16, 32, 48}
    assert [int(reading.mask.sum()) for reading in found] == list(range(1, 41))
    for reading in found:
        assert bool(reading.hidden[reading.mask].abs().sum(-1).all())
        assert not reading.hidden[~reading.mask].any()
    assert (measure_cut(tokens), reporter.warnings) == (Cut(), [])


def test_gradients_flow_unless_the_backbone_is_frozen_and_padding_is_cleared(
    small_network: Make,
) -> None:
    network = small_network()
    reader, rows = (
        LiveReader(network, network.backbone.tokenize(["one two three", "one"]), CPU),
        np.arange(2),
    )
    assert reader.read(rows).hidden.requires_grad
    network.freeze_backbone()
    expected, encode = reader.read(rows), network.backbone.encode
    assert not expected.hidden.requires_grad

    def leave_rubbish(tokens: Any) -> Any:
        hidden, mask = encode(tokens)
        return hidden.masked_fill(~mask[..., None], float("nan")), mask

    network.backbone.encode = leave_rubbish
    assert torch.equal(reader.read(rows).hidden, expected.hidden)
    assert not expected.hidden[~expected.mask].any()


def test_words_are_laid_out_like_the_tokens_and_padding_has_none(small_network: Make) -> None:
    network = small_network(max_tokens=64)
    tokens = tokenize(network, ["fever cough", "leg"], SilentReporter(), "train")
    found = LiveReader(network, tokens, CPU, [np.array([4, -1]), np.array([2])]).read(
        np.array([1, 0])
    )
    assert found.words.shape == found.mask.shape
    assert found.words[:, :3].tolist() == [[2, -1, -1], [4, -1, -1]]
    assert (found.words[~found.mask] == -1).all()
    assert (LiveReader(network, tokens, CPU).read(np.array([1, 0])).words == -1).all()


TEXT = "Fever and cough, fever again"
WORDS = ("again", "cough", "fever")
# tokens: "Fe" "ver" "and" "cough" "," "fe" "ver" "again"
SPANS = np.array(
    [[0, 2], [2, 5], [6, 9], [10, 15], [15, 16], [17, 19], [19, 22], [23, 28]], dtype=np.int32
)


def match(text: str, spans: Any, *rows: str) -> DocumentWords:
    [found] = match_words(
        [text],
        number_words([PLAIN.spell(text)]),
        TokenBatch(ids=[spans[:, 0]], spans=[spans], dropped=[0]),
        rows,
        PLAIN,
    )
    return found


def pairs(found: DocumentWords) -> set[tuple[int, int]]:
    return {(int(t), int(w)) for t, w in zip(found.token, found.word, strict=True)}


def test_words_are_matched_with_the_tokens_that_spell_them() -> None:
    found = match(TEXT, SPANS, *WORDS)
    assert found.vocabulary.tolist() == [2, OUTSIDE, 1, 0]  # fever, and, cough, again
    assert pairs(found) == {(0, 0), (1, 0), (5, 0), (6, 0), (2, 1), (3, 2), (7, 3)}
    blanks = np.array([[0, 5], [5, 9], [9, 15]], dtype=np.int32)  # "Fever" " and" " cough"
    assert pairs(match("Fever and cough", blanks, "cough")) == {(0, 0), (1, 1), (2, 2)}
    assert match(TEXT, SPANS[:3], "cough", "fever").vocabulary.tolist() == [
        1,
        OUTSIDE,
    ]  # words beyond the last token are no items
    spans, analyser = (
        np.array([[0, 4], [5, 6], [7, 9]]),
        WordAnalyser(AnalyserRecord(words="mixed")),
    )
    tokens, words = (
        TokenBatch(ids=[spans[:, 0]], spans=[spans], dropped=[0]),
        number_words([analyser.spell("Type 2 of")]),
    )
    for rows, expected in (
        (("type2", "2"), [0, 0, OUTSIDE]),
        (("2", "type"), [1, 0, OUTSIDE]),
    ):  # a longer word of the table counts first
        assert (
            find_token_words(["Type 2 of"], words, tokens, rows, analyser)[0].tolist() == expected
        )
        assert (
            next(match_words(["Type 2 of"], words, tokens, rows, analyser))
            .by_position()
            .vocabulary.tolist()
            == expected
        )
    single = found.by_position()
    assert single.token.tolist() == [0, 1, 2, 3, 5, 6, 7]  # the comma spells no word
    assert single.word.tolist() == list(range(7))
    assert single.vocabulary.tolist() == [2, 2, OUTSIDE, 1, 2, 2, 0]


def test_every_token_has_the_row_of_its_first_word_in_the_table() -> None:
    tokens = TokenBatch(
        ids=[np.arange(8), np.arange(0), np.arange(2)],
        spans=[SPANS, SPANS[:0], SPANS[:2]],
        dropped=[0, 0, 0],
    )
    texts = [TEXT, "", "other"]
    found = find_token_words(texts, number_words(map(PLAIN.spell, texts)), tokens, WORDS, PLAIN)
    assert [rows.tolist() for rows in found] == [[2, 2, -1, 1, -1, 2, 2, 0], [], [-1, -1]]
    tokens = TokenBatch(
        ids=[np.arange(1)], spans=[np.array([[0, 15]], dtype=np.int32)], dropped=[0]
    )
    assert find_token_words(
        ["Fever and cough"],
        number_words([["fever", "and", "cough"]]),
        tokens,
        ("cough", "and"),
        PLAIN,
    )[0].tolist() == [1]


TEXTS = ["one two three four five six", "six", "a b c d"]
EVIDENCE_SPANS = [
    (0, "A", 0, 3),
    (0, "A", 14, 18),  # "four" lies beyond, but A has another span
    (0, "B", 14, 18),  # B has none
    (0, "C", 8, 18),  # "three four" is read in part
    (0, "D", 8, 13),  # ends with the last token read
    (0, "E", 13, 18),  # begins where that ends
    (1, "B", 0, 3),
    (2, "F", 6, 7),  # "d", a text that tiny cuts by one token
    (2, "F", 0, 7),
]


def evidence_of(*spans: tuple[int, str, int, int]) -> Evidence:
    return Evidence(
        rows=np.array([row for row, *_ in spans], dtype=np.int64),
        labels=[label for _, label, *_ in spans],
        spans=np.array([span for _, _, *span in spans], dtype=np.int64).reshape(-1, 2),
    )


def test_evidence_beyond_the_limit_is_counted(small_network: Make) -> None:
    reporter, evidence = SilentReporter(), evidence_of(*EVIDENCE_SPANS)
    tokens = tokenize(small_network(max_tokens=3), TEXTS, reporter, "train", evidence=evidence)
    assert measure_cut(tokens, evidence).evidence == CutEvidence(
        spans=9, lost=4, in_part=2, labels=7, labels_lost=2
    )
    assert (
        "tokens beyond (36.4% of all) are not read; 4 of 9 gold evidence spans lie beyond and 2 "
        "reach beyond; "
        "2 of 7 labels have no evidence in the part that is read"
    ) in reporter.warnings[0]
    none = CutEvidence(spans=0, lost=0, in_part=0, labels=0, labels_lost=0)
    assert (measure_cut(tokens, evidence_of()).evidence, measure_cut(tokens).evidence) == (
        none,
        None,
    )
    for limit, lost in ((64, 0), (59, 1)):  # windows lose nothing; a limit drops the last word
        tokens = tokenize(
            small_network(window=8, max_tokens=limit), ["word " * 60], SilentReporter(), "test"
        )
        found = measure_cut(tokens, evidence_of((0, "A", 0, 4), (0, "B", 295, 299))).evidence
        assert found == CutEvidence(spans=2, lost=lost, in_part=0, labels=2, labels_lost=lost)


def test_what_is_recorded_goes_by_split() -> None:
    counts = CutEvidence(spans=5, lost=1, in_part=2, labels=4, labels_lost=0)
    plain = {
        "documents_cut": {"train": 1.0, "test": 0.0},
        "tokens_dropped": {"train": 0.25, "test": 0.0},
    }
    cuts = {"train": Cut(documents=1.0, tokens=0.25), "test": Cut()}
    assert cut_summary(cuts) == plain
    assert cut_summary({**cuts, "train": replace(cuts["train"], evidence=counts)}) == {
        **plain,
        "evidence_cut": {"train": asdict(counts)},
    }


@pytest.mark.corpora
def test_evidence_of_real_cases(corpora: Path, tmp_path: Path) -> None:
    section, reporter = DataSection(path=str(corpora / "codiesp")), SilentReporter()
    corpus = prepare(load_files(section), section, tmp_path, reporter)
    assert not [warning for warning in reporter.warnings if "evidence" in warning]
    found = {}
    for name in corpus:
        split = corpus.split(name)
        assert split.evidence is not None
        gold = set(zip(split.evidence.rows.tolist(), split.evidence.labels, strict=True))
        assert (
            len(gold) == split.gold.nnz + split.unseen.nnz
        )  # every label of a document has a span
        tokens = TinyBackbone(TinyOptions(max_tokens=256, hidden=8, heads=1)).tokenize(split.texts)
        found[name] = measure_cut(tokens, split.evidence).evidence
    rows = pl.read_parquet(corpora / "codiesp" / "evidence.parquet")
    distinct = rows.select(
        "doc_id", "label", "start", "end"
    ).n_unique()  # annotations in several pieces share some of them
    assert sum(counts.spans for counts in found.values() if counts) == distinct == 16213
    test = found["test"]
    assert test is not None
    assert 0 < test.labels_lost < test.labels
    assert 0 < test.in_part < test.lost < test.spans


def test_statistics_agree_with_the_corpus_and_no_text_is_read(clinic: Any) -> None:
    def nothing() -> Dataset:
        raise AssertionError("no text is read")

    clinic("mig", "mig.k=5")
    corpus = open_corpus(clinic.path / "corpus", nothing)
    found = load_statistics(clinic.path / "mig", corpus)
    assert found.documents == corpus.sizes["train"]
    assert found.table.matrix.shape == (len(corpus.labels), len(found.table.words))
    assert len(found.docs_with_word) == len(found.table.words)
    assert found.docs_with_word.max() <= found.documents
    assert found.docs_with_label.tolist() == list(corpus.labels.train_counts)


ENGLISH = "the patient was seen in the clinic and had been there for a week with his wife"
GERMAN = "der Patient war eine Woche in der Klinik und ist dann mit seiner Frau nach Hause gegangen"
SPANISH = "El paciente fue ingresado en el hospital con una fiebre que no se trató."
CHINESE = "病人因发烧住院治疗。"


class AnyModel(Options):
    model: str = option(help="The model.")


class PublishedModel(Options):
    model: str = option("published", "The model.")


def spec(name: str, *languages: str, options: type[Options] = NoOptions) -> BackboneSpec:
    def load(options: Any, machine: Any) -> Any:
        raise AssertionError("nothing is loaded for this")

    return BackboneSpec(
        name=name, summary="A backbone.", load=load, languages=languages or None, options=options
    )


KNOWN = [
    spec("english", "en"),
    spec("many", "de", "en", "es"),
    spec("silent"),
    spec("two", "en", "es"),
]


def test_languages_are_found_and_compared_with_those_of_the_backbone() -> None:
    mixed = {"train": [ENGLISH, ENGLISH, GERMAN]}
    (note,) = find_languages(mixed, None)
    assert (note.level, note.what) == ("note", "languages are recognised: 67% English, 33% German")
    (warning,) = find_languages(mixed, KNOWN[0])
    assert warning.level == "warning"
    assert "the backbone english was trained on en" in warning.what
    assert warning.todo == "choose a backbone of these languages"
    (warning,) = find_languages(mixed, KNOWN[0], KNOWN)
    assert warning.todo == "choose a backbone of these languages, such as many"
    assert [finding.level for finding in find_languages(mixed, KNOWN[1])] == ["note"]
    assert list(find_languages({"train": [ENGLISH]}, KNOWN[0])) == []
    assert [finding.level for finding in find_languages({"train": [GERMAN]}, KNOWN[0])] == [
        "warning"
    ]


def test_texts_longer_than_the_window() -> None:
    class Five:
        def tokenize(self, texts: list[str]) -> Any:
            lengths = [len(text.split()) for text in texts]
            ids = [np.zeros(min(5, length), dtype=np.int32) for length in lengths]
            return TokenBatch(
                ids=ids,
                spans=[np.zeros((len(row), 2), np.int32) for row in ids],
                dropped=[max(0, n - 5) for n in lengths],
            )

    five: Any = Five()
    (found,) = find_cut_texts({"train": ["a b c", "a b c d e f g h i j"]}, five, "five")
    assert (found.count, found.level) == (1, "warning")
    assert (
        found.what
        == "documents of 2 are longer than the backbone five reads; 38% of all tokens are not read"
    )
    assert not any(
        list(find_cut_texts({"train": texts}, five, "five")) for texts in (["a b c"], [])
    )


@pytest.mark.parametrize(
    ("backbone", "texts", "options", "expected"),
    [
        (
            KNOWN[0],
            [SPANISH] * 9 + [ENGLISH],
            NoOptions(),
            "90% of the documents are in Spanish (by script and function words), which the "
            "backbone 'english' was not trained on; "
            "'many' and 'two' were: --backbone many",
        ),
        (
            KNOWN[0],
            [SPANISH] * 3 + [GERMAN] * 2,
            NoOptions(),
            "are in Spanish, 40% in German (… 'many' was: --backbone many",
        ),
        (
            KNOWN[0],
            [SPANISH] * 199 + [CHINESE],
            NoOptions(),
            "… 'many' and 'two' were: --backbone many",
        ),  # one strayed document
        (KNOWN[0], [SPANISH], PublishedModel(), "are in Spanish …"),
        (KNOWN[0], [CHINESE], NoOptions(), "… no installed backbone declares that it was"),
        (KNOWN[0], [SPANISH], PublishedModel(model="folder"), None),  # a model that the user chose
        (KNOWN[2], [SPANISH], NoOptions(), None),  # it declares no languages
        (KNOWN[0], [ENGLISH], NoOptions(), None),
        (KNOWN[0], [ENGLISH] * 19 + [SPANISH], NoOptions(), None),
        (KNOWN[0], ["12.5 mg"], NoOptions(), None),
        (KNOWN[0], [], NoOptions(), None),
    ],
)
def test_a_language_that_the_backbone_does_not_know_is_told(
    backbone: BackboneSpec, texts: list[str], options: Options, expected: str | None
) -> None:
    decoder = DecoderSpec(name="d", summary="A decoder.", build=lambda options, shape: None)  # type: ignore[arg-type,return-value]
    design, reporter = (
        Design(
            section=ModelSection(), backbone=(backbone, options), decoder=(decoder, NoOptions())
        ),
        SilentReporter(),
    )
    warn_of_languages(design.backbone, KNOWN, texts, reporter)
    if expected is None:
        assert reporter.warnings == []
        return
    [message] = reporter.warnings
    assert all(part.strip() in message for part in expected.split("…"))
    if "no installed backbone" in expected:
        warn_of_languages(design.backbone, [*KNOWN, spec("any", options=AnyModel)], texts, reporter)
        assert (
            reporter.warnings[1]
            == f"{message}: name a model with --backbone any --set model.backbone.model=…"
        )
