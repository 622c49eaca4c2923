"""The dataset `synthetic-clinic`: codes, the wording of mentions, notes, and the corpus made of
them.
"""

from __future__ import annotations

from random import Random

import polars as pl
import pytest
from plant_formats import SyntheticClinicOptions
from plant_formats.clinic_language import (
    AFFIRMED,
    CONDITIONS,
    FILLER,
    ORGANS,
    QUALIFIERS,
    TEMPLATES,
    Code,
    abbreviate,
    choose_codes,
    misspell,
    name_drug,
    phrase,
    weigh,
)
from plant_formats.synthetic_clinic import Note, generate, write_note
from polars.testing import assert_frame_equal
from pydantic import ValidationError

from plant_cli.api import Dataset
from plant_cli.data.files import hash_strings


def test_codes_are_distinct_and_follow_the_seed() -> None:
    codes = choose_codes(200, Random(1))
    assert len({code.id for code in codes}) == 200
    assert [code.id for code in codes] == [code.id for code in choose_codes(200, Random(1))]
    assert [code.id for code in codes] != [code.id for code in choose_codes(200, Random(2))]


def test_members_of_a_family_share_organ_and_condition() -> None:
    first = choose_codes(50, Random(0))
    for code in first:
        kin = [other for other in first if other.family == code.family]
        assert {(other.organ, other.condition) for other in kin} == {(code.organ, code.condition)}
        assert code.title.startswith(code.condition.nouns[0].capitalize())


def test_the_head_is_frequent_and_the_tail_long() -> None:
    weights = weigh(300)
    assert weights == sorted(weights, reverse=True)
    assert weights[0] / weights[-1] > 50


KIDNEY_FAILURE = Code("C06.1", ORGANS[2], CONDITIONS[5], QUALIFIERS[1])


def test_a_code_has_many_wordings() -> None:
    rng = Random(0)
    wordings = {phrase(KIDNEY_FAILURE, rng) for _ in range(300)}
    assert len(wordings) > 30
    assert {
        "acute renal failure",
        "new kidney insufficiency",
        "Dalford's disease of sudden onset",
    } <= wordings


def test_initials_drug_and_title() -> None:
    assert abbreviate(KIDNEY_FAILURE) == "ARF"
    assert name_drug(KIDNEY_FAILURE) == "nefropril"
    assert KIDNEY_FAILURE.title == "Failure of kidney, acute"


def test_slips_are_rare_and_touch_only_longer_words() -> None:
    rng = Random(0)
    assert all(misspell("heart", rng) == "heart" for _ in range(1000))
    slips = [
        word for word in (misspell("stenosis", rng) for _ in range(5000)) if word != "stenosis"
    ]
    assert 100 < len(slips) < 300
    assert all(word[0] == "s" and 7 <= len(word) <= 9 for word in slips)


def test_a_mention_keeps_its_place() -> None:
    note = Note()
    note.head("Findings")
    note.add("Nothing else.", Random(0))
    note.add("{m} is seen.", Random(0), "renal failure", "C06.0")
    assert note.text == "Findings\nNothing else. Renal failure is seen. "
    assert [note.text[span.start : span.end] for span in note.spans] == ["Renal failure"]


def test_only_the_own_labels_have_spans_and_each_has_one() -> None:
    rng = Random(1)
    codes = choose_codes(60, rng)
    for _ in range(50):
        own, others = codes[:4], codes[10:14]
        spans = write_note(own, others, rng).spans
        assert {span.label for span in spans} == {code.id for code in own}


def test_every_section_of_a_template_can_be_filled() -> None:
    kinds = {section.kind for sections in TEMPLATES.values() for section in sections}
    assert kinds == set(FILLER)
    assert set(AFFIRMED) <= kinds
    assert all("{m}" in pattern for patterns in AFFIRMED.values() for pattern in patterns)


@pytest.fixture(scope="module")
def clinic() -> Dataset:
    return generate(documents=400, labels=120, seed=3)


def documents(dataset: Dataset) -> pl.DataFrame:
    return pl.concat([frame.collect() for frame in dataset.splits.values()])


