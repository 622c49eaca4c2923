"""Whether the documents are in a language that the backbone was trained on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plant_cli.api import BackboneSpec, Options, Reporter
from plant_cli.corpus.languages import name_language, share_languages
from plant_cli.model.design import Design

FOREIGN = 0.1  # share of the documents in languages that the backbone does not state from which a warning is due
STRAY = 0.01  # share of the documents below which a language is left out: some are told wrongly


def warn_of_languages(design: Design, known: Iterable[BackboneSpec], texts: Sequence[str], reporter: Reporter) -> None:
    """Warn if many of the documents are in languages that the backbone does not state, and say which backbone states them.

    Documents whose language cannot be told count for neither side. A backbone is not judged that states no languages, or that reads a
    model which the user named.

    Args:
        design: names the backbone that will read.
        known: all backbones that are installed.
        texts: the documents.
        reporter: told of it.
    """
    backbone, options = design.backbone
    if backbone.languages is None or not _has_default_model(options):
        return
    shares = share_languages(texts)
    foreign = {code: share for code, share in shares.items() if code is not None and code not in backbone.languages and share >= STRAY}
    if sum(foreign.values()) < FOREIGN:
        return
    found = ", ".join(f"{share:.0%} in {name_language(code)}" for code, share in foreign.items())
    fitting = [spec.name for spec in known if spec.languages is not None and foreign.keys() <= set(spec.languages)]
    remedy = (
        f"{' and '.join(repr(name) for name in fitting)} {'was' if len(fitting) == 1 else 'were'} (--backbone {fitting[0]})"
        if fitting
        else "no installed backbone states to be (--backbone hf-encoder --set model.backbone.model=… takes any model)"
    )
    reporter.warn(
        f"of the documents, {found} (told by script and function words): the backbone '{backbone.name}' was not trained on "
        f"{'this language' if len(foreign) == 1 else 'these languages'}; {remedy}"
    )


def _has_default_model(options: Options) -> bool:
    field = type(options).model_fields.get("model")
    return field is None or options.model_dump()["model"] == field.default
