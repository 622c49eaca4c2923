"""Which words and languages of a corpus a network reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from plant_cli.api import Backbone, BackboneSpec, Corpus, Options, Reporter, SplitName
from plant_cli.data.checks import Finding
from plant_cli.data.documents import take_texts
from plant_cli.data.languages import name_language, share_languages
from plant_cli.network.design import Design
from plant_cli.relevance.relevance_table import RelevanceTable, count_documents, load_relevance, read_label_index, read_vocabulary


@dataclass(frozen=True, kw_only=True)
class WordStatistics:
    """What is known of words and labels from train."""

    table: RelevanceTable  # relevance of words for labels
    docs_with_word: npt.NDArray[np.int64]  # training documents with each word [V]
    docs_with_label: npt.NDArray[np.int64]  # training documents with each label [L]
    documents: int  # training documents N


def load_statistics(folder: Path, corpus: Corpus) -> WordStatistics:
    """Read the relevance of a run once, with the counts that go with it.

    Raises:
        ArtefactError: a file is missing or damaged, or was made for other labels.
    """
    return WordStatistics(
        table=load_relevance(folder, corpus.labels.hash),
        docs_with_word=read_vocabulary(folder)["docs_with_word"].to_numpy(),
        docs_with_label=read_label_index(folder)["docs_with_label"].to_numpy(),
        documents=count_documents(folder) or corpus.sizes["train"],
    )


FOREIGN = 0.1  # share of the documents in other languages than the backbone was trained on that is worth a warning
STRAY = 0.01  # share of the documents below which a language is ignored: some are recognised wrongly


def warn_of_languages(design: Design, known: Iterable[BackboneSpec], texts: Sequence[str], reporter: Reporter) -> None:
    """Warn if many documents are in languages that the backbone was not trained on, and name the backbones that were.

    Documents whose language is not recognised do not count. There is no warning if the backbone declares no languages, or if the user
    chose its model.
    """
    backbone, options = design.backbone
    if backbone.languages is None or not _has_default_model(options):
        return
    shares = share_languages(texts)
    foreign = {code: share for code, share in shares.items() if code is not None and code not in backbone.languages and share >= STRAY}
    if sum(foreign.values()) < FOREIGN:
        return
    found = [
        f"{share:.0%}{'' if rank else ' of the documents are'} in {name_language(code)}"
        for rank, (code, share) in enumerate(foreign.items())
    ]
    known = list(known)
    fitting = find_fitting(known, foreign)
    remedy = (
        f"{' and '.join(repr(name) for name in fitting)} {'was' if len(fitting) == 1 else 'were'}: --backbone {fitting[0]}"
        if fitting
        else f"no installed backbone declares that it was{_name_open(known)}"
    )
    reporter.warn(f"{', '.join(found)} (by script and function words), which the backbone '{backbone.name}' was not trained on; {remedy}")


def find_fitting(known: Iterable[BackboneSpec], languages: Iterable[str]) -> list[str]:
    """The names of the backbones that were trained on all of these languages."""
    wanted = set(languages)
    return [spec.name for spec in known if spec.languages is not None and wanted <= set(spec.languages)]


def _name_open(known: Iterable[BackboneSpec]) -> str:
    """How to name a model of one's own: by the backbones that have none by default."""
    fields = ((spec.name, spec.options.model_fields.get("model")) for spec in known)
    takers = [name for name, field in fields if field is not None and field.is_required()]
    return f": name a model with --backbone {' or '.join(takers)} --set model.backbone.model=…" if takers else ""


def _has_default_model(options: Options) -> bool:
    field = type(options).model_fields.get("model")
    return field is None or options.model_dump()["model"] == field.default


Texts = Mapping[SplitName, Sequence[str]]

SAMPLE = 500  # documents of a split that are tokenised
CUT = 0.1  # share of the documents longer than the backbone reads that is worth a warning


def find_languages(texts: Texts, backbone: BackboneSpec | None, known_backbones: Sequence[BackboneSpec] = ()) -> Iterator[Finding]:
    """Languages of the documents of each split: a note where there are several, a warning where a backbone does not know them.

    Args:
        known_backbones: those among which one that fits is looked for.
    """
    for name, split in texts.items():
        shares = {code: share for code, share in share_languages(split).items() if code is not None and share >= STRAY}
        known = None if backbone is None else backbone.languages
        foreign = {code: share for code, share in shares.items() if known is not None and code not in known}
        wrong = sum(foreign.values()) >= FOREIGN
        if len(shares) < 2 and not wrong:
            continue
        fitting = find_fitting(known_backbones, foreign)
        choose = "choose a backbone of these languages" + (f", such as {fitting[0]}" if fitting else "")
        listed = ", ".join(f"{share:.0%} {name_language(code)}" for code, share in shares.items())
        unfit = f"; the backbone {backbone.name} was trained on {', '.join(known or ())}" if wrong and backbone is not None else ""
        yield Finding(
            what=f"languages are recognised: {listed}{unfit}",
            where=name,
            count=len(shares),
            expected="documents in languages that the backbone was trained on",
            todo=choose if wrong else "nothing, if the backbone knows them all",
            level="warning" if wrong else "note",
        )


def find_cut_texts(splits: Texts, backbone: Backbone, name: str) -> Iterator[Finding]:
    """How many documents are longer than a backbone reads, by a sample of each split."""
    for split, all_texts in splits.items():
        rows = np.sort(np.random.default_rng(0).permutation(len(all_texts))[:SAMPLE])
        texts = take_texts(all_texts, rows.tolist())
        if not texts:
            continue
        tokens = backbone.tokenize(texts)
        dropped, kept = np.array(tokens.dropped), np.array([len(ids) for ids in tokens.ids])
        share = float((dropped > 0).mean())
        if share:
            lost = dropped.sum() / max(1, dropped.sum() + kept.sum())
            yield Finding(
                what=f"documents of {len(texts):,} are longer than the backbone {name} reads; {lost:.0%} of all tokens are not read",
                where=split,
                count=int((dropped > 0).sum()),
                expected="texts that are read whole",
                todo="raise model.backbone.max_tokens, or choose a backbone with a longer window",
                level="warning" if share >= CUT else "note",
            )
