"""The presets train two steps of each stage on a small network, and hold the values of their
sources.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from builders import read_stage, run_at
from plant_backbones.profile import CausalOptions
from plant_formats.synthetic_clinic import generate
from round_trips import write_format
from safetensors.torch import load_file
from transformers import MistralConfig

from plant_cli.api import Request, SilentReporter
from plant_cli.data.files import read_json
from plant_cli.registry import installed
from plant_cli.runs.recipes import load_recipe, shipped_recipes
from plant_cli.runs.runner import print_config
from plant_cli.training.training_options import FinetuneOptions

CLINIC = (
    "machine.precision=fp32",
    "machine.device=cpu",
    "data.dataset={name: synthetic-clinic, documents: 60, labels: 12, seed: 3}",
)
TINY = (
    *CLINIC,
    "model.backbone=tiny",
    *(f"model.backbone.{size}" for size in ("hidden=16", "heads=2", "layers=1", "buckets=512")),
    "finetune.epochs=1",
    "finetune.batch=24",
)
RANKED = tuple(
    f"pretrain-attn.{setting}" for setting in ("epochs=6", "batch=8", "rate_attention=0.1")
)  # enough to learn the words' order
SMALL = {
    "laat": ("model.decoder.lstm=8", "model.decoder.inner=8"),
    "caml": ("model.decoder.filters=16",),
}


def require_ranking(figures: dict[str, Any]) -> None:
    """Stage 1 orders words better than chance, on validation."""
    name = next(name for name in figures if name.startswith("nDCG"))
    assert figures[name] > figures[f"random {name}"] + 0.05, figures


@pytest.mark.parametrize("preset", ["caml", "laat", "plm-icd", "plm-ca"])
@pytest.mark.parametrize("init", ["random", "planted"])
def test_a_preset_trains_two_steps(preset: str, init: str, tmp_path: Path) -> None:
    sets = (*TINY, *RANKED, *SMALL.get(preset, ()), f"finetune.init={init}")
    if init == "planted":
        run_at(tmp_path / "run", "mig", *sets, recipe=preset)
        require_ranking(run_at(tmp_path / "run", "pretrain-attn", *sets, recipe=preset).summary)
    result = run_at(tmp_path / "run", "finetune", *sets, recipe=preset)
    record = read_stage(tmp_path / "run", "finetune")
    assert record["sections"]["model"]["decoder"]["name"] == preset
    assert record["options"]["loss"]["name"] == "bce"
    assert 0 <= result.summary["MAP"] <= 1
    assert result.summary["scorers"] == [], "a published system has no scorers"


def test_two_levels_are_the_parents_of_the_table_from_planting_to_predictions(
    tmp_path: Path,
) -> None:
    sets = (
        *TINY,
        *RANKED,
        "model.decoder={name: joint-laat, lstm: 8, inner: 8, context: 4}",
        "finetune.init=planted",
    )
    run, result = tmp_path / "run", {}
    for stage in ("mig", "pretrain-attn", "finetune", "predict"):
        result[stage] = run_at(run, stage, *sets, recipe="laat")
    require_ranking(result["pretrain-attn"].summary)
    parents = pl.read_parquet(run / "corpus" / "labels.parquet")["parents"]
    shared = load_file(run / "finetune" / "model.safetensors")["to_context.weight"]
    assert tuple(shared.shape) == (4, parents.list.first().n_unique())
    assert parents.list.first().n_unique() < len(parents)
    scores = pl.read_parquet(run / "predict" / "predictions.parquet")["scores"].explode()
    assert scores.is_between(0, 1).all()


RATES = ("rate_attention", "rate_boost", "rate_head", "rate_backbone")
PLANTLESS = {
    "init": "random",
    "head": "random",
    "scorers": [],
    "loss.name": "bce",
    "unfreeze": "all",
}
PUBLISHED: dict[str, dict[str, dict[str, Any]]] = {
    "caml": {  # Mullenbach et al. 2018, the 50 most frequent codes
        "model": {
            "decoder.name": "caml",
            "decoder.filters": 50,
            "decoder.width": 10,
            "decoder.dropout": 0.2,
            "backbone.max_tokens": 2500,
        },
        "finetune": PLANTLESS
        | dict.fromkeys(RATES, 1e-4)
        | {
            "batch": 16,
            "epochs": 200,
            "patience": 10,
            "monitor": "P@5",
            "weight_decay": 0.0,
            "warmup": 0.0,
        },
    },
    "laat": {  # Vu et al. 2020
        "model": {
            "decoder.name": "laat",
            "decoder.lstm": 512,
            "decoder.inner": 512,
            "decoder.dropout": 0.3,
            "backbone.max_tokens": 4000,
        },
        "finetune": PLANTLESS
        | dict.fromkeys(RATES, 1e-3)
        | {"batch": 8, "epochs": 50, "patience": 6, "warmup": 0.0},
    },
    "plm-icd": {  # Huang et al. 2022
        "model": {
            "decoder.name": "plm-icd",
            "backbone.window": 128,
            "backbone.overlap": 0,
            "backbone.max_tokens": 3072,
        },
        "finetune": PLANTLESS
        | dict.fromkeys(RATES, 5e-5)
        | {"batch": 8, "epochs": 20, "weight_decay": 0.0, "warmup": 0.02},
    },
    "plm-ca": {  # Edin et al. 2024
        "model": {
            "decoder.name": "plm-ca",
            "backbone.window": 128,
            "backbone.overlap": 0,
            "backbone.max_tokens": 6000,
        },
        "finetune": PLANTLESS
        | dict.fromkeys(RATES, 5e-5)
        | {
            "batch": 16,
            "epochs": 20,
            "monitor": "MAP",
            "weight_decay": 0.0,
            "warmup": 0.02,
            "clip": 1.0,
        },
    },
    "paper-v1": {  # the paper, and its code where the paper is silent
        "pretrain-lm": {"embedding": 400, "hidden": 1152, "layers": 3, "window": 72},
        "mig": {"sign": "any", "norm": "none", "signal.name": "mig"},
        "pretrain-attn": {
            "loss.name": "lambda",
            "loss.sigma": 0.5,
            "loss.k": 15,
            "ndcg_k": 15,
            "contrast": -1,
            "labels_per_document": -1,
        },
        "model": {
            **{
                f"backbone.{name}": value
                for name, value in {"name": "awd-lstm", "window": 72, "max_tokens": None}.items()
            },
            **{
                f"decoder.{part}": True
                for part in ("learned", "static", "differentiable", "boost", "state")
            },
            **{
                f"decoder.{name}": value
                for name, value in {
                    "name": "planted-l2r",
                    "static_k": 5,
                    "static_rows": "raw",
                }.items()
            },
            **{
                f"decoder.{name}": value
                for name, value in {"combine": "sum", "ranker": "network", "window": 72}.items()
            },
        },
        "finetune": {
            "init": "planted",
            "head": "random",
            "scorers": [],
            "loss.name": "bce",
            "unfreeze": "gradual",
            "batch": 16,
            "rate_head": 1e-2,
            "rate_attention": 5e-3,
            "attention_factor": 1.0,
            "layer_rates": "harmonic",
        },
    },
}
CASES = [(preset, section) for preset, sections in PUBLISHED.items() for section in sections]


@pytest.mark.parametrize(("preset", "section"), CASES)
def test_a_preset_keeps_the_published_values(preset: str, section: str, tmp_path: Path) -> None:
    stage = "finetune" if section == "model" else section
    request = Request(
        registry=installed(), run_path=tmp_path / "run", recipe=preset, sets=("data.path=corpus",)
    )
    shown = yaml.safe_load(print_config(request, stage))[section]
    nested = {
        f"{key}.{name}": found
        for key, value in shown.items()
        if isinstance(value, dict)
        for name, found in value.items()
    }
    wanted = PUBLISHED[preset][section]
    assert {name: {**shown, **nested}.get(name, "lacking") for name in wanted} == wanted


SETS = (
    *CLINIC,
    "data.dataset.documents=80",
    "model.backbone={name: tiny, hidden: 16, heads: 2, layers: 1, buckets: 512}",
    "model.decoder.pool=8",
)
TWO_STEPS = {
    "epochs": 1,
    "batch": 32,
    "micro_batch": 32,
}  # of the 64 documents that are not held out
CAUSAL = {"num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 512}
FIRST_VERSION = (
    "model.backbone={name: awd-lstm, window: 72, max_tokens: 144}",
    *("model.decoder.ranker_size=8", "model.decoder.ranker_hidden=8"),
    *(
        f"pretrain-lm.{setting}"
        for setting in ("embedding=16", "hidden=24", "layers=2", "epochs=1", "directions=forward")
    ),
)


class Preset:
    """Runs stages of a preset in one run folder."""

    def __init__(self, name: str, folder: Path, sets: Sequence[str] = SETS) -> None:
        self.name, self.path, self.sets, self.reporter = name, folder / name, sets, SilentReporter()

    def run(self, stage: str, *sets: str) -> Any:
        more = [
            f"{stage}.{key}={value}"
            for key, value in TWO_STEPS.items()
            if stage in ("pretrain-attn", "finetune")
        ]
        return run_at(
            self.path, stage, *self.sets, *more, *sets, recipe=self.name, reporter=self.reporter
        )


@pytest.fixture(params=["paper", "authors-code", "trained"])
def preset(request: pytest.FixtureRequest, tmp_path: Path) -> Preset:
    return Preset(request.param, tmp_path)


def test_a_preset_of_ours_trains_two_steps_of_both_stages_and_is_judged(preset: Preset) -> None:
    for stage in ("mig", "pretrain-attn", "finetune", "predict", "eval"):
        preset.run(stage)
    for stage in ("pretrain-attn", "finetune"):
        options = read_stage(preset.path, stage)["options"]
        asked = {
            key: value
            for key, value in load_recipe(preset.name).values[stage].items()
            if not isinstance(value, dict)
        }
        asked |= {
            key: {"name": value}
            for key, value in asked.items()
            if isinstance(options[key], dict) and isinstance(value, str)
        }
        if asked.pop("scorers", None) is not None:
            assert options["scorers"] == [], "a published system has no scorers beside the network"
        assert {key: options[key] for key in asked} == {
            **asked,
            **{key: value for key, value in TWO_STEPS.items() if key in asked},
        }
    if preset.name == "paper":
        assert options["monitor"] == "macro-F1" == options["tune"]
    assert (
        0
        <= read_json(preset.path / "eval" / "metrics.json", "the metrics")["metrics"]["P@5"][
            "value"
        ]
        <= 1
    )


def test_the_first_version_trains_two_steps_of_both_stages(tmp_path: Path) -> None:
    run = Preset(
        "paper-v1",
        tmp_path,
        [*(setting for setting in SETS if not setting.startswith("model.")), *FIRST_VERSION],
    )
    for stage in ("pretrain-lm", "mig", "pretrain-attn", "finetune"):
        result = run.run(stage)
    record = read_stage(run.path, "finetune")
    assert record["sections"]["model"]["decoder"]["name"] == "planted-l2r"
    assert (record["options"]["scorers"], record["options"]["head"]) == ([], "random")
    assert 0 <= result.summary["P@5"] <= 1


def test_the_paper_trains_two_steps_on_a_causal_model_in_four_bits_with_adapters(
    small_model: Callable[..., Path], tmp_path: Path
) -> None:
    folder = small_model(MistralConfig, **CAUSAL)
    named = f"model.backbone={{name: mistral, model: '{folder}', max_tokens: 48}}"
    run = Preset(
        "paper", tmp_path, [*(setting for setting in SETS if "backbone" not in setting), named]
    )
    run.run("mig", "mig.min_df=1")
    for stage in ("pretrain-attn", "finetune"):
        run.run(stage)
        assert (run.path / stage / "adapter" / "adapter_model.safetensors").exists(), (
            "what is trained of the backbone is the adapter"
        )
    assert (
        read_stage(run.path, "finetune")["sections"]["model"]["backbone"]["quantization"] == "nf4"
    )


@pytest.mark.parametrize("name", ["paper", "authors-code", "paper-v1"])
def test_a_literal_preset_counts_words_as_they_stand(name: str) -> None:
    assert load_recipe(name).values["data"]["analyser"] == "none"


@pytest.mark.parametrize("stage", ["pretrain-attn", "finetune"])
def test_what_is_published_stands_in_the_preset_and_not_in_a_default(stage: str) -> None:
    paper, code = (load_recipe(name).values for name in ("paper", "authors-code"))
    published = {
        "batch": 32,
        "weight_decay": 0.01,
        "clip": 1.0,
        "warmup": 0,
        "epochs": 10,
        "patience": 2,
    }
    assert {key: paper[stage][key] for key in published} == published
    assert paper["model"]["label_queries"] == "random"
    assert code[stage]["batch"] == 8
    assert code["pretrain-attn"]["loss"]["gain"] == "linear"


def test_what_leaks_needs_a_flag_and_marks_every_figure(tmp_path: Path) -> None:
    run = Preset("authors-code", tmp_path)
    for stage in ("mig", "pretrain-attn", "finetune"):
        run.run(stage, "mig.allow_leakage=true")
    shown = run.run("eval")
    assert read_json(run.path / "eval" / "metrics.json", "the metrics")["leakage"] is True
    assert any("LEAKAGE" in note for table in shown.tables for note in table.notes)
    run.run("significance", "significance.systems=[finetune, predict]")
    for words in ("test documents are also counted", "'predict' saw validation and test documents"):
        assert any(words in warning for warning in run.reporter.warnings)


def test_the_paper_reads_its_large_models_in_four_bits_with_adapters() -> None:
    """P2, appendix A: rank 16, alpha 32, dropout 0.05, NF4; the defaults of every causal
    backbone, which the preset leaves as they are.
    """
    options = CausalOptions(model="any")
    found = (
        options.adapter,
        options.lora_rank,
        options.lora_alpha,
        options.lora_dropout,
        options.quantization,
    )
    assert found == ("lora", 16, 32, 0.05, "nf4")
    assert "backbone" not in load_recipe("paper").values["model"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the recipe `attribution`: all combinations, scorers alone and the
    control, two steps each.
    """
    path = tmp_path_factory.mktemp("attribution") / "run"
    few = (
        "pretrain-attn.epochs=1",
        "eval.bootstrap=20",
        "significance.bootstrap=20",
        "significance.permutations=20",
    )
    run_at(path, "run", *TINY, *few, flags={"run": {"recipe": "attribution"}})
    return path


