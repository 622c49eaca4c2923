"""The signals that are registered, and what each says of itself."""

from plant_signals import plant_register_signals


def test_the_signals_and_their_declarations() -> None:
    specs = {spec.name: spec for spec in plant_register_signals()}
    assert specs.keys() == {"mig", "pmi", "npmi", "chi2", "tf", "random", "jaccard"}
    assert {name for name, spec in specs.items() if spec.signed} == {"pmi", "npmi", "tf", "random"}
    assert {name for name, spec in specs.items() if spec.quasi_convex} == {"mig", "pmi", "npmi", "chi2"}
    assert [name for name, spec in specs.items() if spec.needs_occurrences] == ["tf"]
    assert [name for name, spec in specs.items() if spec.needs_pairs] == ["random"]
