"""The stage `pretrain-lm` as a whole: vocabulary, language models, and what they reach beside counting alone."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from plant_awd_lstm.counts import bigram_perplexity, unigram_perplexity
from plant_awd_lstm.files import write_description, write_weights
from plant_awd_lstm.network import Encoder, LanguageModel, Sizes
from plant_awd_lstm.options import Direction, PretrainLmOptions
from plant_awd_lstm.pretraining import Place, Pretraining
from plant_awd_lstm.published import Imported, import_weights
from plant_awd_lstm.streams import IntArray
from plant_awd_lstm.vocabulary import UNKNOWN, Vocabulary, fit_vocabulary, read_documents
from plant_cli.api import Column, DataError, Reporter, Result, SplitName, StageContext, Table, UsageError
from plant_cli.kit import find_device, write_json_lines

HISTORY = "history.jsonl"
CHECKPOINTS = "checkpoints"
FEW_MATCHED = 0.1
"""Share of words with published embeddings below which there is a warning."""


@dataclass(frozen=True, kw_only=True)
class Texts:
    """The documents as rows of the vocabulary.

    Args:
        vocabulary: the words of train.
        train: tokens of each training document.
        validation: tokens of each validation document.
    """

    vocabulary: Vocabulary
    train: Sequence[IntArray]
    validation: Sequence[IntArray]

    @property
    def unknown(self) -> float:
        """Share of validation tokens that have no embedding of their own."""
        tokens = sum(map(len, self.validation))
        return sum(int((document == UNKNOWN).sum()) for document in self.validation) / max(1, tokens)


def pretrain(context: StageContext, options: PretrainLmOptions) -> Result:
    """Fit the vocabulary on train, train the language models there, and keep of each the epoch with the lowest validation perplexity.

    Raises:
        DataError: the training texts have too few words, or published weights do not fit.
        UsageError: options do not go together.
        Interrupted: the user stopped the command; a checkpoint is saved.
        TrainingError: the loss is not a number.
    """
    directions: list[Direction] = ["forward", "backward"] if options.directions == "both" else [options.directions]
    published = {name: path for name, path in (("forward", options.weights), ("backward", options.weights_backward)) if path}
    _require_words(options, published, directions)
    texts = _read(context, options)
    place = Place(
        device=_prepare_device(context),
        checkpoints=context.folder / CHECKPOINTS,
        reporter=context.reporter,
        stopping=lambda: context.stopping,
        resume=context.resume,
        seed=context.machine.seed,
    )
    sizes = Sizes(embedding=options.embedding, hidden=options.hidden, layers=options.layers)
    texts.vocabulary.save(context.folder)
    history: list[dict[str, Any]] = []
    reached: dict[str, float] = {}
    for number, direction in enumerate(directions):
        torch.manual_seed(context.machine.seed * 2 + number)
        model = LanguageModel(Encoder(len(texts.vocabulary), sizes, options))
        if direction in published:
            taken = import_weights(model, texts.vocabulary, Path(published[direction]), Path(str(options.words)))
            _tell_matched(direction, taken, context.reporter)
        training = Pretraining(
            model.to(place.device), direction, texts.train, texts.validation, options, imported=direction in published, place=place
        )
        position = training.run()
        write_weights(context.folder, direction, model.encoder, texts.vocabulary)
        history += position.history
        reached[direction] = float(position.best or 0.0)
        write_json_lines(context.folder / HISTORY, history)
    write_description(context.folder, sizes, reached)
    shutil.rmtree(place.checkpoints, ignore_errors=True)
    return _report(texts, history, reached)


def _tell_matched(direction: Direction, taken: Imported, reporter: Reporter) -> None:
    told = f"{direction}: {taken.matched:,} of {taken.words:,} words have published embeddings"
    if taken.matched < FEW_MATCHED * taken.words:
        reporter.warn(f"{told}, all others start from the mean: is --words a list of the corpus's language, in lower case?")
    else:
        reporter.note(told)


def _require_words(options: PretrainLmOptions, published: dict[str, str], directions: Sequence[str]) -> None:
    idle = sorted(set(published) - set(directions))
    if idle or bool(published) != (options.words is not None):
        raise UsageError(
            f"published weights are given for the direction {idle[0]}, which is not trained"
            if idle
            else "published weights and the words of their rows are given one without the other",
            where="pretrain-lm, options weights, weights_backward and words",
            expected="weights for the directions that are trained, and --words, the list of words that came with them",
            todo="add what is missing, or leave them out to train from scratch",
        )


def _read(context: StageContext, options: PretrainLmOptions) -> Texts:
    corpus = context.corpus()
    splits: dict[SplitName, Sequence[str]] = {name: corpus.split(name).texts for name in ("train", "validation")}
    vocabulary = fit_vocabulary(splits["train"], min_count=options.min_count, max_words=options.max_words)
    found: dict[str, list[IntArray]] = {}
    for name, texts in splits.items():
        found[name] = []
        with context.reporter.progress(f"tokenising {name}", len(texts), "documents") as task:
            for start in range(0, len(texts), 512):
                part = texts[start : start + 512]
                found[name] += read_documents(vocabulary, part)
                task.advance(len(part))
    if not any(len(document) for document in found["validation"]):
        raise DataError(
            "no validation document has a word: the perplexity of the language model cannot be measured",
            where="split validation",
            expected="documents with text",
            todo="look at the corpus with `plant data stats`",
        )
    return Texts(vocabulary=vocabulary, train=found["train"], validation=found["validation"])


def _prepare_device(context: StageContext) -> torch.device:
    device = find_device(context.machine.device)
    if device.type == "cpu" and context.machine.threads:
        torch.set_num_threads(context.machine.threads)
    if device.type == "cuda" and context.machine.precision != "fp32":
        torch.set_float32_matmul_precision("high")  # TF32
    return device


def _report(texts: Texts, history: Sequence[dict[str, Any]], reached: dict[str, float]) -> Result:
    words = len(texts.vocabulary)
    unigram = unigram_perplexity(texts.train, texts.validation, words)
    bigrams = {name: bigram_perplexity(texts.train, texts.validation, words, name) for name in ("forward", "backward") if name in reached}
    rows = [["unigram", None, None, unigram], *([f"bigram, {name}", None, None, value] for name, value in bigrams.items())]
    rows += [[f"awd-lstm, {row['direction']}", row["epoch"], row["train"], row["validation"]] for row in history]
    columns = [Column(name="model"), Column(name="epoch", kind="count"), Column(name="training perplexity", kind="exact")]
    columns.append(Column(name="validation perplexity", kind="exact"))
    kept = ", ".join(f"{name} {value:.2f}" for name, value in reached.items())
    notes = [
        f"kept: {kept}; perplexity over all tokens of validation and the end of each document, all models over the same {words:,} words",
        f"{texts.unknown:.1%} of validation tokens have no embedding of their own and count as one word",
    ]
    if min(reached.values()) >= min(unigram, *bigrams.values()):
        notes.append("the language model is no better than counting: train longer, or with more text")
    return Result(
        tables=[Table(title="Language models (validation)", columns=columns, rows=rows, notes=notes)],
        next_step="plant pretrain-attn --backbone awd-lstm",
        summary={
            **{f"perplexity {name}": value for name, value in reached.items()},
            "perplexity unigram": unigram,
            **{f"perplexity bigram {name}": value for name, value in bigrams.items()},
            "words": words,
            "unknown": texts.unknown,
        },
    )
