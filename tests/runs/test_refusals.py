from __future__ import annotations

import pytest

from plant_cli.api import UsageError
from plant_cli.data.files import read_json


def refuse(laboratory, name, tag=None, **request):
    with pytest.raises(UsageError) as caught:
        laboratory.run(name, tag, **request)
    return caught.value


def test_a_stage_that_another_one_needed_says_so_and_where_its_files_are(laboratory):
    laboratory.run("gamma")
    error = refuse(laboratory, "alpha")
    assert error.what == "the stage 'alpha' is finished, since 'gamma' needed it"
    assert error.where == f"{laboratory.path / 'alpha'}, which holds alpha.txt"


def test_a_stage_that_was_asked_for_by_itself_was_made_by_nobody_else(laboratory):
    laboratory.run("alpha")
    laboratory.run("gamma")
    assert refuse(laboratory, "alpha").what == "the stage 'alpha' is finished"


def test_other_options_lead_to_a_tag_first(laboratory):
    laboratory.run("alpha")
    todo = refuse(laboratory, "alpha", options={"k": 5}).todo
    assert todo == "repeat the command with --tag NAME to keep both, or with --force to replace it"


def test_changed_inputs_lead_to_a_replacement_first(laboratory):
    laboratory.run("alpha")
    laboratory.run("beta")
    laboratory.run("alpha", options={"k": 5}, force=True)
    assert refuse(laboratory, "beta").todo == "repeat the command with --force to replace it, or with --tag NAME to keep both"


def test_a_step_of_a_recipe_is_not_offered_a_tag(laboratory, recipe):
    laboratory.run("alpha")
    assert refuse(laboratory, "run", options={"recipe": str(recipe)}).todo == "repeat the command with --force to replace it"


def test_another_split_leads_to_the_predictions_of_validation_that_are_there(clinic):
    clinic("finetune", "finetune.network=false", "finetune.scorers=[words]")
    clinic("eval", "eval.bootstrap=0")
    with pytest.raises(UsageError, match="the stage 'predict' is finished") as caught:
        clinic("eval", "eval.bootstrap=0", "eval.split=validation", tag="validation")
    kept = clinic.path / "finetune" / "validation.parquet"
    assert f"plant eval --split validation --predictions {kept} --tag validation" in caught.value.todo
    clinic("eval", "eval.bootstrap=0", "eval.split=validation", f"eval.predictions={kept}", tag="validation")
    assert read_json(clinic.path / "eval-validation" / "stage.json", "the record")["status"] == "done"
