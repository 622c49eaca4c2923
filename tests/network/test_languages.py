"""A corpus in a language that the backbone was not trained on is reported, with a backbone that was."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from plant_cli.api import BackboneSpec, DecoderSpec, ModelSection, NoOptions, Options, SilentReporter, option
from plant_cli.network.design import Design
from plant_cli.network.reading_checks import warn_of_languages

SPANISH = "El paciente fue ingresado en el hospital con una fiebre que no se trató."
ENGLISH = "The patient was admitted to the hospital with a fever that was not treated."
GERMAN = "Der Patient wurde mit Fieber in das Krankenhaus aufgenommen und ist nicht bei der Arbeit."


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
    [message] = warnings(KNOWN[0], [SPANISH] * 9 + [ENGLISH])
    assert message == (
        "90% of the documents are in Spanish (by script and function words), which the backbone 'english' was not trained on; "
        "'many' and 'two' were: --backbone many"
    )


def test_several_languages_need_a_backbone_that_knows_all_of_them() -> None:
    [message] = warnings(KNOWN[0], [SPANISH] * 3 + [GERMAN] * 2)
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


@pytest.mark.parametrize("texts", [[ENGLISH], [ENGLISH] * 19 + [SPANISH], ["12.5 mg"], []])
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
