"""`plant report` through the runner, on played and on trained systems, and in a browser."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest
from builders import run_at

from plant_cli.api import ArtefactError, UsageError

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


@pytest.fixture
def report(played, tmp_path):
    """Report on played systems, evaluated first unless told otherwise: `report("finetune",
    "baseline", figures=…)`.
    """

    def run(*systems, evaluated=("finetune", "baseline"), force=False, **options):
        for name in evaluated:
            played("eval", None if name == "finetune" else name, force=True, bootstrap=40)
        flags = {
            "report": {
                "systems": list(systems),
                "output": str(tmp_path / "r.html"),
                "documents": 0,
                **options,
            }
        }
        return run_at(tmp_path / "run", "report", flags=flags, force=force)

    return run


def test_a_page_and_its_files(report, played, tmp_path):
    played("significance", systems=["finetune", "baseline"], bootstrap=40, permutations=500)
    result = report("finetune", "baseline", figures=str(tmp_path / "figures"))
    page = (tmp_path / "r.html").read_text()
    assert "<h1>finetune against baseline</h1>" in page
    assert result.tables[0].title == "Main metrics"
    assert re.search(r"\d▲ \(", page)
    assert result.data["bytes"] == len(page.encode())
    assert any("--documents 0" in sentence for sentence in result.data["left_out"])
    assert {Path(path).name for path in result.data["files"]} >= {
        "r.html",
        "headline.svg",
        "headline.png",
        "headline.tex",
        "headline.md",
    }
    assert set(json.loads((tmp_path / "run" / "eval" / "stage.json").read_text())["outputs"]) >= {
        "metrics.json"
    }
    assert not (tmp_path / "run" / "report").exists()


def test_another_run_is_reported_from_anywhere(report, tmp_path):
    report(evaluated=["finetune"])
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    result = report(str(tmp_path / "other"), evaluated=[], force=True)
    assert [column.name for column in result.tables[0].columns] == ["metric", "other"]


def test_without_evaluation_nothing_is_written(report, tmp_path):
    with pytest.raises(ArtefactError, match="'eval-baseline' has not run"):
        report("finetune", "baseline", evaluated=["finetune"])
    assert not (tmp_path / "r.html").exists()


def test_nothing_is_overwritten_without_force(report, tmp_path):
    report("finetune")
    before = (tmp_path / "r.html").read_bytes()
    with pytest.raises(UsageError, match="is there already"):
        report("finetune", evaluated=[])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with pytest.raises(UsageError, match="not empty"):
        report(
            "finetune",
            evaluated=[],
            output=str(tmp_path / "s.html"),
            figures=str(tmp_path / "full"),
        )
    assert report("finetune", evaluated=[], force=True).data["bytes"] == len(before)
    with pytest.raises(UsageError, match="is a folder"):
        report("finetune", evaluated=[], output=str(tmp_path / "full"), force=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_refused_before_any_work(report, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    with pytest.raises(UsageError, match="cannot be written"):
        report("finetune", output=str(locked / "r.html"), evaluated=[])


@pytest.mark.parametrize("option", ["output", "figures", "tables"])
def test_a_place_below_a_file_is_refused_before_any_work(report, tmp_path, option):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written") as raised:
        report("finetune", evaluated=[], **{option: str(tmp_path / "file" / "r")})
    assert "is a file" in raised.value.expected


def test_one_label_and_one_document_without_titles(tmp_path):
    rows = [("train", f"fever cough {i}", ["a"]) for i in range(8)] + [
        ("validation", "fever", ["a"]),
        ("test", "fever and cough", ["a"]),
    ]
    frame = pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").with_row_index(
        "doc_id"
    )
    frame.with_columns(pl.col("doc_id").cast(pl.String)).write_parquet(tmp_path / "one.parquet")
    results = {}
    for name, flags in (
        ("finetune", {"network": False}),
        ("eval", {"bootstrap": 40}),
        ("report", {"output": str(tmp_path / "r.html")}),
    ):
        given = {
            name: flags,
            "data": {"path": str(tmp_path / "one.parquet")},
            "machine": {"device": "cpu"},
        }
        results[name] = run_at(tmp_path / "run", name, flags=given)
    assert results["eval"].next_step.startswith(
        "plant thresholds --target"
    )  # there is no network to compare with another
    metrics = json.loads((tmp_path / "run" / "eval" / "metrics.json").read_text())["metrics"]
    shown = {row[0]: row[1] for row in results["report"].tables[0].rows}
    assert shown["P@1"].startswith(f"{100 * metrics['P@1']['value']:.1f} [")
    page = (tmp_path / "r.html").read_text()
    assert "1 document of test; macro-F1 over 1 label, macro-F1-present over 1 label" in page
    assert page.count("<img ") == page.count("<figure>") > 3


HOSTILE = (
    "<script>document.title='bad'</script>\"><img src=http://evil.example/x.png "
    "onerror=alert(1)> $x_1$ &amp; \u202eevil"
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A report on scorers trained on texts, labels and titles that would run code in a page
    that does not escape them.
    """
    folder = tmp_path_factory.mktemp("hostile")
    names = [f"{HOSTILE} {i}" for i in range(4)]
    words = ["fever", "cough", "rash", "pain"]
    rows = [
        (
            split,
            f"{HOSTILE} {words[i % 4]} {words[(i + j) % 4]} note {i}",
            [names[i % 4]] + [names[(i + 1) % 4]] * (i % 3 == 0),
        )
        for split, count in (("train", 60), ("validation", 20), ("test", 20))
        for j, i in enumerate(range(count))
    ]
    pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").with_row_index(
        "doc_id"
    ).with_columns(pl.concat_str(pl.lit(f"{HOSTILE} "), "doc_id").alias("doc_id")).write_parquet(
        folder / "data.parquet"
    )
    pl.DataFrame({"label": names, "title": [f"{HOSTILE} title {w}" for w in words]}).write_csv(
        folder / "data.labels.csv"
    )

    def run(name, **flags):
        given = {
            name: flags,
            "data": {"path": str(folder / "data.parquet")},
            "machine": {"device": "cpu"},
        }
        run_at(folder / "run", name, flags=given, force=True)

    run("finetune", network=False)
    run("eval", bootstrap=40)
    run("report", systems=[], output=str(folder / "r.html"), documents=3)
    return folder / "r.html"


