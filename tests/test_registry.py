"""Plugins that work, plugins that do not, and what a person is told about them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from plant_cli.api import Choice, ComponentError, LossSpec, PluginError
from plant_cli.registry import Registry

GOOD = """
from plant_cli.api import LossSpec, Options, hookimpl, option

class ThornOptions(Options):
    sharpness: float = option(0.5, "How sharp.", gt=0, was="edge")

@hookimpl
def plant_register_losses():
    return [LossSpec(name="thorn", summary="A thorn.", options=ThornOptions, stage="label", build=lambda options: None)]
"""
MISSPELT = GOOD.replace("plant_register_losses", "plant_register_loses")
UNMARKED = GOOD.replace("@hookimpl\n", "")
WRONG_KIND = GOOD.replace("plant_register_losses", "plant_register_signals")
HOOKLESS = "x = 1\n"


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A registry over modules written here; each test gets its own."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return Registry()


def _load(registry: Registry, folder: Path, **sources: str) -> None:
    for name, source in sources.items():
        (folder / f"module_{name}_{folder.name}.py").write_text(source)
    registry.load(
        [EntryPoint(name=n, value=f"module_{n}_{folder.name}", group="plant") for n in sources]
    )


def test_a_plugin_is_found_and_its_component_resolved(plugins: Registry, tmp_path: Path) -> None:
    _load(plugins, tmp_path, rose=GOOD)
    assert [(r.name, r.state, r.components) for r in plugins.plugins] == [
        ("rose", "ok", (("loss", "thorn"),))
    ]
    spec, options = plugins.resolve(LossSpec, Choice(name="thorn", options={"sharpness": 2}))
    assert (spec.name, options.model_dump()) == ("thorn", {"sharpness": 2.0})
    owner = plugins.owner(LossSpec, "thorn")
    assert owner is not None
    assert owner.file.endswith(".py")


STAGE = """
from plant_cli.api import Result, StageSpec, hookimpl

@hookimpl
def plant_register_stages():
    return [StageSpec(name="{name}", summary="A thorn.", run=lambda *_: Result(), sections=("{section}",))]
"""

ANALYSER = """
from plant_cli.api import AnalyserSpec, Options, hookimpl, option

class Given(Options):
    depth: int = option(1, "How deep.")

@hookimpl
def plant_register_analysers():
    return [AnalyserSpec(name="thorn", summary="A thorn.", options=Given, load=lambda options, language: None)]
"""

STAGE_WITH = """
from plant_cli.api import Choice, Options, Result, StageSpec, choice, hookimpl, option

class Given(Options):
    {option}

@hookimpl
def plant_register_stages():
    return [StageSpec(name="thorn", summary="A thorn.", run=lambda *_: Result(), options=Given)]
