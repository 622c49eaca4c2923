"""Notes of MIMIC-III at full size: a generated folder of its shape is read by the dataset `mimic3-full`, and by polars' scan; peak memory.

    python -m tests.benchmarks.mimic FOLDER --gigabytes 4 --json FILE

Of NOTEEVENTS 3% are discharge notes of 10,000 characters, the others have 1,700; every text has line breaks and quotes in it. No word is
of a patient. Each reader is a process of its own.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sys
from pathlib import Path

from tests.benchmarks.scale import measure_commands

DISCHARGE, OTHER, SHARE = 10_000, 1_700, 0.03  # characters, and which share of the rows is discharge notes
NOTES = ["ROW_ID", "SUBJECT_ID", "HADM_ID", "CHARTDATE", "CHARTTIME", "STORETIME", "CATEGORY", "DESCRIPTION", "CGID", "ISERROR", "TEXT"]
CODES = ["ROW_ID", "SUBJECT_ID", "HADM_ID", "SEQ_NUM", "ICD9_CODE"]
READERS = {
    "plant": """
import sys
from plant_cli.__main__ import main
sys.argv = ['plant', 'data', 'stats', {root!r}, '--dataset', 'mimic3-full']
main()
""",
    "polars": """
import polars as pl
notes = pl.scan_csv({root!r} + '/NOTEEVENTS.csv', infer_schema=False).filter(pl.col('CATEGORY') == 'Discharge summary')
print(sum(batch.height for batch in notes.select('HADM_ID', 'TEXT').collect_batches(chunk_size=1000, engine='streaming')))
""",
}


def make(root: Path, gigabytes: float) -> None:
    """Write the tables."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(20_000)]
    pieces = [" ".join(draw.choices(words, k=15)) + draw.choice([".\n", ', "so to say";\n', " [**2100-1-1**]\n"]) for _ in range(5_000)]
    root.mkdir(parents=True, exist_ok=True)
    admissions: list[int] = []
    written = row = 0
    with (root / "NOTEEVENTS.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(NOTES)
        while written < gigabytes * 1e9:
            row += 1
            discharge = draw.random() < SHARE
            size = DISCHARGE if discharge else OTHER
            text = "".join(draw.choices(pieces, k=size // 100))
            admissions += [row] if discharge else []
            kind = ("Discharge summary", "Report") if discharge else ("Nursing", "Note")
            writer.writerow((row, row, f"{row}.0", "2100-01-01", "", "", *kind, "", "", text))
            written += len(text)
    for name, codes in (("DIAGNOSES_ICD", ["4019", "E8859", "V3001", "25000"]), ("PROCEDURES_ICD", ["0066", "3893"])):
        with (root / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([CODES, *((n, a, a, 1, draw.choice(codes)) for n, a in enumerate(admissions))])
    for name in ("D_ICD_DIAGNOSES", "D_ICD_PROCEDURES"):
        (root / f"{name}.csv").write_text("ROW_ID,ICD9_CODE,SHORT_TITLE,LONG_TITLE\n1,4019,a,A title\n", encoding="utf-8")
    print(f"{row:,} notes, {len(admissions):,} of them discharge notes, {(root / 'NOTEEVENTS.csv').stat().st_size / 1e9:.2f} GB")


def main() -> None:
    """Make the folder if it is not there, and measure the readers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--reader", action="append", choices=list(READERS), default=[])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not (options.folder / "D_ICD_PROCEDURES.csv").exists():
        make(options.folder, options.gigabytes)
    found = {}
    for name in options.reader or READERS:
        command = [sys.executable, "-c", READERS[name].format(root=str(options.folder))]
        found[name] = measure_commands([command], options.folder / "log")[0]
        print(name, "  ".join(f"{key} {value:,.2f}" for key, value in found[name].items()), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
