"""What scorers reach without a network, each alone and fused, on a corpus's validation split: the test split is never read.

`python -m tests.benchmarks.lexical --corpus DIR [--json FILE]` fits on train alone. Fusion weights are learned from leave-one-out
scores of train, and, for comparison, by cross-validation inside validation.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import plant_metrics.plugin
import polars as pl
from scipy.sparse import csr_array

from plant_cli.api import MetricInput
from plant_cli.api.signals import Counts
from plant_cli.corpus.words import spell
from plant_cli.evaluation.bins import measure_bins
from plant_cli.evaluation.families import choose, compute_families
from plant_cli.kit.metrics import compute_value
from plant_cli.lexical.fusion import Candidates, fit_fusion, fuse, gather_candidates
from plant_cli.lexical.grams import count_grams, number_grams
from plant_cli.lexical.neighbours import leave_out_neighbours, score_neighbours
from plant_cli.lexical.ridge import invert_kernel, leave_out_ridge, score_ridge
from plant_cli.lexical.scores import Scores, score_blocks
from plant_cli.lexical.similarity import Similarity
from plant_cli.lexical.titles import cut_passages, score_passages, score_titles
from plant_cli.lexical.vectors import count_documents, inverse_frequency, join_views, make_vectors
from plant_cli.lexical.words import leave_out_words, measure_relevance, score_words
from plant_cli.relevance.information import mutual_information

COLUMNS = ("P@1", "P@5", "PSP@1", "PSP@5", "R@50")
BINS = (("1-5", 1, 5),)
LEAD = 12  # words: about a title
PASSAGE = 24  # words
MIN_DF = 2
TAUGHT = 2000  # training documents whose leave-one-out scores teach the fusion
FOLDS = 5

Ints = npt.NDArray[np.int64]
Pair = tuple[Scores, Scores]
"""Leave-one-out scores of some training documents, and scores of validation."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """Documents of a split with their labels, csr [N, L + U]; those that no training document has stand last."""

    words: list[list[str]]
    gold: csr_array

    def cut(self, length: int) -> Part:
        """The same documents, their first words alone."""
        return Part(words=[words[:length] for words in self.words], gold=self.gold)

    def take(self, rows: Ints) -> Part:
        """Some of the documents."""
        return Part(words=[self.words[row] for row in rows], gold=csr_array(self.gold[rows]))


@dataclass(frozen=True, kw_only=True)
class Data:
    """Train, validation, title of each label of train (empty: none), training documents of each label, and the sample that teaches."""

    train: Part
    validation: Part
    titles: list[list[str]]
    train_counts: Ints
    rows: Ints

    def lead(self) -> Data:
        """The same with documents cut to their first words."""
        return replace(self, train=self.train.cut(LEAD), validation=self.validation.cut(LEAD))


def read(folder: Path) -> Data:
    """Train and validation of a corpus; its test split is not opened."""
    train, validation = (pl.read_parquet(folder / f"{split}.parquet") for split in ("train", "validation"))
    titles = dict(pl.read_parquet(folder / "labels.parquet").select("label", "title").iter_rows())
    seen = sorted({label for labels in train["labels"] for label in labels})
    labels = seen + sorted({label for labels in validation["labels"] for label in labels} - set(seen))
    numbers = {label: at for at, label in enumerate(labels)}

    def part(frame: pl.DataFrame, width: int) -> Part:
        pairs = [(row, numbers[label]) for row, given in enumerate(frame["labels"]) for label in given]
        rows, columns = np.array(pairs).T
        gold = csr_array((np.ones(len(pairs), dtype=np.int64), (rows, columns)), shape=(len(frame), width))
        gold.sort_indices()
        return Part(words=[spell(text) for text in frame["text"]], gold=gold)

    known = part(train, len(seen))
    return Data(
        train=known,
        validation=part(validation, len(labels)),
        titles=[spell(titles.get(label) or "") for label in seen],
        train_counts=np.bincount(known.gold.indices, minlength=len(labels)),
        rows=np.sort(np.random.default_rng(0).permutation(len(train))[:TAUGHT]),
    )


def count(texts: Sequence[Sequence[str]], numbers: Mapping[str, int]) -> csr_array:
    """How often each known word is in each text."""
    columns = [numbers[word] for words in texts for word in words if word in numbers]
    ends = np.cumsum([0, *(sum(word in numbers for word in words) for words in texts)])
    counts = csr_array((np.ones(len(columns)), np.array(columns, dtype=np.int32), ends), shape=(len(texts), len(numbers)))
    counts.sum_duplicates()
    return counts


def number(texts: Sequence[Sequence[str]]) -> dict[str, int]:
    """A number for each word."""
    return {word: at for at, word in enumerate(dict.fromkeys(word for words in texts for word in words))}


class GramCounts:
    """Counts of the character n-grams that some words have."""

    def __init__(self, words: Sequence[str]) -> None:
        self.numbers = number_grams(words)

    def count(self, texts: Sequence[Sequence[str]]) -> csr_array:
        """How often each n-gram is in each text."""
        words = number(texts)
        return csr_array(count(texts, words) @ count_grams(list(words), self.numbers))


def vectorise(data: Data) -> tuple[csr_array, csr_array]:
    """Vectors of words and n-grams joined, of train and validation."""
    words = number(data.train.words)
    grams = GramCounts(list(words))
    views = []
    for counted in (lambda part: count(part.words, words), lambda part: grams.count(part.words)):
        counts = counted(data.train)
        idf = inverse_frequency(len(data.train.words), count_documents(counts))
        views.append((make_vectors(counts, idf), make_vectors(counted(data.validation), idf)))
    return join_views([view[0] for view in views]), join_views([view[1] for view in views])


def positive_information(both: Ints, word: Ints, label: Ints, documents: int) -> npt.NDArray[np.float64]:
    """Mutual information of words that are more frequent with the label than without."""
    gain = mutual_information(Counts(n_docs=documents, docs_with_word=word, docs_with_label=label, docs_with_both=both))
    return np.where(both * documents > word * label, gain, 0.0)


def by_words(data: Data) -> list[Pair]:
    """Cosines with mutual information."""
    names = list(number(data.train.words))
    counts = count(data.train.words, number(data.train.words))
    kept = np.flatnonzero(count_documents(counts) >= MIN_DF)
    counts = csr_array(counts[:, kept])
    numbers = {names[column]: at for at, column in enumerate(kept)}
    vectors = make_vectors(count(data.validation.words, numbers), inverse_frequency(counts.shape[0], count_documents(counts)))
    left_out = leave_out_words(counts, data.train.gold, positive_information, data.rows, min_df=MIN_DF)
    return [(left_out, score_words(vectors, measure_relevance(counts, data.train.gold, positive_information)))]


def by_titles(data: Data) -> list[Pair]:
    """Cosines of n-grams with titles."""
    vector, names = _title_vectors(data)
    labels = np.arange(len(data.titles))
    parts = (data.train.take(data.rows), data.validation)
    left_out, given = (score_titles(vector(part.words), names, labels, len(labels)) for part in parts)
    return [(left_out, given)]


def by_passages(data: Data) -> list[Pair]:
    """Cosines of n-grams of the best passage with titles."""
    vector, names = _title_vectors(data)
    labels, found = np.arange(len(data.titles)), []
    for part in (data.train.take(data.rows), data.validation):
        cut = [cut_passages(document, PASSAGE) for document in part.words]
        owners = np.repeat(np.arange(len(cut)), [len(pieces) for pieces in cut])
        vectors = vector([piece for pieces in cut for piece in pieces])
        found.append(score_passages(vectors, owners, names, labels, (len(cut), len(labels))))
    return [(found[0], found[1])]


def _title_vectors(data: Data) -> tuple[Callable[[Sequence[Sequence[str]]], csr_array], csr_array]:
    grams = GramCounts(list(number(data.titles)))
    counts = grams.count(data.titles)
    frequency = count_documents(grams.count(data.train.words)) + count_documents(counts)
    idf = inverse_frequency(len(data.train.words) + len(data.titles), frequency)
    return lambda texts: make_vectors(grams.count(texts), idf), make_vectors(counts, idf)


def by_neighbours(data: Data) -> list[Pair]:
    """Labels of the nearest training documents."""
    return [_near(data, *_multiply(data))]


def by_similarity(data: Data) -> list[Pair]:
    """Labels of the nearest training documents, and ridge regression on the same similarities."""
    kernel, similar = _multiply(data)
    near = _near(data, kernel, similar)
    inverse, gold, rows = invert_kernel(kernel), data.train.gold, data.rows
    left_out = score_blocks(len(rows), gold.shape[1], lambda block: leave_out_ridge(inverse[rows[block]], rows[block], gold))
    return [near, (left_out, score_blocks(len(similar), gold.shape[1], lambda block: score_ridge(similar[block], inverse, gold)))]


def _multiply(data: Data) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    train, validation = vectorise(data)
    similarity = Similarity(train)
    return similarity.multiply(train), similarity.multiply(validation)


def _near(data: Data, kernel: npt.NDArray[np.float32], similar: npt.NDArray[np.float32]) -> Pair:
    gold, rows = data.train.gold, data.rows
    left_out = score_blocks(len(rows), gold.shape[1], lambda block: leave_out_neighbours(kernel[rows[block]], rows[block], gold))
    return left_out, score_blocks(len(similar), gold.shape[1], lambda block: score_neighbours(similar[block], gold))


SCORERS: dict[tuple[str, ...], Callable[[Data], list[Pair]]] = {
    ("words",): by_words,
    ("titles",): by_titles,
    ("neighbours", "linear"): by_similarity,
    ("passages",): by_passages,
    ("lead titles",): lambda data: by_titles(data.lead()),
    ("lead neighbours",): lambda data: by_neighbours(data.lead()),
}


def score_all(data: Data) -> tuple[dict[str, Pair], dict[str, float]]:
    """Every scorer by name, and the seconds of those that are computed together."""
    found: dict[str, Pair] = {}
    seconds = {}
    for names, score in SCORERS.items():
        started = time.perf_counter()
        found |= dict(zip(names, score(data), strict=True))
        seconds[", ".join(names)] = time.perf_counter() - started
    return found, seconds


def fuse_by_train(scorers: Sequence[Pair], data: Data) -> Scores:
    """Validation fused with weights from leave-one-out scores of train."""
    counts = data.train_counts[: data.train.gold.shape[1]]
    taught = gather_candidates([left_out for left_out, _ in scorers])
    fusion = fit_fusion(taught, data.train.take(data.rows).gold, counts, left_out=True)
    return fuse(fusion, gather_candidates([given for _, given in scorers]), counts)


def fuse_by_validation(scorers: Sequence[Pair], data: Data) -> Scores:
    """Validation fused with weights from the other four fifths of it."""
    labels, documents = data.train.gold.shape[1], len(data.validation.words)
    counts, gold = data.train_counts[:labels], csr_array(data.validation.gold[:, :labels])
    fold = np.random.default_rng(0).permutation(documents) % FOLDS
    candidates = gather_candidates([given for _, given in scorers])
    matrix = csr_array((documents, labels), dtype=np.float32)
    floor = np.zeros(documents, dtype=np.float32)
    for held_out in range(FOLDS):
        fused = fuse(fit_fusion(_within(candidates, fold != held_out), gold, counts, left_out=False), candidates, counts)
        inside = (fold == held_out).astype(np.float32)
        matrix = csr_array(matrix + fused.matrix.multiply(inside[:, None]))
        floor += fused.floor * inside
    matrix.sort_indices()
    return Scores(matrix=matrix, floor=floor)


def _within(candidates: Candidates, documents: npt.NDArray[np.bool_]) -> Candidates:
    kept = documents[candidates.rows]
    return Candidates(shape=candidates.shape, rows=candidates.rows[kept], labels=candidates.labels[kept], values=candidates.values[kept])


def measure(scores: Scores, data: Data) -> dict[str, float]:
    """The columns on validation, in points."""
    top = scores.rank(100)
    rows = np.repeat(np.arange(len(top)), top.shape[1])
    values = np.where(top >= 0, scores.look_up(rows, np.maximum(top, 0).ravel()).reshape(top.shape), -np.inf).astype(np.float64)
    given = MetricInput(
        top=top, scores=values, gold=data.validation.gold, train_counts=data.train_counts, train_documents=len(data.train.words)
    )
    families = [(spec, spec.options()) for spec in plant_metrics.plugin.plant_register_metrics()]
    found = choose(compute_families(families, given, COLUMNS), COLUMNS, {}) + [
        metric for part in measure_bins(given, BINS) for metric in part.metrics if metric.name.startswith("R@")
    ]
    return {value.name: 100 * compute_value(value) for value in found}


def main(arguments: Sequence[str] | None = None) -> None:
    """Score, fuse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.lexical", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="folder of train, validation and labels as Parquet")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    data = read(options.corpus)
    scorers, seconds = score_all(data)
    rows = {name: measure(given, data) for name, (_, given) in scorers.items()}
    for name, fused in FUSIONS.items():
        started = time.perf_counter()
        rows[name] = measure(fused(list(scorers.values()), data), data)
        seconds[name] = time.perf_counter() - started
    columns = list(rows["words"])
    print(f"{'':40}", *(f"{column:>10}" for column in columns))
    for name, figures in rows.items():
        print(f"{name:40}", *(f"{figures[column]:10.1f}" for column in columns))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(*(f"{name} {value:.1f} s" for name, value in seconds.items()), f"at most {peak:.2f} GB", sep=", ")
    if options.json:
        options.json.write_text(json.dumps({"figures": rows, "seconds": seconds, "peak_gb": peak}, indent=2) + "\n")


FUSIONS = {"fused, weights from train": fuse_by_train, "fused, weights from validation": fuse_by_validation}

if __name__ == "__main__":
    main()
