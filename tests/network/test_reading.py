"""Documents are read as token batches with the word of each token; what is cut off or unknown is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

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
from plant_cli.data.prepare import prepare
from plant_cli.data.store import open_corpus
from plant_cli.data.word_analysis import PLAIN
from plant_cli.data.words import number_words
from plant_cli.network.cuts import Cut, CutEvidence, cut_summary, measure_cut
from plant_cli.network.design import Design
from plant_cli.network.hardware import Hardware
from plant_cli.network.reading import OUTSIDE, DocumentWords, LiveReader, find_token_words, lengths, match_texts, sorted_batches, tokenize
from plant_cli.network.reading_checks import find_cut_texts, find_languages, load_statistics, warn_of_languages

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)


def test_tokens_do_not_depend_on_the_batch_and_what_is_cut_is_told(small_network: Callable[..., Any]) -> None:
    network = small_network(max_tokens=3)
    texts = ["one two three four five", "six", "", "a b c d"]
    reporter = SilentReporter()
    small, large = (tokenize(network, texts, reporter, "train", batch=size) for size in (1, 512))
    assert [ids.tolist() for ids in small.ids] == [ids.tolist() for ids in large.ids]
    assert lengths(small).tolist() == [3, 1, 0, 3]
    assert small.dropped == [2, 0, 0, 1]
    assert "2 of 4 documents (50.0%) are longer than 3 tokens; 3 tokens beyond (30.0% of all)" in reporter.warnings[0]
    assert measure_cut(large) == Cut(documents=0.5, tokens=0.3)


def test_documents_longer_than_a_window_are_not_cut(small_network: Callable[..., Any]) -> None:
    network, reporter = small_network(window=8, max_tokens=64), SilentReporter()
    tokens = tokenize(network, ["word " * 60, "six"], reporter, "test")
    reading = LiveReader(network, tokens, CPU).read(np.array([0, 1]))
    assert reading.mask.sum(1).tolist() == [60, 1]
    assert bool(reading.hidden[0][reading.mask[0]].abs().sum(-1).all())
    assert (measure_cut(tokens), reporter.warnings) == (Cut(), [])


def test_batches_hold_every_row_once_the_longest_first() -> None:
    batches = sorted_batches(np.array([2, 9, 4, 9, 1]), 2)
    assert [batch.tolist() for batch in batches] == [[1, 3], [2, 0], [4]]


def test_gradients_flow_through_a_live_reader_unless_the_backbone_is_frozen(small_network: Callable[..., Any]) -> None:
    network = small_network()
    reader = LiveReader(network, tokenize(network, ["a fever"], SilentReporter(), "train"), CPU)
    assert reader.read(np.array([0])).hidden.requires_grad
    network.freeze_backbone()
    assert not reader.read(np.array([0])).hidden.requires_grad


def test_what_a_backbone_leaves_in_padding_is_cleared(small_network: Callable[..., Any]) -> None:
    network = small_network()
    reader = LiveReader(network, network.backbone.tokenize(["one two three", "one"]), CPU)
    expected, encode = reader.read(np.arange(2)), network.backbone.encode

    def leave_rubbish(tokens: Any) -> Any:
        hidden, mask = encode(tokens)
        return hidden.masked_fill(~mask[..., None], float("nan")), mask

    network.backbone.encode = leave_rubbish
    torch.testing.assert_close(reader.read(np.arange(2)).hidden, expected.hidden, rtol=0, atol=0)
    assert not expected.hidden[~expected.mask].any()


def test_documents_of_all_lengths_come_in_few_shapes(small_network: Callable[..., Any]) -> None:
    network = small_network(max_tokens=64)
    tokens = tokenize(network, ["word " * length for length in range(1, 41)], SilentReporter(), "train")
    reader = LiveReader(network, tokens, CPU)
    found = [reader.read(np.array([row])) for row in range(40)]
    assert {reading.hidden.shape[1] for reading in found} == {16, 32, 48}
    assert [int(reading.mask.sum()) for reading in found] == list(range(1, 41))
    assert all(not reading.hidden[~reading.mask].any() for reading in found)


def test_words_are_laid_out_beside_the_tokens_and_padding_has_none(small_network: Callable[..., Any]) -> None:
    network = small_network(max_tokens=64)
    tokens = tokenize(network, ["fever cough", "leg"], SilentReporter(), "train")
    rows = [np.array([4, -1]), np.array([2])]
    found = LiveReader(network, tokens, CPU, rows).read(np.array([1, 0]))
    assert found.words.shape == found.mask.shape
    assert found.words[:, :3].tolist() == [[2, -1, -1], [4, -1, -1]]
    assert (found.words[~found.mask] == -1).all()
    without = LiveReader(network, tokens, CPU).read(np.array([1, 0]))
    assert (without.words == -1).all()


TEXT = "Fever and cough, fever again"
WORDS = ("again", "cough", "fever")
# tokens: "Fe" "ver" "and" "cough" "," "fe" "ver" "again"
SPANS = np.array([[0, 2], [2, 5], [6, 9], [10, 15], [15, 16], [17, 19], [19, 22], [23, 28]], dtype=np.int32)


def match(text: str, spans: Any, rows: Sequence[str]) -> DocumentWords:
    [found] = match_texts([text], number_words([PLAIN.spell(text)]), TokenBatch(ids=[spans[:, 0]], spans=[spans], dropped=[0]), rows)
    return found


def test_words_are_matched_with_the_tokens_that_spell_them() -> None:
    found = match(TEXT, SPANS, WORDS)
    assert found.vocabulary.tolist() == [2, OUTSIDE, 1, 0]  # fever, and, cough, again
    pairs = {(int(t), int(w)) for t, w in zip(found.token, found.word, strict=True)}
    assert pairs == {(0, 0), (1, 0), (5, 0), (6, 0), (2, 1), (3, 2), (7, 3)}


def test_tokens_that_hold_a_leading_blank_still_meet_their_word() -> None:
    spans = np.array([[0, 5], [5, 9], [9, 15]], dtype=np.int32)  # "Fever" " and" " cough"
    found = match("Fever and cough", spans, ["cough"])
    assert {(int(t), int(w)) for t, w in zip(found.token, found.word, strict=True)} == {(0, 0), (1, 1), (2, 2)}


def test_words_beyond_the_last_token_are_no_items() -> None:
    found = match(TEXT, SPANS[:3], ["cough", "fever"])
    assert found.vocabulary.tolist() == [1, OUTSIDE]


def test_every_token_has_the_row_of_its_word() -> None:
    tokens = TokenBatch(ids=[np.arange(8), np.arange(0), np.arange(2)], spans=[SPANS, SPANS[:0], SPANS[:2]], dropped=[0, 0, 0])
    texts = [TEXT, "", "other"]
    found = find_token_words(texts, number_words(map(PLAIN.spell, texts)), tokens, WORDS)
    assert [rows.tolist() for rows in found] == [[2, 2, -1, 1, -1, 2, 2, 0], [], [-1, -1]]


def test_of_several_words_of_a_token_the_first_in_the_table_counts() -> None:
    tokens = TokenBatch(ids=[np.arange(1)], spans=[np.array([[0, 15]], dtype=np.int32)], dropped=[0])
    assert find_token_words(["Fever and cough"], number_words([["fever", "and", "cough"]]), tokens, ("cough", "and"))[0].tolist() == [1]


def test_positions_are_items_of_their_own() -> None:
    found = match(TEXT, SPANS, WORDS).by_position()
    assert found.token.tolist() == [0, 1, 2, 3, 5, 6, 7]  # the comma spells no word
    assert found.word.tolist() == list(range(7))
    assert found.vocabulary.tolist() == [2, 2, OUTSIDE, 1, 2, 2, 0]


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


def evidence_of(spans: list[tuple[int, str, int, int]]) -> Evidence:
    return Evidence(
        rows=np.array([row for row, *_ in spans], dtype=np.int64),
        labels=[label for _, label, *_ in spans],
        spans=np.array([span for _, _, *span in spans], dtype=np.int64).reshape(-1, 2),
    )


def test_spans_and_labels_beyond_the_limit(small_network: Callable[..., Any]) -> None:
    reporter = SilentReporter()
    tokens = tokenize(small_network(max_tokens=3), TEXTS, reporter, "train", evidence=evidence_of(EVIDENCE_SPANS))
    cut = measure_cut(tokens, evidence_of(EVIDENCE_SPANS))
    assert cut.evidence == CutEvidence(spans=9, lost=4, in_part=2, labels=7, labels_lost=2)
    assert (
        "4 of 9 gold evidence spans lie beyond and 2 reach beyond; 2 of 7 labels have no evidence in the part that is read"
        in reporter.warnings[0]
    )
    assert "tokens beyond (36.4% of all) are not read; 4 of 9" in reporter.warnings[0]


def test_windows_lose_nothing(small_network: Callable[..., Any]) -> None:
    evidence = evidence_of([(0, "A", 0, 4), (0, "B", 295, 299)])
    tokens = tokenize(small_network(window=8, max_tokens=64), ["word " * 60], SilentReporter(), "test")
    assert measure_cut(tokens, evidence).evidence == CutEvidence(spans=2, lost=0, in_part=0, labels=2, labels_lost=0)
    tokens = tokenize(small_network(window=8, max_tokens=59), ["word " * 60], SilentReporter(), "test")  # the last of them is dropped
    assert measure_cut(tokens, evidence).evidence == CutEvidence(spans=2, lost=1, in_part=0, labels=2, labels_lost=1)


def test_a_document_of_which_nothing_is_read_loses_all(small_network: Callable[..., Any]) -> None:
    tokens = tokenize(small_network(max_tokens=3), ["a b c d", ""], SilentReporter(), "test", evidence=evidence_of([]))
    assert measure_cut(tokens, evidence_of([])).evidence == CutEvidence(spans=0, lost=0, in_part=0, labels=0, labels_lost=0)
    assert measure_cut(tokens).evidence is None


def test_what_is_recorded_goes_by_split(small_network: Callable[..., Any]) -> None:
    network = small_network(max_tokens=3)
    splits = {"train": ["a b c d"], "test": []}
    cuts = {name: measure_cut(tokenize(network, texts, SilentReporter(), name)) for name, texts in splits.items()}
    plain = {"documents_cut": {"train": 1.0, "test": 0.0}, "tokens_dropped": {"train": 0.25, "test": 0.0}}
    assert cut_summary(cuts) == plain
    counts = CutEvidence(spans=5, lost=1, in_part=2, labels=4, labels_lost=0)
    given = {"train": Cut(documents=1.0, tokens=0.25, evidence=counts), "test": Cut()}
    assert cut_summary(given) == {**plain, "evidence_cut": {"train": asdict(counts)}}


@pytest.mark.corpora
def test_evidence_of_real_cases(corpora: Path, tmp_path: Path) -> None:
    from plant_backbones import TinyOptions
    from plant_backbones.tiny import TinyBackbone
    from plant_datasets.table_corpora import load as load_files

    section = DataSection(path=str(corpora / "codiesp"))
    reporter = SilentReporter()
    corpus = prepare(load_files(section), section, tmp_path, reporter)
    assert not [warning for warning in reporter.warnings if "evidence" in warning]
    found = {}
    for name in corpus:
        split = corpus.split(name)
        assert split.evidence is not None
        pairs = set(zip(split.evidence.rows.tolist(), split.evidence.labels, strict=True))
        assert len(pairs) == split.gold.nnz + split.unseen.nnz  # every label of a document has a span
        tokens = TinyBackbone(TinyOptions(max_tokens=256, hidden=8, heads=1)).tokenize(split.texts)
        found[name] = measure_cut(tokens, split.evidence).evidence
    rows = pl.read_parquet(corpora / "codiesp" / "evidence.parquet")
    distinct = rows.select("doc_id", "label", "start", "end").n_unique()  # annotations in several pieces share some of them
    assert sum(counts.spans for counts in found.values() if counts) == distinct == 16213
    test = found["test"]
    assert test is not None
    assert 0 < test.labels_lost < test.labels
    assert 0 < test.in_part < test.lost < test.spans


def nothing() -> Dataset:
    raise AssertionError("no text is read")


def test_statistics_agree_with_the_corpus_and_no_text_is_read(clinic: Any) -> None:
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


SPANISH = "El paciente fue ingresado en el hospital con una fiebre que no se trató."
ENGLISH_CASE = "The patient was admitted to the hospital with a fever that was not treated."
GERMAN_CASE = "Der Patient wurde mit Fieber in das Krankenhaus aufgenommen und ist nicht bei der Arbeit."


def spec(name: str, languages: tuple[str, ...] | None) -> BackboneSpec:
    def load(options: Any, machine: Any) -> Any:
        raise AssertionError("nothing is loaded for this")

    return BackboneSpec(name=name, summary="A backbone.", load=load, languages=languages)


KNOWN = [spec("english", ("en",)), spec("many", ("de", "en", "es")), spec("silent", None), spec("two", ("en", "es"))]


def warnings(backbone: BackboneSpec, texts: list[str], options: Options | None = None, known: Sequence[BackboneSpec] = KNOWN) -> list[str]:
    decoder = DecoderSpec(name="d", summary="A decoder.", build=lambda options, shape: None)  # type: ignore[arg-type,return-value]
    design = Design(section=ModelSection(), backbone=(backbone, options or NoOptions()), decoder=(decoder, NoOptions()))
    reporter = SilentReporter()
    warn_of_languages(design, known, texts, reporter)
    return reporter.warnings


def test_another_language_is_reported_with_the_backbones_that_know_it() -> None:
    [message] = warnings(KNOWN[0], [SPANISH] * 9 + [ENGLISH_CASE])
    assert message == (
        "90% of the documents are in Spanish (by script and function words), which the backbone 'english' was not trained on; "
        "'many' and 'two' were: --backbone many"
    )


def test_several_languages_need_a_backbone_that_knows_all_of_them() -> None:
    [message] = warnings(KNOWN[0], [SPANISH] * 3 + [GERMAN_CASE] * 2)
    assert "60% of the documents are in Spanish, 40% in German (" in message
    assert message.endswith("; 'many' was: --backbone many")


def test_where_no_backbone_knows_it_the_message_says_so() -> None:
    [message] = warnings(KNOWN[0], ["病人因发烧住院治疗。"])
    assert message.endswith("; no installed backbone declares that it was")


def test_backbones_that_take_any_model_are_named_where_none_fits() -> None:
    class AnyModel(Options):
        model: str = option(help="The model.")

    generic = replace(spec("any", None), options=AnyModel)
    [message] = warnings(KNOWN[0], ["病人因发烧住院治疗。"], known=[*KNOWN, generic])
    assert message.endswith("; no installed backbone declares that it was: name a model with --backbone any --set model.backbone.model=…")


@pytest.mark.parametrize("texts", [[ENGLISH_CASE], [ENGLISH_CASE] * 19 + [SPANISH], ["12.5 mg"], []])
def test_nothing_is_said_where_the_language_fits_or_is_not_recognised(texts: list[str]) -> None:
    assert warnings(KNOWN[0], texts) == []


def test_a_backbone_that_declares_no_languages_gives_no_warning() -> None:
    assert warnings(KNOWN[2], [SPANISH]) == []


def test_a_strayed_document_does_not_rule_a_backbone_out() -> None:
    [message] = warnings(KNOWN[0], [SPANISH] * 199 + ["病人因发烧住院治疗。"])
    assert "'many' and 'two' were" in message


def test_a_model_of_the_users_own_is_not_what_the_spec_speaks_of() -> None:
    class WithModel(Options):
        model: str = option("published", "The model.")

    assert len(warnings(KNOWN[0], [SPANISH], WithModel())) == 1
    assert warnings(KNOWN[0], [SPANISH], WithModel(model="folder")) == []
