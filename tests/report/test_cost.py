"""The cost of every stage, as its record has it."""

from dataclasses import replace

from plant_cli.report.sections import count_operations, draw_seconds, tabulate_cost, write_cost


def test_rows_are_the_records(systems):
    record = (
        systems[0]
        .stages["finetune"]
        .model_copy(
            update={
                "seconds": 12.345,
                "summary": {
                    "parameters": 1000,
                    "trained_parameters": 10,
                    "operations_per_document": 2e6,
                    "epochs": 3,
                    "peak_memory_gb": 1.5,
                },
            }
        )
    )
    system = replace(systems[0], stages={**systems[0].stages, "finetune": record})
    table = tabulate_cost(system)
    assert table.rows[0][:6] == ["finetune", 12.3, 1.5, 1000, 10, 216e6]
    assert count_operations(system, record) == 2e6 * 3 * 36
    assert [row[0] for row in table.rows] == ["finetune", "predict", "eval"]
    seconds = draw_seconds([system]).series[0]
    assert (seconds.x[0], seconds.y[0]) == (0, 12.345)
    assert list(draw_seconds([system]).x.ticks) == ["finetune", "predict", "eval"]
    assert list(write_cost([system]).missing) == []


def test_what_was_not_recorded_is_said(systems):
    section = write_cost(systems)
    assert "`plant finetune --force` records them" in section.missing[0]
    assert section.tables[1].rows[0][3:6] == [None, None, None]
