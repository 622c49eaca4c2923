"""Plugins that misbehave: sources of modules put together from what strangers get wrong."""

from __future__ import annotations

from hypothesis import strategies as st

from plant_cli.api.hooks import HOOKS
from tests.faults.fuzzing.inputs import words

START = (
    "from plant_cli.api import *\nfrom plant_cli.api import hookimpl\n",
    "import plant_cli.api as api\nfrom plant_cli.api import hookimpl, BackboneSpec, NoOptions, "
    "Options, option\n",
    "",
)
AT_IMPORT = (
    "",
    "raise ValueError('no')",
    "raise SystemExit(0)",
    "import sys; sys.exit('bye')",
    "raise ImportError",
    "raise RecursionError",
    "raise MemoryError",
    "raise KeyError",
    "raise GeneratorExit",
    "1 / 0",
    "import missing_module_of_a_stranger",
    "def __getattr__(name): raise RuntimeError(name)",
    "__file__ = None",
    "__name__ = 3",
    "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
    "class B(BaseException): pass\nraise B('of its own')",
    "raise Exception('\\x1b[31m' * 3)",
    "raise Exception('long ' * 100000)",
    "this is no python",
    "\0",
)
SPECS = (
    "BackboneSpec(name={name!r}, summary='s', options=NoOptions, load=lambda *a: None)",
    "BackboneSpec(name={name!r}, summary='s', load=None)",
    "BackboneSpec(name={name!r})",
    "BackboneSpec(name=3, summary=4, load=5)",
    "StageSpec(name={name!r}, summary='s', options=NoOptions, run=lambda c, o: None, writes=True)",
    "DatasetSpec(name={name!r}, summary='s', load=lambda d, o: None)",
    "LossSpec(name={name!r}, summary='s')",
    "type('S', (), {{'name': {name!r}}})()",
    "None",
    "3",
    "'text'",
)
RETURNS = (
    "return [{specs}]",
    "return ({specs},)",
    "return {specs}",
    "return None",
    "return 3",
    "return 'text'",
    "return {{'a': 1}}",
    "yield {specs}",
    "raise ValueError('in the hook')",
    "raise SystemExit(3)",
    "import sys; sys.exit()",
    "return (spec for spec in [{specs}, 1 / 0])",
    "class L(list):\n        def __iter__(self): raise OSError('iteration')\n    return L()",
)
NAMES = st.sampled_from(
    (
        "tiny",
        "mine",
        "a b",
        "../x",
        "",
        "Ä",
        "x" * 2000,
        "\x1b[31m",
        "mig",
        "\n",
        "-x",
        "hf-encoder",
    )
)


@st.composite
def modules(draw: st.DrawFn) -> bytes:
    """The source of a module that may be anything from a good plugin to no Python at all."""
    if not draw(st.integers(0, 19)):
        return draw(st.binary(max_size=60))
    lines = [
        draw(st.sampled_from(START)),
        draw(st.sampled_from(AT_IMPORT)) if not draw(st.integers(0, 3)) else "",
    ]
    for _ in range(draw(st.integers(0, 3))):
        hook = draw(
            st.sampled_from(
                (
                    *HOOKS,
                    "plant_register_backbones",
                    "plant_register_backbone",
                    "plant_other",
                    "other",
                )
            )
        )
        specs = draw(st.sampled_from(SPECS)).format(name=draw(NAMES))
        mark = draw(
            st.sampled_from(
                (
                    "@hookimpl",
                    "@hookimpl",
                    "@hookimpl",
                    "@hookimpl(wrapper=True)",
                    "@hookimpl(trylast=3)",
                    "",
                )
            )
        )
        arguments = draw(st.sampled_from(("", "", "", "context", "*a", "a=1", "self, b")))
        lines.append(
            f"{mark}\ndef {hook}({arguments}):\n    "
            f"{draw(st.sampled_from(RETURNS)).format(specs=specs)}"
        )
    if not draw(st.integers(0, 9)):
        lines.append(f"{draw(st.sampled_from(tuple(HOOKS)))} = {draw(words)!r}")
    return "\n".join(lines).encode("utf-8", "surrogatepass")