def test_every_system_is_measured_and_compared(run: Path) -> None:
    systems = read_stage(run, "significance")["options"]["systems"]
    assert len(systems) == 2**3 + 2
    assert {path.parent.name for path in run.glob("finetune*/model.safetensors")} == {*systems} - {
        "finetune-scorers"
    }
    assert {path.parent.name for path in run.glob("eval*/metrics.json")} == {
        name.replace("finetune", "eval") for name in systems
    }
    assert read_stage(run, "significance")["status"] == "done"


def test_the_cells_are_all_combinations_of_attention_prototypes_and_scorers(run: Path) -> None:
    systems = read_stage(run, "significance")["options"]["systems"]
    options = [
        FinetuneOptions(**read_stage(run, name)["options"])
        for name in systems
        if name not in ("finetune-control", "finetune-scorers")
    ]
    cells = {(given.init, given.plants_tables, len(given.chosen_scorers)) for given in options}
    assert cells == set(product(("planted", "random"), (True, False), (0, 4)))


def test_the_control_starts_from_attention_to_random_words(run: Path) -> None:
    """And from nothing else that is random."""
    assert read_stage(run, "mig-control")["options"]["signal"]["name"] == "random"
    planted, control = (
        set(read_stage(run, name)["inputs"]) for name in ("pretrain-attn", "pretrain-attn-control")
    )
    assert ("mig" in planted, "mig-control" in control, "mig" in control) == (True, True, False)
    inputs = set(read_stage(run, "finetune-control")["inputs"])
    assert "pretrain-attn-control" in inputs
    assert "pretrain-attn" not in inputs


