"""Whether the documents are in a language that the backbone was trained on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plant_cli.api import BackboneSpec, Options, Reporter
from plant_cli.corpus.languages import name_language, share_languages
from plant_cli.model.design import Design

FOREIGN = 0.1  # share of the documents in other languages than the backbone was trained on that is worth a warning
STRAY = 0.01  # share of the documents below which a language is ignored: some are recognised wrongly


def warn_of_languages(design: Design, known: Iterable[BackboneSpec], texts: Sequence[str], reporter: Reporter) -> None:
    """Warn if many documents are in languages that the backbone was not trained on, and name the backbones that were.

    Documents whose language is not recognised do not count. There is no warning if the backbone declares no languages, or if the user
    chose its model.

    Args:
        design: names the backbone that will read.
        known: all backbones that are installed.
        texts: the documents.
        reporter: gets the warning.
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
