"""The house is in order: every room has its layer, a name occurs once, names say what is in a
module.
"""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
MODULES = sorted(
    path
    for folder in ("plant_cli", "plugins", "docs", "tests")
    for path in (ROOT / folder).rglob("*.py")
)
SOURCES = [path for path in MODULES if path.relative_to(ROOT).parts[0] in ("plant_cli", "plugins")]
ROOMS = {path.parent.name for path in (ROOT / "plant_cli").glob("*/__init__.py")} | {
    "main",
    "registry",
    "kit",
}
SEE_EVERYTHING = {"kit", "testing"}  # they may import every room, and no room imports them
FORBIDDEN = {"utils", "util", "helpers", "helper", "common", "misc"}
MOST_IN_THE_KIT = 60  # names
LONGEST_FILE, LONGEST_FUNCTION, DEEPEST = 880, 100, 3  # in lines of 100 columns
MOST_WAYS = 15  # through a function
MANY_WAYS = {  # where some functions still have more; the list may only shrink
    "plant_cli/commands",
    "plant_cli/evaluation",
    "plant_cli/scoring",
    "plugins/plant_backbones",
    "plugins/plant_export",
    "plugins/plant_network",
    "plugins/plant_report",
}
LOCAL_IMPORTS = 49  # the number may only shrink
COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)
RETIRED = re.compile(
    r"\b(reckon\w*|heirs?|heed\w*|knobs?|valleys?|(?-i:bearers?)|ledgers?|shelf|shelves|furnish\w*|keeping[ _]books|survival"
    r"|warned of|told (of|with))\b",
    re.IGNORECASE,
)
HOMES = {
    room: ROOT / "plant_cli" / room for room in ROOMS if (ROOT / "plant_cli" / room).is_dir()
} | {
    f"plugins/{path.parent.name}": path.parent for path in (ROOT / "plugins").glob("*/__init__.py")
}
AT_ROOT = {
    ".ci",
    ".gitignore",
    ".pre-commit-config.yaml",
    "CITATION.cff",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "constraints.txt",
    "docs",
    "plant_cli",
    "plugins",
}
AT_ROOT |= {
    "mkdocs.yml",
    "pyproject.toml",
    "recipes",
    "requirements-cpu.lock",
    "requirements-light.lock",
    "requirements.lock",
    "tests",
}
SAME_MODULES: set[str] = set()
SAME_CLASSES: set[str] = set()
SAME_FUNCTIONS = {"documents_stand_alone", "mutual_information"}  # these lists may only shrink
SAME_CONSTANTS: set[str] = set()
NAMED_BY_SPECS = {
    "run",
    "main",
    "fit",
    "load",
    "recognise",
}  # the function of a command or component that a spec names, and hooks
OWN_ROOMS = {"docs", "packaging", "benchmarks", "golden", "web", "faults"}


def shown(path: Path) -> str:
    """A path from the root, for messages."""
    return str(path.relative_to(ROOT))


def parse(path: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path.read_text("utf-8"))


