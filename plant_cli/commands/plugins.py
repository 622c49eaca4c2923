"""`plant plugins`: what is installed, what is broken, and which options a component has."""

from __future__ import annotations

from plant_cli.api import (
    Column,
    ComponentError,
    Components,
    NoOptions,
    PluginRecord,
    Result,
    StageContext,
    Table,
    near_names,
)
from plant_cli.api.options import option_rows
from plant_cli.api.specs import KINDS, Kind
from plant_cli.commands.command_options import PluginShowOptions


def list_plugins(context: StageContext, options: NoOptions) -> Result:
    """List every plugin, broken ones with their error."""
    records = context.request.registry.plugins
    columns = [
        Column(name=n) for n in ("plugin", "distribution", "version", "state", "components", "file")
    ]
    shown = ("name", "distribution", "version", "file", "state", "error")
    data = [
        {
            **{n: getattr(r, n) for n in shown},
            "components": [{"kind": kind, "name": name} for kind, name in r.components],
        }
        for r in records
    ]
    table = Table(
        title="Plugins",
        columns=columns,
        rows=[
            (r.name, r.distribution, r.version, r.state, _components_text(r), r.file)
            for r in records
        ],
        notes=[f"{r.name} is broken: {r.error}" for r in records if r.error],
    )
    return Result(
        tables=[table],
        data={"plugins": data},
        next_step="plant plugins show NAME explains one component",
    )


def show_component(context: StageContext, options: PluginShowOptions) -> Result:
    """Show options, source and plugin of a component."""
    registry = context.request.registry
    found = [
        (kind, spec)
        for kind in _kinds(options.kind)
        for spec in registry.specs(kind.spec)
        if spec.name == options.name
    ]
    if not found:
        raise _unknown(registry, options)
    tables, data = [], []
    for kind, spec in found:
        owner, options_of = registry.owner(kind.spec, spec.name), option_rows(spec.options)
        notes = [spec.summary, *([f"Source: {spec.source}"] if spec.source else [])]
        if owner is not None:
            notes.append(
                f"From plugin {owner.name}, distribution {owner.distribution} {owner.version}"
            )
        rows = [
            (r.name, r.type, "required" if r.required else r.default, r.rules, r.help)
            for r in options_of
        ]
        columns = [Column(name=n) for n in ("option", "type", "default", "limits", "help")]
        tables.append(
            Table(title=f"{kind.name} {spec.name}", columns=columns, rows=rows, notes=notes)
        )
        described = {
            "kind": kind.name,
            "name": spec.name,
            "summary": spec.summary,
            "source": spec.source,
        }
        data.append(
            {
                **described,
                "plugin": owner.name if owner else None,
                "options": [vars(row) for row in options_of],
            }
        )
    return Result(tables=tables, data={"components": data})


def _kinds(chosen: str | None) -> list[Kind]:
    if chosen is not None and chosen not in KINDS:
        raise ComponentError(
            f"there is no kind of component named '{chosen}'",
            where="--kind",
            expected=near_names(chosen, KINDS),
            todo="leave --kind out to look in all of them",
        )
    return [KINDS[chosen]] if chosen else list(KINDS.values())


def _unknown(registry: Components, options: PluginShowOptions) -> Exception:
    kinds = _kinds(options.kind)
    for kind in kinds:
        if registry.owner(kind.spec, options.name):  # owned twice: the registry explains by whom
            registry.find(kind.spec, options.name)
    names = [spec.name for kind in kinds for spec in registry.specs(kind.spec)]
    return ComponentError(
        f"there is no {options.kind or 'component'} named '{options.name}'",
        where="plugins show",
        expected=near_names(options.name, names),
        todo="`plant plugins` lists the components of each plugin",
    )


def _components_text(record: PluginRecord) -> str:
    by_kind: dict[str, list[str]] = {}
    for kind, name in record.components:
        by_kind.setdefault(kind, []).append(name)
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in by_kind.items())
