"""The whole way of a person on the page of `plant serve`: suggest, point, accept, reject, ask
why not, add, export, send.
"""

from __future__ import annotations

import json

from plant_review.reviewed_rows import read_sheet

from plant_cli.api import SilentReporter
from plant_cli.scoring.review_sheets import REVIEW_COLUMNS
from tests.web.clinic_server import TEXT
from tests.web.page_looks import bands, decisions, lit, spoken, status


def test_the_whole_way(suggested, server, tmp_path):
    """Suggest, point, accept, reject, ask why not, add, undo, export, send."""
    page = suggested()
    assert bands(page) == {"Assign": ["J20", "I10", "J18"], "Review": ["J45"], "Reject": ["E11"]}
    assert status(page) == "3 to assign, 1 to review, 1 to reject."
    assert lit(page) == [
        ("Cough", "for3", "for3"),
        ("bronchitis", "for3", "for3"),
        ("wheezing", "for1", "for1"),
    ]

    page.get_by_role(
        "button", name="Asthma J45"
    ).hover()  # a label's words light up: +2.1 wheezing, -0.8 fever, +0.6 cough
    assert lit(page) == [
        ("Cough", "for1", "for1"),
        ("fever", "against2", "against2"),
        ("wheezing", "for3", "for3"),
    ]
    page.locator(".word", has_text="fever").hover()  # a word's labels are marked
    assert spoken(page) == {"J18": "+1.90", "J45": "−0.80"}
    page.get_by_role("heading", name="plant").hover()
    assert (spoken(page), lit(page)[0][0]) == ({}, "Cough")

    page.get_by_role("button", name="Accept Acute bronchitis").click()
    page.get_by_role("button", name="Reject Pneumonia").click()
    page.get_by_role("button", name="Accept Hypertension").click()
    page.get_by_role("button", name="Undo").click()
    assert decisions(page) == {"J20": "accept", "J18": "reject"}

    page.get_by_role("combobox", name="Another label").fill("back")
    page.get_by_role("option", name="Back pain").click()
    why = page.get_by_role("group", name="Why Back pain?")
    why.get_by_role("table").wait_for()
    assert (
        "No word of the text speaks for this label. Its score is 0.05; it is assigned from 0.50."
        in why.text_content()
    )
    assert bands(page)["You asked for"] == ["M54"]
    page.get_by_role("button", name="Accept Back pain").click()

    page.get_by_label("Your name").fill("Ada")
    page.get_by_label("Document id").fill("visit 7")
    record, sheet, feedback = (
        export(page, tmp_path, name)
        for name in ("Record (JSON)", "Record (CSV)", "Feedback (JSON lines)")
    )
    chosen = {"J20": "accept", "J18": "reject", "M54": "accept"}
    assert {
        one["label"]: one["decision"]
        for one in json.loads(record.read_text())["labels"]
        if one["decision"]
    } == chosen
    for path, whole in ((sheet, False), (feedback, True)):  # `plant review import` reads both
        rows = read_sheet(path, SilentReporter())
        assert {row.label: row.decision for row in rows if row.decision} == chosen
        assert {(row.doc_id, row.text, row.whole) for row in rows} == {("visit 7", TEXT, whole)}
    assert sheet.read_text().startswith(f"\ufeff{','.join(REVIEW_COLUMNS)}")
    first = json.loads(feedback.read_text().splitlines()[0])
    assert (first["label"], first["who"], first["evidence"]) == (
        "J20",
        "Ada",
        "bronchitis +3.00, cough +2.40, wheezing +0.40",
    )

    page.get_by_role("button", name="Send feedback").click()
    page.get_by_text("3 decisions are stored. Thank you.").wait_for()
    (stored,) = server.feedback
    assert (stored["model"], stored["who"], stored["document"]["id"]) == (
        "clinic",
        "Ada",
        "visit 7",
    )
    chosen = {one["label"]: (one["decision"], "score" in one) for one in stored["decisions"]}
    assert chosen == {
        "J20": ("accept", True),
        "J18": ("reject", True),
        "M54": ("accept", False),
    }  # an added label has no score
    assert page.get_by_role("button", name="Send feedback").is_disabled()


def export(page, folder, name):
    """A file that the page writes."""
    page.locator("#export summary").click()
    with page.expect_download() as download:
        page.get_by_role("button", name=name).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    assert path.name.startswith("visit-7.")
    return path
