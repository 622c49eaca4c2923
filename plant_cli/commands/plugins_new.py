"""`plant plugins new KIND NAME`: a small package with one working component, to be installed
and then changed.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import plant_cli
from plant_cli.api import Result, StageContext, UsageError
from plant_cli.api.specs import KINDS
from plant_cli.commands.command_options import PluginNewOptions
from plant_cli.data.files import replacing_folder, require_free

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_FIRST_NAME = re.compile(r'Spec\(\s*name="([^"]+)"')
_PROJECT = """[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "plant-{name}"
version = "0.1.0"
description = "A {kind} for plant"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["plant-cli"]

[project.entry-points.plant]
{name} = "{module}"

[tool.hatch.build.targets.wheel]
only-include = ["{module}.py"]
"""
_READ_ME = """# plant-{name}

A {kind} for plant. `{module}.py` works as it is: change it, and keep what it returns.

    pip install -e .
    plant plugins show {name}
    pytest --pyargs plant_cli.testing --plant-plugin {name}

The last line runs the published checks (`pip install pytest`).
"""


def new_plugin(context: StageContext, options: PluginNewOptions) -> Result:
    """Write the folder of a package whose component is the example of its kind under another
    name.
    """
    values = {
        "kind": options.kind,
        "name": options.name,
        "module": f"plant_{options.name.replace('-', '_')}",
    }
    well_formed = _NAME.fullmatch(options.name)
    if not well_formed or find_spec(values["module"]):
        raise UsageError(
            f"'{options.name}' cannot name a component"
            + (f": the module {values['module']} is there already" if well_formed else ""),
            where="plant plugins new",
            expected="small letters, digits and single dashes, such as word-bag",
            todo="choose another name",
        )
    folder = Path(options.output or f"plant-{options.name}")
    require_free(folder, force=context.force, folder=True)
    shipped, source = (
        Path(__file__).parent / "examples",
        Path(plant_cli.__file__).parents[1] / "docs/examples/plant-example/plant_example",
    )
    example = ((shipped if shipped.is_dir() else source) / f"{options.kind}.py").read_text("utf-8")
    (known, *_) = _FIRST_NAME.findall(example)
    with replacing_folder(folder) as partial:
        files = {
            f"{values['module']}.py": re.sub(
                rf'(?<="){known}(?=[" ])|(?<=plant ){known}(?= )', options.name, example
            ),
            "pyproject.toml": _PROJECT.format(**values),
            "README.md": _READ_ME.format(**values),
        }
        for name, text in files.items():
            (partial / name).write_text(text, encoding="utf-8")
    return Result(
        data={"folder": str(folder), "files": sorted(files)},
        next_step=f"pip install -e {folder}, then plant plugins show {options.name}; "
        f"{KINDS[options.kind].plural}: docs/plugins.md",
    )
