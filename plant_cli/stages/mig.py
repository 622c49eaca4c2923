"""The stage `plant mig`: which words tell of which label, from the training documents alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import model_validator

from plant_cli.api import (
    Choice,
    Column,
    Corpus,
    DataError,
    Interrupted,
    Options,
    Result,
    SignalSpec,
    StageContext,
    StageSpec,
    Table,
    choice,
    option,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from plant_cli.relevance.kept import KeptWords
    from plant_cli.relevance.terms import Terms

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
SHOWN_WORDS = 8


class MigOptions(Options):
    """Options of `mig`."""

    k: int = option(1000, "Words kept for each label, at most.", ge=1)
    min_df: int = option(2, "Words in fewer training documents than this are left out.", ge=1)
    sign: Literal["positive", "any"] = option(
        "positive", "positive: only words that come more often with the label than without it; any: also words whose absence tells."
    )
    norm: Literal["label-max", "global-max", "none", "rank", "jaccard"] = option(
        "label-max", "How values become relevance in [0, 1]; none clips, jaccard needs the score mig."
    )
    score: Choice = choice("signal", "mig", "The signal that says how strongly a word tells of a label.")
    label_text_weight: float = option(0.0, "Relevance added to the words of a label's title, rarest word most; 0: none.", ge=0, le=1)
    memory: str = option("2GB", "Memory for the blocks of labels under way, such as 500MB.", pattern=r"^\d+(\.\d+)?(KB|MB|GB|TB)$")
    jobs: int | None = option(None, "Threads (default: --threads, else all cores).", ge=1)

    @model_validator(mode="after")
    def _jaccard_is_for_mig(self) -> MigOptions:
        if self.norm == "jaccard" and self.score.name != "mig":
            raise ValueError(f"norm jaccard divides by the joint entropy: it needs score mig, not {self.score.name}")
        return self


def run(context: StageContext, options: MigOptions) -> Result:
    """Count, score and keep the best words of every label; write `mig.parquet`, `words.parquet` and `labels.parquet`."""
    from plant_cli.relevance.store import write_relevance

    corpus = context.corpus()
    terms = _count(context, corpus, options.min_df)
    kept = _keep(context, corpus, terms, options)
    kept, relevance = _weigh(context, corpus, terms, kept, options)
    write_relevance(context.folder, kept, relevance, terms, corpus.labels)
    return _describe(corpus, terms, kept)


def _count(context: StageContext, corpus: Corpus, min_df: int) -> Terms:
    from plant_cli.corpus.words import words
    from plant_cli.relevance.terms import count_terms

    texts = corpus.split("train").texts
    with context.reporter.progress("counting words", len(texts), "documents") as task:

        def read() -> Iterator[list[str]]:
            for text in texts:
                yield [word for word, _, _ in words(text)]
                task.advance()
                _stop_if_asked(context)

        terms = count_terms(read(), min_df)
    if not terms.words:
        raise DataError(
            f"no word occurs in at least {min_df} training documents",
            where=f"the {len(texts)} training documents",
            expected="texts of words made of letters, in any script, that share some of them",
            todo="look at the corpus with `plant data stats`, or lower --min-df",
        )
    return terms


def _keep(context: StageContext, corpus: Corpus, terms: Terms, options: MigOptions) -> KeptWords:
    from plant_cli.relevance.engine import Selection, keep_words

    signal, signal_options = context.component("signal", options.score)
    assert isinstance(signal, SignalSpec)
    selection = Selection(
        k=options.k,
        sign=options.sign,
        memory=int(float(options.memory[:-2]) * UNITS[options.memory[-2:]]),
        jobs=options.jobs or context.machine.threads or os.cpu_count() or 1,
    )
    with context.reporter.progress(f"scoring words ({signal.name})", len(corpus.labels), "labels") as task:

        def advance(labels: int) -> None:
            task.advance(labels)
            _stop_if_asked(context)

        return keep_words(terms, corpus.split("train").gold, signal, signal_options, selection, advance)


def _weigh(
    context: StageContext, corpus: Corpus, terms: Terms, kept: KeptWords, options: MigOptions
) -> tuple[KeptWords, npt.NDArray[np.float64]]:
    """Relevance in [0, 1] from the raw values and, if asked for, from the label titles."""
    import numpy as np

    from plant_cli.corpus.words import words
    from plant_cli.relevance.normalise import normalise
    from plant_cli.relevance.prior import add_title_words

    labels, n_docs = corpus.labels, terms.occurrences.shape[0]
    relevance = normalise(
        kept,
        options.norm,
        n_docs=n_docs,
        docs_with_word=terms.docs_with_word,
        docs_with_label=np.asarray(labels.train_counts, dtype=np.int64),
    )
    if not options.label_text_weight:
        return kept, relevance
    if not any(labels.titles):
        context.reporter.warn("no label has a title: --label-text-weight changes nothing (give titles with --titles FILE)")
    places = {word: i for i, word in enumerate(terms.words)}
    named = [sorted({places[word] for word, _, _ in words(title or "") if word in places}) for title in labels.titles]
    return add_title_words(kept, relevance, named, weight=options.label_text_weight, n_docs=n_docs, docs_with_word=terms.docs_with_word)


def _stop_if_asked(context: StageContext) -> None:
    if context.stopping:
        raise Interrupted(
            "stopped before relevance was complete",
            where=str(context.folder),
            expected="a few more seconds of work",
            todo="run `plant mig` again; it starts afresh",
        )


def _describe(corpus: Corpus, terms: Terms, kept: KeptWords) -> Result:
    import numpy as np

    lengths = np.diff(kept.offsets)
    figures = {
        "labels": len(corpus.labels),
        "labels without words": int((lengths == 0).sum()),
        "documents": int(terms.occurrences.shape[0]),
        "words": len(terms.words),
        "kept": len(kept.words),
        "median per label": int(np.median(lengths)),
    }
    size = Table(title="Relevance", columns=[Column(name=name, kind="count") for name in figures], rows=[list(figures.values())])
    return Result(tables=[size, _sample(corpus, terms, kept)], next_step="plant pretrain-attn", summary=figures)


def _sample(corpus: Corpus, terms: Terms, kept: KeptWords) -> Table:
    """The best words of a rare, a middling and a frequent label, so that a person sees whether they make sense."""
    labels = corpus.labels
    by_count = sorted((i for i in range(len(labels)) if kept.offsets[i] < kept.offsets[i + 1]), key=lambda i: labels.train_counts[i])
    chosen: Sequence[int] = list(dict.fromkeys(by_count[place] for place in (0, len(by_count) // 2, -1))) if by_count else []
    rows = []
    for i in chosen:
        first = kept.words[kept.offsets[i] : kept.offsets[i + 1]][:SHOWN_WORDS]
        rows.append([labels.ids[i], labels.titles[i], int(labels.train_counts[i]), ", ".join(terms.words[w] for w in first)])
    columns = [Column(name="label"), Column(name="title"), Column(name="documents", kind="count"), Column(name="best words")]
    return Table(
        title="Words that tell of a rare, a middling and a frequent label",
        columns=columns,
        rows=rows,
        notes=["`plant mig show LABEL` shows any label; `plant mig edit LABEL` corrects it"],
    )


SPECS = (
    StageSpec(
        name="mig",
        summary="Find the words that tell of each label (exact mutual information gain, training documents only).",
        options=MigOptions,
        source="PLANT, equation 1",
        run=run,
        sections=("data", "machine"),
        examples=("plant mig --k 1000 data.parquet", "plant mig corpus.csv --text-column abstract --labels-column subjects"),
    ),
)
