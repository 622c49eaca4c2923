"""Checks of a corpus against a backbone: the languages that it was trained on, and how much of the texts it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from plant_cli.api import Backbone, BackboneSpec, SplitName
from plant_cli.corpus.checks import Finding
from plant_cli.corpus.languages import name_language, share_languages
from plant_cli.corpus.split_texts import take_texts
from plant_cli.model.languages import FOREIGN, STRAY, find_fitting

Texts = Mapping[SplitName, Sequence[str]]

SAMPLE = 500  # documents of a split that are tokenised
CUT = 0.1  # share of the documents longer than the backbone reads that is worth a warning


def find_languages(texts: Texts, backbone: BackboneSpec | None, known_backbones: Sequence[BackboneSpec] = ()) -> Iterator[Finding]:
    """Languages of the documents of each split: a note where there are several, a warning where a backbone does not know them.

    Args:
        texts: of each split.
        backbone: which is to read them; None if it is not known yet.
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
    """How many documents are longer than a backbone reads, by a sample of each split.

    Args:
        splits: their texts.
        backbone: tokenises them.
        name: of the backbone.
    """
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
