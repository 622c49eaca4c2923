"""Which languages and how much of each text of a corpus a network reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from plant_cli.api import Backbone, BackboneSpec, Options, Reporter, SplitName
from plant_cli.api.options import FIXED_SEED
from plant_cli.data.checks import Finding
from plant_cli.data.documents import take_texts
from plant_cli.data.languages import name_language, share_languages
from plant_cli.scoring.cuts import measure_cut, tokenize

Texts = Mapping[SplitName, Sequence[str]]
# share of the documents in other languages than the backbone was trained on that is worth a warning
MANY_FOREIGN = 0.1
FEW_RECOGNISED = (
    0.01  # share of the documents below which a language is ignored: some are recognised wrongly
)
DOCUMENTS_TOKENISED = 500  # documents of a split that are tokenised
MANY_CUT = 0.1  # share of the documents longer than the backbone reads that is worth a warning


def _foreign(
    texts: Sequence[str], backbone: BackboneSpec | None
) -> tuple[dict[str, float], dict[str, float]]:
    """Shares of the documents by recognised language, and those that the backbone was not
    trained on (None: knows all).
    """
    shares = {
        code: share
        for code, share in share_languages(texts).items()
        if code is not None and share >= FEW_RECOGNISED
    }
    known = None if backbone is None else backbone.languages
    return shares, {
        code: share for code, share in shares.items() if known is not None and code not in known
    }


def warn_of_languages(
    chosen: tuple[BackboneSpec, Options],
    known: Iterable[BackboneSpec],
    texts: Sequence[str],
    reporter: Reporter,
) -> None:
    """Warn if many documents are in languages that the backbone was not trained on, and name the
    backbones that were.

    Documents whose language is not recognised do not count. There is no warning if the backbone
    declares no languages, or if the user chose its model.
    """
    backbone, options = chosen
    field = type(options).model_fields.get("model")
    if backbone.languages is None or not (
        field is None or options.model_dump()["model"] == field.default
    ):
        return
    _, foreign = _foreign(texts, backbone)
    if sum(foreign.values()) < MANY_FOREIGN:
        return
    known = list(known)
    fitting = find_fitting(known, foreign)
    if fitting:
        remedy = (
            f"{' and '.join(map(repr, fitting))} {'was' if len(fitting) == 1 else 'were'}: "
            f"--backbone {fitting[0]}"
        )
    else:
        fields = ((spec.name, spec.options.model_fields.get("model")) for spec in known)
        takers = " or ".join(
            name for name, field in fields if field is not None and field.is_required()
        )
        any_model = (
            f": name a model with --backbone {takers} --set model.backbone.model=…"
            if takers
            else ""
        )
        remedy = f"no installed backbone declares that it was{any_model}"
    reporter.warn(
        f"{_name_shares(foreign)} (by script and function words), which the backbone "
        f"'{backbone.name}' was not trained on; {remedy}"
    )


def choose_by_language(
    backbone: BackboneSpec, known: Sequence[BackboneSpec], texts: Sequence[str]
) -> tuple[str, str] | None:
    """The backbone to take in the place of one that was not trained on the languages of many
    texts, and why; the same one where the weights of a better one are not installed. None: it
    knows them, or no backbone does.
    """
    _, foreign = _foreign(texts, backbone)
    fitting = [one for one in known if one.name in find_fitting(known, foreign)]
    if sum(foreign.values()) < MANY_FOREIGN or not fitting:
        return None
    why = f"{_name_shares(foreign)}, which the backbone '{backbone.name}' was not trained on"
    for one in fitting:
        if one.is_installed is None or one.is_installed():
            return one.name, f"{why}: the network reads with '{one.name}' (--backbone: another)"
    missing = fitting[0].name
    return backbone.name, (
        f"{why}; '{missing}' was, but its weights are not installed: "
        f"pip install 'plant-cli[{missing}]', then --backbone {missing}"
    )


def _name_shares(shares: Mapping[str, float]) -> str:
    """`90% of the documents are in Finnish, 10% in German`."""
    (first, share), *others = shares.items()
    return ", ".join(
        [
            f"{share:.0%} of the documents are in {name_language(first)}",
            *(f"{other:.0%} in {name_language(code)}" for code, other in others),
        ]
    )


def find_fitting(known: Iterable[BackboneSpec], languages: Iterable[str]) -> list[str]:
    """The names of the backbones that were trained on all of these languages."""
    wanted = set(languages)
    return [
        spec.name for spec in known if spec.languages is not None and wanted <= set(spec.languages)
    ]


def find_languages(
    texts: Texts, backbone: BackboneSpec | None, known_backbones: Sequence[BackboneSpec] = ()
) -> Iterator[Finding]:
    """Languages of the documents of each split: a note where there are several, a warning where
    a backbone does not know them.
    """
    for name, split in texts.items():
        shares, foreign = _foreign(split, backbone)
        wrong = sum(foreign.values()) >= MANY_FOREIGN
        if len(shares) < 2 and not wrong:
            continue
        fitting = find_fitting(known_backbones, foreign)
        choose = "choose a backbone of these languages" + (
            f", such as {fitting[0]}" if fitting else ""
        )
        listed = ", ".join(f"{share:.0%} {name_language(code)}" for code, share in shares.items())
        unfit = (
            f"; the backbone {backbone.name} was trained on {', '.join(backbone.languages or ())}"
            if wrong and backbone
            else ""
        )
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
        rows = np.sort(
            np.random.default_rng(FIXED_SEED).permutation(len(all_texts))[:DOCUMENTS_TOKENISED]
        )
        texts = take_texts(all_texts, rows.tolist())
        if not texts:
            continue
        cut = measure_cut(tokenize(backbone, texts))
        if cut.documents:
            yield Finding(
                what=f"documents of {len(texts):,} are longer than the backbone {name} reads; "
                f"{cut.tokens:.0%} of all tokens are not read",
                where=split,
                count=round(cut.documents * len(texts)),
                expected="texts that are read to their end",
                todo="raise model.backbone.max_tokens, or choose a backbone with a longer window",
                level="warning" if cut.documents >= MANY_CUT else "note",
            )