def shipped(kind: str) -> list[Any]:
    """Recipes of a folder, but for presets to extend; those after the first are slow."""
    names = [
        name
        for name in shipped_recipes()
        if name.startswith(f"{kind}/") and "to extend" not in load_recipe(name).summary
    ]
    return [
        pytest.param(name, marks=[pytest.mark.slow] if number else [])
        for number, name in enumerate(names)
    ]


@pytest.mark.parametrize("name", shipped("paper"))
def test_a_recipe_of_the_paper_can_be_tried_out(name: str, tmp_path: Path) -> None:
    flags = {"run": {"recipe": name, "smoke": True}}
    done = run_at(
        tmp_path / "run",
        "run",
        *CLINIC,
        *(value for value in TINY if value.startswith("model.")),
        flags=flags,
    ).data
    for stage in [stage for stage in done if stage.startswith(("pretrain-attn", "finetune"))]:
        record = read_stage(tmp_path / "run", stage)
        assert record["options"]["batch"] == 8
        wanted = 0 if stage == "pretrain-attn-regression-alone" else 1
        assert record["options"]["epochs"] == wanted
        assert record["sections"]["data"]["documents"] == 16
    assert "significance" in done


@pytest.mark.parametrize("name", ["eurlex-4k", "wiki10-31k"])
def test_a_published_corpus_is_compared_where_its_files_are(name: str, tmp_path: Path) -> None:
    """Made-up files in the form of the download."""
    texts = generate(documents=60, labels=12, seed=3)
    (tmp_path / name).mkdir()
    write_format("pecos", texts, tmp_path / name)
    done = run_at(
        tmp_path / "run",
        "run",
        *(value for value in TINY if value.startswith(("model.", "machine."))),
        f"data.path={tmp_path / name}",
        flags={"run": {"recipe": f"paper/{name}", "smoke": True}},
    ).data
    assert {"finetune", "finetune-uniform", "finetune-pooled", "significance"} <= set(done)
    record = read_stage(tmp_path / "run", "finetune-uniform")
    assert record["sections"]["data"]["dataset"]["name"] == name
    assert record["options"]["init"] == "random"
