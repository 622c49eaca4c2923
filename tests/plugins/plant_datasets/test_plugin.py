"""The datasets that are registered."""

from plant_datasets.plugin import plant_register_datasets


def test_local_files_and_the_clinic_are_registered() -> None:
    assert sorted(spec.name for spec in plant_register_datasets()) == ["files", "synthetic-clinic"]
