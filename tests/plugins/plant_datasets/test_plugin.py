"""The datasets that are registered."""

from plant_datasets.formats.registration import FORMATS
from plant_datasets.plugin import plant_register_datasets


def test_local_files_the_clinic_and_all_formats_are_registered() -> None:
    names = [spec.name for spec in plant_register_datasets()]
    assert {"files", "synthetic-clinic"} | {spec.name for spec in FORMATS} <= set(names)
    assert len(set(names)) == len(names)