def test_splits_ids_and_columns(clinic: Dataset) -> None:
    assert {name: frame.collect().height for name, frame in clinic.splits.items()} == {
        "train": 300,
        "validation": 40,
        "test": 60,
    }
    frame = documents(clinic)
    assert frame.schema == {"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}
    assert frame["doc_id"].n_unique() == 400
    assert frame["text"].n_unique() == 400
    assert frame["labels"].list.len().min() > 0
    assert (frame["labels"].list.n_unique() == frame["labels"].list.len()).all()


def test_equal_seeds_give_equal_corpora_over_releases(clinic: Dataset) -> None:
    again = generate(documents=400, labels=120, seed=3)
    assert_frame_equal(documents(clinic), documents(again))
    assert (
        documents(generate(documents=400, labels=120, seed=4))["text"][0]
        != documents(again)["text"][0]
    )
    assert (
        hash_strings(documents(generate(documents=10, labels=5, seed=0))["text"])[:12]
        == "f708c88a0785"
    )


def test_every_code_is_used_and_the_table_names_it(clinic: Dataset) -> None:
    table = clinic.labels.collect()
    used = documents(clinic)["labels"].explode().unique().sort()
    assert used.to_list() == table["label"].to_list()
    assert table.height == 120
    assert table["label"].str.contains(r"^[A-V]\d\d\.\d$").all()
    assert (table["parents"].list.first() == table["label"].str.head(3)).all()
    assert table["title"].n_unique() == 120


def test_the_evidence_is_exact_and_complete(clinic: Dataset) -> None:
    evidence = clinic.evidence.collect()
    frame = documents(clinic)
    texts = dict(frame.select("doc_id", "text").iter_rows())
    for doc_id, _, start, end, text in evidence.iter_rows():
        assert texts[doc_id][start:end] == text
        assert text.strip() == text != ""
        assert not texts[doc_id][start - 1 : start].isalnum()
        assert not texts[doc_id][end : end + 1].isalnum()
    gold = frame.select("doc_id", label="labels").explode("label")
    assert_frame_equal(gold, evidence.select("doc_id", "label").unique(), check_row_order=False)


def test_the_frequencies_have_a_long_tail(clinic: Dataset) -> None:
    counts = (
        clinic.splits["train"]
        .collect()["labels"]
        .explode()
        .value_counts()["count"]
        .sort(descending=True)
    )
    assert counts[:12].sum() > 0.35 * counts.sum()
    assert (counts <= 5).sum() > 0.3 * 120


def test_related_codes_share_words_and_notes_deny_and_inherit(clinic: Dataset) -> None:
    families = clinic.labels.collect()["parents"].list.first().value_counts()["count"]
    assert families.max() >= 3
    text = "\n".join(documents(clinic)["text"])
    assert all(cue in text for cue in ("No evidence of", "was ruled out", "Mother had", "Denies"))


def test_the_largest_corpus_has_three_thousand_codes() -> None:
    dataset = generate(documents=3000, labels=3000, seed=0)
    assert dataset.labels.collect()["label"].n_unique() == 3000
    assert documents(dataset)["labels"].explode().n_unique() == 3000


def test_fewer_documents_than_labels_is_allowed() -> None:
    assert documents(generate(documents=20, labels=50, seed=0)).height == 20


def test_more_labels_than_there_are_is_refused() -> None:
    with pytest.raises(ValidationError):
        SyntheticClinicOptions(labels=3001)


@pytest.mark.slow
def test_a_linear_model_on_bags_of_words_stays_below_the_ceiling() -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    svm = pytest.importorskip("sklearn.svm")
    np = pytest.importorskip("numpy")
    dataset = generate(documents=2000, labels=300, seed=0)
    train, test = (dataset.splits[name].collect() for name in ("train", "test"))
    vectorizer = text.TfidfVectorizer(sublinear_tf=True, min_df=2)
    seen, asked = vectorizer.fit_transform(train["text"]), vectorizer.transform(test["text"])
    labels = train["labels"].explode().unique().sort().to_list()
    gold = [[label in own for own in train["labels"].to_list()] for label in labels]
    scores = np.stack(
        [svm.LinearSVC().fit(seen, has).decision_function(asked) for has in gold], axis=1
    )
    best = np.argsort(-scores, axis=1)[:, :5]
    hits = [
        [labels[i] in own for i in row]
        for row, own in zip(best, test["labels"].to_list(), strict=True)
    ]
    ceiling = np.minimum(test["labels"].list.len().to_numpy(), 5).mean() / 5
    first, five = np.mean([row[0] for row in hits]), np.mean(hits)
    assert 0.5 < first < 0.85
    assert 0.4 * ceiling < five < 0.75 * ceiling