"""


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import nowhere_at_all\n", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("def broken(:\n", "SyntaxError"),
        (MISSPELT, "unknown hook plant_register_loses: did you mean 'plant_register_losses'"),
        (UNMARKED, "plant_register_losses is not marked with @hookimpl"),
        (WRONG_KIND, "plant_register_signals returned LossSpec, not SignalSpec"),
        (HOOKLESS, "no plugin hook in it"),
        (
            GOOD.replace("return [", "["),
            "plant_register_losses returned None: a list of LossSpec is expected",
        ),
        (
            GOOD.replace("return [", "return ([").replace("options: None)]", "options: None)])[0]"),
            "returned LossSpec: a list of LossSpec",
        ),
        (
            GOOD.replace("plant_register_losses()", "plant_register_losses(registry)"),
            "a hook takes no argument",
        ),
        (
            GOOD.replace("options: None)]", "options: None)] * 2"),
            "the loss 'thorn' is registered 2 times",
        ),
        ("import sys\nsys.exit('bye')\n", "SystemExit: bye"),
        (
            "class Odd(Exception):\n    def __str__(self):\n        raise ValueError\nraise Odd\n",
            "Odd: (its own message fails)",
        ),
        ("raise ValueError('one\\ntwo')\n", "ValueError: one"),
        (
            GOOD.replace('"thorn"', "3"),
            "returned a spec with the name '3': names have small letters",
        ),
        (GOOD.replace('"thorn"', '"../thorn"'), "returned a spec with the name '../thorn'"),
        (GOOD.replace('"thorn"', '"two thorns"'), "returned a spec with the name 'two thorns'"),
        (GOOD.replace('"thorn"', '"Thorn"'), "returned a spec with the name 'Thorn'"),
        (
            GOOD.replace('"thorn"', '"a_thorn"'),
            "returned a spec with the name 'a_thorn': names have small letters, digits and "
            "single dashes",
        ),
        (ANALYSER, "'thorn' has options, but a recipe cannot set options of an analyser"),
        (GOOD.replace('"A thorn."', "None"), "summary and source of 'thorn' must be text"),
        (
            GOOD.replace("options=ThornOptions", "options=dict"),
            "options of 'thorn' must be a class",
        ),
        (
            STAGE.format(name="thorn", section="nonsense"),
            "'thorn' names the section 'nonsense': there are data, model, machine",
        ),
        (STAGE.format(name="corpus", section="data"), "'corpus' is no name for a stage"),
        (
            STAGE_WITH.format(option='tag: str | None = option(None, "T.")'),
            "'thorn' has an option --tag, which means something else",
        ),
        (
            STAGE_WITH.format(option='quick: bool = option(False, "Q.", short="-q")'),
            "'thorn' has an option -q, which means",
        ),
        (
            STAGE_WITH.format(option='loss: Choice = choice("losss", "bce", "L.")'),
            "of the kind 'losss': did you mean 'loss'?",
        ),
    ],
)
def test_a_broken_plugin_is_recorded_and_harms_no_other(
    plugins: Registry, tmp_path: Path, source: str, said: str
) -> None:
    _load(plugins, tmp_path, weed=source, rose=GOOD)
    weed, rose = plugins.plugins
    assert (weed.state, rose.state) == ("broken", "ok")
    assert weed.error is not None
    assert said in weed.error
    assert weed.trace is not None
    assert [spec.name for spec in plugins.specs(LossSpec)] == ["thorn"]


def test_a_plugin_that_says_too_much_does_not_fill_the_screen(
    plugins: Registry, tmp_path: Path
) -> None:
    _load(plugins, tmp_path, weed="raise ValueError('long ' * 100_000)\n")
    with pytest.raises(ComponentError) as caught:
        plugins.find(LossSpec, "thorn")
    assert "weed (ValueError: long long" in caught.value.todo
    assert len(caught.value.todo) < 1000


def test_ctrl_c_while_a_plugin_is_loaded_ends_the_command(
    plugins: Registry, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        _load(plugins, tmp_path, weed="raise KeyboardInterrupt\n")


def test_an_unknown_name_offers_near_ones_and_names_broken_plugins(
    plugins: Registry, tmp_path: Path
) -> None:
    _load(plugins, tmp_path, rose=GOOD, weed="import nowhere_at_all\n")
    with pytest.raises(ComponentError) as caught:
        plugins.find(LossSpec, "thron")
    assert caught.value.exit_code == 5
    assert "did you mean 'thorn'" in caught.value.expected
    assert "weed" in caught.value.todo


def test_two_owners_are_an_error_only_when_the_name_is_asked_for(
    plugins: Registry, tmp_path: Path
) -> None:
    _load(
        plugins,
        tmp_path,
        rose=GOOD,
        bramble=GOOD.replace('name="thorn"', 'name="prickle"'),
        sloe=GOOD,
    )
    assert [spec.name for spec in plugins.specs(LossSpec)] == ["prickle"]
    with pytest.raises(PluginError) as caught:
        plugins.find(LossSpec, "thorn")
    assert caught.value.exit_code == 5
    assert "rose" in caught.value.where
    assert "sloe" in caught.value.where


def test_a_second_plugin_of_one_name_is_left_out(plugins: Registry, tmp_path: Path) -> None:
    _load(plugins, tmp_path, rose=GOOD)
    (tmp_path / "other_rose.py").write_text(GOOD.replace('name="thorn"', 'name="prickle"'))
    plugins.load([EntryPoint(name="rose", value="other_rose", group="plant")])
    first, second = plugins.plugins
    assert (first.state, second.state) == ("ok", "broken")
    assert "the plugin of ? is called 'rose', too" in (second.error or "")
    assert [spec.name for spec in plugins.specs(LossSpec)] == ["thorn"]


def test_wrong_component_options_name_the_option(plugins: Registry, tmp_path: Path) -> None:
    _load(plugins, tmp_path, rose=GOOD)
    with pytest.raises(ComponentError) as unknown:
        plugins.resolve(LossSpec, Choice(name="thorn", options={"sharpnes": 2}))
    assert "did you mean 'sharpness'" in unknown.value.expected
    with pytest.raises(ComponentError) as former:
        plugins.resolve(LossSpec, Choice(name="thorn", options={"edge": 2}))
    assert former.value.expected == "'sharpness', as the option is called"
    with pytest.raises(ComponentError, match="does not take sharpness = -1"):
        plugins.resolve(LossSpec, Choice(name="thorn", options={"sharpness": -1}))


def test_a_stage_may_not_have_the_folder_of_another_with_a_tag(
    plugins: Registry, tmp_path: Path
) -> None:
    _load(
        plugins,
        tmp_path,
        rose=STAGE.format(name="thorn", section="data"),
        weed=STAGE.format(name="thorn-b", section="data"),
    )
    assert [record.state for record in plugins.plugins] == ["ok", "broken"]
    assert "'thorn-b' would share a folder with 'thorn' and a tag" in (
        plugins.plugins[1].error or ""
    )


def test_what_a_plugin_prints_on_import_is_no_result(
    plugins: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _load(plugins, tmp_path, rose="print('loading roses')\n" + GOOD)
    assert capsys.readouterr() == ("", "loading roses\n")


def test_what_a_plugin_does_on_import_is_laid_to_it(
    plugins: Registry,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The current folder stays; a plugin that takes long, or during which the user interrupts,
    is named with how to leave it out.
    """
    here = os.getcwd()
    _load(plugins, tmp_path, rose="import os\nos.chdir('/')\n" + GOOD)
    assert (os.getcwd(), plugins.plugins[0].state) == (here, "ok")
    assert "the plugin 'rose' changed the current folder" in capsys.readouterr().err
    monkeypatch.setattr("plant_cli.registry.SLOW", 0.0)
    _load(plugins, tmp_path, slow="")
    assert (
        "loading the plugin 'slow' took 0 seconds (PLANT_PLUGINS=-slow leaves it out)"
        in capsys.readouterr().err
    )
    with pytest.raises(KeyboardInterrupt):
        _load(plugins, tmp_path, weed="raise KeyboardInterrupt\n")
    assert (
        "interrupted while the plugin 'weed' was loaded (PLANT_PLUGINS=-weed leaves it out)"
        in capsys.readouterr().err
    )