def test_the_root_holds_what_belongs_there() -> None:
    """No run folder, crash file or other trace of work was committed."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("the sources are not a clone")
    assert {path.partition("/")[0] for path in listed.stdout.splitlines()} == AT_ROOT


def test_every_room_has_its_place_in_the_layers() -> None:
    contract = next(
        c for c in PYPROJECT["tool"]["importlinter"]["contracts"] if c["type"] == "layers"
    )
    placed = sorted(room for layer in contract["layers"] for room in layer.split(" | "))
    assert placed == sorted(ROOMS - SEE_EVERYTHING)


def test_no_room_sees_the_kit_the_checks_or_a_plugin() -> None:
    contracts = {c["name"]: c for c in PYPROJECT["tool"]["importlinter"]["contracts"]}
    contract = contracts["No room sees the kit, the conformance checks or a plugin"]
    assert sorted(contract["source_modules"]) == sorted(
        f"plant_cli.{room}" for room in ROOMS - SEE_EVERYTHING
    )
    plugins = {path.parent.name for path in (ROOT / "plugins").glob("*/__init__.py")}
    forbidden = {"plant_cli.kit", "plant_cli.testing", *plugins}
    assert set(contract["forbidden_modules"]) == forbidden


def test_plugins_may_import_the_contract_the_kit_and_the_checks_alone() -> None:
    contracts = {c["name"]: c for c in PYPROJECT["tool"]["importlinter"]["contracts"]}
    forbidden = contracts["Components see api, kit and testing only"]["forbidden_modules"]
    assert sorted(forbidden) == sorted(
        f"plant_cli.{room}" for room in ROOMS - {"api", "kit", "testing"}
    )


def test_names_of_the_kit_are_few_and_shared() -> None:
    """Each is used by two packages of plugins, by one and the core, or by a stranger's example:
    what one plugin uses alone is in that plugin.
    """
    kit = ROOT / "plant_cli" / "kit.py"
    rooms = {
        alias.name: node.module
        for node in parse(kit).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    users: dict[str, set[str]] = {name: set() for name in rooms}
    for path in sorted({*SOURCES, *(ROOT / "docs" / "examples").rglob("*.py")} - {kit}):
        package = shown(path).split("/")[: 2 if shown(path).startswith("plugins/") else 1]
        for node in ast.walk(parse(path)):
            match node:
                case ast.ImportFrom(module=module, names=names):
                    used = [n.name for n in names if module in ("plant_cli.kit", rooms.get(n.name))]
                case ast.Attribute(value=ast.Name(id="kit"), attr=name):
                    used = [name]
                case ast.Name(id=name) if shown(path)[:-3].replace("/", ".") == rooms.get(name):
                    used = [name]
                case _:
                    used = []
            for name in used:
                users[name].add("/".join(package))
    lonely = {
        name: found for name, found in users.items() if not {"docs"} & found and len(found) < 2
    }
    assert lonely == {}
    assert len(rooms) <= MOST_IN_THE_KIT


def test_modules_are_short() -> None:
    lengths = {shown(path): path.read_text("utf-8").count("\n") for path in MODULES}
    assert {path: lines for path, lines in lengths.items() if lines > LONGEST_FILE} == {}


def test_names_say_what_is_in_a_module() -> None:
    assert [
        shown(path) for path in MODULES if FORBIDDEN & {path.stem, *path.relative_to(ROOT).parts}
    ] == []


def test_modules_begin_with_a_sentence() -> None:
    assert [shown(path) for path in SOURCES if not ast.get_docstring(parse(path))] == []


def test_functions_are_short() -> None:
    functions = [
        (path, node)
        for path in SOURCES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef)
    ]
    lengths = {
        f"{shown(path)}:{node.lineno} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path, node in functions
    }
    assert {place: lines for place, lines in lengths.items() if lines >= LONGEST_FUNCTION} == {}


def test_imports_stand_at_the_top_of_modules() -> None:
    """Functions import only what is heavy, optional or not always there: a spec that names its
    function loads it when it runs.
    """
    functions = [
        (path, node)
        for path in SOURCES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef)
    ]
    imports = [
        (path, part)
        for path, node in functions
        for part in ast.walk(node)
        if isinstance(part, ast.Import | ast.ImportFrom)
    ]
    places = {f"{shown(path)}:{part.lineno}" for path, part in imports}
    assert len(places) <= LOCAL_IMPORTS, "\n".join(sorted(places))


def test_functions_nest_at_most_three_deep() -> None:
    """Loops, conditions, `with`, `try` and `match` within one another; an `elif` is as deep as
    its `if`.
    """
    functions = [
        (path, node)
        for path in SOURCES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef)
    ]
    depths = {
        f"{shown(path)}:{node.lineno} {node.name}": depth(node.body) for path, node in functions
    }
    assert {place: found for place, found in depths.items() if found > DEEPEST} == {}


def test_functions_decide_little() -> None:
    """Cyclomatic complexity, with `and`, `or`, comprehensions and their conditions."""
    ways = {
        f"{shown(path)}:{node.lineno} {node.name}": 1 + sum(map(count_ways, ast.walk(node)))
        for path in SOURCES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef)
    }
    many = {place: found for place, found in ways.items() if found > MOST_WAYS}
    homes = {"/".join(place.split("/")[:2]) for place in many}
    assert homes == MANY_WAYS, "\n".join(map(str, many.items()))


def count_ways(node: ast.AST) -> int:
    """How many further ways a node opens."""
    match node:
        case ast.If() | ast.IfExp() | ast.ExceptHandler() | ast.Assert() | ast.match_case():
            return 1
        case ast.For() | ast.While():
            return 1 + bool(node.orelse)
        case ast.Try():
            return bool(node.orelse)
        case ast.BoolOp():
            return len(node.values) - 1
        case ast.comprehension():
            return 1 + len(node.ifs)
    return 0


def depth(body: list[ast.stmt]) -> int:
    """How many compound statements stand within one another; functions within a function are
    counted by themselves.
    """
    return max(
        (
            1 + max(depth(part) for part in parts(node))
            for node in body
            if isinstance(node, COMPOUND)
        ),
        default=0,
    )


def parts(node: ast.stmt) -> list[list[ast.stmt]]:
    """The bodies of a compound statement; the branches of an `elif` stand beside those of its
    `if`.
    """
    other = getattr(node, "orelse", [])
    if isinstance(node, ast.If) and len(other) == 1 and isinstance(other[0], ast.If):
        return [node.body, *parts(other[0])]
    branches = [*getattr(node, "handlers", []), *getattr(node, "cases", [])]
    return [
        getattr(node, "body", []),
        other,
        getattr(node, "finalbody", []),
        *(branch.body for branch in branches),
    ]


def test_folders_of_tests_are_rooms() -> None:
    """A folder of tests is named after a room or a plugin; only those that test no room alone
    have names of their own.
    """
    folders = {
        path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")
    }
    rooms = [folder for folder in folders if folder.parts and folder.parts[0] not in OWN_ROOMS]
    places = {
        folder: ROOT / folder if folder.parts[0] == "plugins" else ROOT / "plant_cli" / folder
        for folder in rooms
    }
    assert [str(folder) for folder, place in places.items() if not place.is_dir()] == []


def test_the_name_of_a_module_occurs_once() -> None:
    names = Counter(path.stem for path in SOURCES if path.stem not in ("__init__", "__main__"))
    assert {name for name, times in names.items() if times > 1} == SAME_MODULES


def test_the_name_of_a_class_occurs_once() -> None:
    names = Counter(
        node.name for path in SOURCES for node in parse(path).body if isinstance(node, ast.ClassDef)
    )
    assert {name for name, times in names.items() if times > 1} == SAME_CLASSES


def test_the_name_of_a_public_function_occurs_once() -> None:
    names = Counter(
        node.name
        for path in SOURCES
        for node in parse(path).body
        if isinstance(node, ast.FunctionDef)
    )
    twice = {
        name for name, times in names.items() if times > 1 and not name.startswith(("_", "plant_"))
    }
    assert twice - NAMED_BY_SPECS == SAME_FUNCTIONS


def test_a_public_constant_has_one_value() -> None:
    """A name in two modules is the same thing in both; a type alias counts as a constant."""
    values: dict[str, set[str]] = {}
    for name, value in (
        pair for path in SOURCES for node in parse(path).body for pair in constants(node)
    ):
        values.setdefault(name, set()).add(ast.dump(value))
    assert {
        name
        for name, different in values.items()
        if len(different) > 1 and not name.startswith("_")
    } == SAME_CONSTANTS


def constants(node: ast.stmt) -> list[tuple[str, ast.expr]]:
    """The names that a statement assigns, with their values; `A, B = 1, 2` assigns two."""
    if isinstance(node, ast.AnnAssign) and node.value:
        return [(node.target.id, node.value)] if isinstance(node.target, ast.Name) else []
    assigned = []
    for target in node.targets if isinstance(node, ast.Assign) else []:
        several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
        pairs = (
            zip(target.elts, node.value.elts, strict=True) if several else [(target, node.value)]
        )
        assigned += [(name.id, value) for name, value in pairs if isinstance(name, ast.Name)]
    return assigned


@pytest.mark.parametrize("folder", ["README.md", "docs", "recipes", *sorted(HOMES)])
def test_texts_use_the_words_of_the_field(folder: str) -> None:
    """No docstring, help, message or page uses a word that was replaced by one that every
    reader of the field knows.
    """
    home = HOMES.get(folder, ROOT / folder)
    pages = (
        [home]
        if home.is_file()
        else [path for suffix in ("md", "yaml") for path in home.rglob(f"*.{suffix}")]
    )
    said = [
        (path, number, line)
        for path in pages
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
    ]
    said += [
        (path, line, text) for path in home.rglob("*.py") for line, text in literals(parse(path))
    ]
    assert [
        f"{shown(path)}:{line}: {found[0]}"
        for path, line, text in said
        for found in RETIRED.finditer(text)
    ] == []


def literals(module: ast.Module) -> list[tuple[int, str]]:
    """Every text in a module, with its line."""
    found = [node for node in ast.walk(module) if isinstance(node, ast.Constant)]
    return [(node.lineno, node.value) for node in found if isinstance(node.value, str)]


def test_nothing_in_the_repository_is_a_build_product() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    products = {".pyc", ".so", ".egg-info", ".whl", ".pkl"}
    assert [line for line in listed.stdout.splitlines() if Path(line).suffix in products] == []
