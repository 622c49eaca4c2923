"""The corpora of MIMIC that are registered. Their options and cards stand here; readers are imported when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from plant_cli.api import DataSection, Dataset, DatasetCard, DatasetSpec, Options, option

_LICENCE = "PhysioNet Credentialed Health Data License 1.5.0: for credentialed users alone, never to be shared"
_CITE3 = "Johnson, A. E. W. et al. (2016). MIMIC-III, a freely accessible critical care database. Scientific Data 3."
_CITE4 = "Johnson, A. E. W. et al. (2023). MIMIC-IV, a freely accessible electronic health record dataset. Scientific Data 10."
_FILES3 = "the folder of PhysioNet with NOTEEVENTS, DIAGNOSES_ICD, PROCEDURES_ICD, D_ICD_DIAGNOSES and D_ICD_PROCEDURES (.csv or .csv.gz)"
_FILES4 = "a folder that holds mimic-iv-note (discharge) and mimiciv/hosp (diagnoses_icd, procedures_icd, d_icd_…), .csv or .csv.gz"
_SOURCE3, _SOURCE4 = "https://physionet.org/content/mimiciii/1.4/", "https://physionet.org/content/mimiciv/ and mimic-iv-note/"


class MimicOptions(Options):
    """Texts and splits."""

    splits: str | None = option(None, "The public file or folder of splits (default: patients are split by a hash).", path=True)
    text: Literal["e23", "caml", "alpha", "none"] = option(
        "e23", "e23: as Edin et al. 2023; caml: as Mullenbach et al. 2018; alpha: words of letters alone; none: as it is."
    )
    deid: Literal["keep", "mask"] = option("keep", "mask: what was de-identified becomes a blank.")


class Mimic3Options(MimicOptions):
    """How codes are read."""

    caml_quirk: bool = option(False, "Read procedures as numbers, as CAML did: 00.66 becomes 66.")


class Top50Options(Mimic3Options):
    """Which codes are the 50."""

    top50: Literal["mullenbach", "recount"] = option("mullenbach", "mullenbach: the published list; recount: the most frequent of train.")


class FewOptions(Mimic3Options):
    """Two protocols that must not be mixed."""

    protocol: Literal["full", "restricted"] = option(
        "full", "full: all documents and codes, judged on rare codes alone; restricted: rare codes alone, and documents that have one."
    )


class Rare50Options(MimicOptions):
    """The lists are needed."""

    splits: str = option(help="KEPT's collectrare50data.py, which holds the lists; it is read and not run.", path=True)


def _card(title: str, iii: bool, **variants: dict[str, int]) -> DatasetCard:
    return DatasetCard(
        title=title,
        licence=_LICENCE,
        citation=_CITE3 if iii else _CITE4,
        source=_SOURCE3 if iii else _SOURCE4,
        files=_FILES3 if iii else _FILES4,
        variants={name.replace("_", " "): counts for name, counts in variants.items()},
    )


def _counts(train: int, validation: int, test: int, labels: int) -> dict[str, int]:
    return {"train": train, "validation": validation, "test": test, "labels": labels}


_THIRD: dict[str, tuple[type[Options], DatasetCard]] = {
    "full": (
        Mimic3Options,
        _card(
            "MIMIC-III-full: discharge notes with all ICD-9 codes",
            True,
            as_Edin_et_al=_counts(47_719, 1_631, 3_372, 8_929),
            as_CAML=_counts(47_723, 1_631, 3_372, 8_922),
        ),
    ),
    "top50": (
        Top50Options,
        _card(
            "MIMIC-III-50: discharge notes with the 50 codes of Mullenbach et al.",
            True,
            as_Edin_et_al=_counts(8_066, 1_573, 1_729, 50),
            as_CAML=_counts(8_067, 1_574, 1_730, 50),
        ),
    ),
    "clean": (
        Mimic3Options,
        _card("MIMIC-III-clean: codes of at least 10 admissions", True, published={"documents": 52_712, "labels": 3_681}),
    ),
    "rare50": (Rare50Options, _card("MIMIC-III-rare50: 50 rare codes (KEPT)", True, published=_counts(249, 20, 142, 50))),
    "few": (FewOptions, _card("MIMIC-III-few: codes with 1 to 5 training documents", True)),
}
_FOURTH = {
    10: _card("MIMIC-IV ICD-10: discharge notes with ICD-10 codes", False, published={"documents": 122_279, "labels": 7_942}),
    9: _card("MIMIC-IV ICD-9: discharge notes with ICD-9 codes", False, published={"documents": 209_326, "labels": 11_331}),
}


def _loader(reader: str, which: str | int, card: DatasetCard) -> Callable[[DataSection, Any], Dataset]:
    def load(data: DataSection, options: Any) -> Dataset:
        from plant_datasets.corpora.counting import with_card
        from plant_datasets.mimic import subsets

        return with_card(getattr(subsets, reader)(data, options, which), card)

    return load


def _spec(name: str, options: type[Options], card: DatasetCard, reader: str, which: str | int) -> DatasetSpec:
    summary = f"{card.title}. `plant data info {name}` says what is needed."
    return DatasetSpec(name=name, summary=summary, options=options, load=_loader(reader, which, card), card=card)


MIMIC = (
    *(_spec(f"mimic3-{name}", options, card, "load_mimic3", name) for name, (options, card) in _THIRD.items()),
    *(_spec(f"mimic4-icd{version}", MimicOptions, card, "load_mimic4", version) for version, card in _FOURTH.items()),
)