def test_the_innermost_plugin_of_others_is_blamed(plugins: Registry, tmp_path: Path) -> None:
    _load(
        plugins,
        tmp_path,
        rose=GOOD.replace("lambda options: None", "lambda options: options.nothing"),
    )
    spec, options = plugins.resolve(LossSpec, Choice(name="thorn"))
    with pytest.raises(AttributeError) as caught:
        spec.build(options)
    wrapped = RuntimeError("what the stage makes of it")
    wrapped.__cause__ = caught.value
    for error in (caught.value, wrapped):
        found = plugins.blame(error)
        assert found is not None
        assert (found[0].name, Path(found[1].rpartition(":")[0]).name) == (
            "rose",
            f"module_rose_{tmp_path.name}.py",
        )
    assert plugins.blame(ValueError("raised nowhere")) is None


def _plugins_with(chosen: str) -> list[str]:
    code = (
        "from plant_cli.registry import installed; print(*sorted(f'{r.name}:{r.state}' for r "
        "in installed().plugins))"
    )
    environment = {**os.environ, "PLANT_PLUGINS": chosen}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout.split()


def test_plant_plugins_chooses_what_is_loaded() -> None:
    assert _plugins_with("backbones, signals") == ["backbones:ok", "core:ok", "signals:ok"]
    everything = _plugins_with("")
    assert set(everything) - set(_plugins_with("-signals")) == {"signals:ok"}
    assert _plugins_with("signal") == ["core:ok", "signal:broken"]
