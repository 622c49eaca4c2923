"""Registers the datasets. Options stand here, so that listing them imports no reader."""

from __future__ import annotations

from collections.abc import Sequence

from plant_cli.api import DataSection, Dataset, DatasetSpec, NoOptions, Options, hookimpl, option
from plant_datasets.corpora.registration import CORPORA
from plant_datasets.formats.registration import FORMATS
from plant_datasets.mimic.registration import MIMIC


class SyntheticClinicOptions(Options):
    """How large the generated corpus is."""

    documents: int = option(2000, "Documents, over all splits.", ge=10)
    labels: int = option(300, "Codes that the corpus is about.", ge=5, le=3000)
    seed: int = option(0, "Equal seeds give equal corpora, byte for byte.", ge=0)


def _load_files(data: DataSection, options: NoOptions) -> Dataset:
    from plant_datasets.files import load_files

    return load_files(data)


def _recognise_files(data: DataSection) -> str | None:
    from plant_datasets.files import recognise

    return recognise(data)


def _generate_clinic(data: DataSection, options: SyntheticClinicOptions) -> Dataset:
    from plant_datasets.synthetic_clinic.generator import generate

    return generate(documents=options.documents, labels=options.labels, seed=options.seed)


@hookimpl
def plant_register_datasets() -> Sequence[DatasetSpec]:
    """The datasets of this plugin."""
    return [
        DatasetSpec(
            name="files",
            summary="A table with a split column, or a folder of train, validation and test tables: Parquet, JSON lines, CSV or TSV.",
            load=_load_files,
            recognise=_recognise_files,
        ),
        DatasetSpec(
            name="synthetic-clinic",
            summary="Generated notes that look clinical, with codes, a long tail, negations and gold evidence; needs no download.",
            options=SyntheticClinicOptions,
            load=_generate_clinic,
        ),
        *FORMATS,
        *CORPORA,
        *MIMIC,
    ]