def test_hostile_texts_and_names_stay_text(hostile):
    page = hostile.read_text()
    assert page.count("&lt;script&gt;") > 10
    assert "<script" not in page
    assert page.count("<img ") == page.count('<img src="data:image/svg+xml;base64,') > 3
    assert "\u202e" not in page
    assert re.search(r'<mark class="w\d scorers">(fever|cough|rash|pain)</mark>', page)
    assert "Documents with reasons" in page
    assert "plant finetune</code> without --no-network trains one" in page


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_shows_it_without_an_error_or_a_request(hostile, tmp_path):
    log, shot, pdf = (tmp_path / name for name in ("net.json", "shot.png", "page.pdf"))
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-sync",
    ]
    options += [
        "--disable-component-update",
        "--disable-default-apps",
        "--disable-extensions",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    watch = ["--enable-logging=stderr", f"--log-net-log={log}", "--net-log-capture-mode=Everything"]
    run = [
        CHROMIUM,
        *options,
        *watch,
        "--window-size=1280,2000",
        f"--screenshot={shot}",
        hostile.as_uri(),
    ]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr
    assert shot.stat().st_size > 10_000
    assert "evil.example" not in log.read_text().replace("%", "")
    title = subprocess.run(
        [CHROMIUM, *options, "--dump-dom", hostile.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "<title>Report on run</title>" in title.stdout
    subprocess.run(
        [CHROMIUM, *options, f"--print-to-pdf={pdf}", hostile.as_uri()],
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert pdf.read_bytes().startswith(b"%PDF")


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_the_browser_would_tell_of_an_error(tmp_path):
    """What the test above looks for is said of a page that has a script and fetches an image."""
    page = tmp_path / "bad.html"
    page.write_text("<script>console.error('heard')</script><img src=http://evil.example/x.png>")
    log = tmp_path / "net.json"
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--enable-logging=stderr",
    ]
    run = [
        CHROMIUM,
        *options,
        f"--log-net-log={log}",
        f"--screenshot={tmp_path / 's.png'}",
        page.as_uri(),
    ]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
    assert "heard" in done.stderr
    assert "CONSOLE" in done.stderr
    assert "evil.example" in log.read_text()
