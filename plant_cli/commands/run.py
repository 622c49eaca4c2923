"""`plant run RECIPE`: run all steps of an experiment and skip those that have not changed."""

from __future__ import annotations

from dataclasses import replace

from plant_cli.api import BackboneSpec, Request, Result, StageContext
from plant_cli.api.options import ModelSection
from plant_cli.runs.recipe_options import RunOptions
from plant_cli.runs.recipe_runs import make_request, report_recipe
from plant_cli.runs.recipes import load_recipe, merge_layers, parse_command
from plant_cli.runs.runner import RequestRunner
from plant_cli.scoring.reading_checks import choose_by_language


def run(context: StageContext, options: RunOptions) -> Result:
    """Run the steps of a recipe in order."""
    request, why = read_by_language(context, make_request(context.request, options))
    if why is not None:
        context.reporter.note(why)
    return report_recipe(context.runner, request)


def read_by_language(context: StageContext, request: Request) -> tuple[Request, str | None]:
    """The request with an encoder that knows the language of the texts, and why; unchanged where
    the recipe or the user names a backbone, and where the usual one knows the language.
    """
    given = parse_command(request.sets, request.flags)
    recipe = merge_layers(load_recipe(str(request.recipe)), given)
    named = recipe.find(("model", "backbone"))
    known = context.components(BackboneSpec)
    usual = [spec for spec in known if spec.name == ModelSection().backbone.name]
    if recipe.find(("pretrain-attn",)) is None or named is not None or not usual:
        return request, None
    corpus = RequestRunner(request).read_corpus()  # with the columns that were found
    chosen = choose_by_language(usual[0], known, corpus.split("train").texts)
    if chosen is None:
        return request, None
    name, why = chosen
    flags = {**request.flags, "model": {**request.flags.get("model", {}), "backbone": name}}
    return replace(request, flags=flags), why
