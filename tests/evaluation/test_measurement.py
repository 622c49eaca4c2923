"""Systems measured and compared outside a command: the same figures as from the metrics themselves."""

import pytest

from plant_cli.api import SilentReporter, UsageError
from plant_cli.evaluation.comparison import compare_systems
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.counters import compute_value
from plant_cli.evaluation.measurement import Measure, keep_shared, measure_system
from plant_cli.evaluation.systems import file_system


@pytest.fixture
def measure(families):
    return lambda wanted=(): Measure(families=families, convention=CONVENTIONS["plant"], wanted=wanted, memory=10**6)


def test_default_metrics_are_those_that_there_are(gold, save, good, measure):
    found = measure_system(file_system(save(good)), gold, measure(), SilentReporter())
    names = [metric.name for metric in found.metrics]
    assert "P@5" in names
    assert "R@10[1-5]" in names
    assert "macro-AUC" not in names  # needs every score
    chosen = measure_system(file_system(save(good)), gold, measure(["P@1"]), SilentReporter())
    assert [(m.name, compute_value(m)) for m in chosen.metrics] == [("P@1", pytest.approx(0.75))]
    with pytest.raises(UsageError, match="no metric named"):
        measure_system(file_system(save(good)), gold, measure(["P@x"]), SilentReporter())


def test_equal_seeds_compare_equally(gold, save, good, bad, measure, families):
    systems = keep_shared(
        [
            (name, [measure_system(file_system(save(given, f"{name}.parquet")), gold, measure(["P@1"]), SilentReporter())])
            for name, given in (("a", good), ("b", bad))
        ]
    )
    options = {"replicates": 50, "permutations": 99, "level": 0.95, "seed": 3, "reporter": SilentReporter()}
    [first], [second] = (compare_systems(systems, families, **options) for _ in range(2))
    assert first == second
    assert first["difference"] == pytest.approx(0.75)
