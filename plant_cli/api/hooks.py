"""The hooks, one for each kind of component. A plugin is a module with functions of these
names, marked with `@hookimpl`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType

import pluggy

from plant_cli.api.components import Spec
from plant_cli.api.specs import KINDS, Kind

ENTRY_POINT_GROUP = "plant"
hookspec = pluggy.HookspecMarker(ENTRY_POINT_GROUP)
hookimpl = pluggy.HookimplMarker(ENTRY_POINT_GROUP)


def _declare(kind: Kind) -> Callable[[], Sequence[Spec]]:
    def hook() -> Sequence[Spec]:
        return ()

    hook.__name__ = hook.__qualname__ = kind.hook
    hook.__doc__ = kind.summary
    return hookspec(hook)


HOOKS: dict[str, Kind] = {kind.hook: kind for kind in KINDS.values()}
HOOK_SPECS = ModuleType("plant_hooks", "What pluggy's manager is given: a function for each hook.")
vars(HOOK_SPECS).update({name: _declare(kind) for name, kind in HOOKS.items()})
