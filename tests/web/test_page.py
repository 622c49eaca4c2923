"""The page of `plant serve` in a browser: what a person does there, by mouse and by keys, and
what the server gets.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.plugins.plant_serving.conftest import scorers_run, started  # noqa: F401
from tests.web.clinic_server import TITLES
from tests.web.page_looks import decisions, spoken, status

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
REFUSED = {
    "what": "The text is too long.",
    "where": "text 1",
    "expected": "at most 9 characters",
    "todo": "Send a shorter one.",
}


def test_by_keys_alone(open_page, server):
    page = open_page()
    keys = page.keyboard
    keys.type("bronchitis and fever")  # the text has the focus
    keys.press("Control+Enter")
    page.locator(".why table").nth(4).wait_for(state="attached")
    assert page.evaluate("document.activeElement.closest('.row').dataset.label") == "J20"
    keys.press("a")  # goes on to the next label
    keys.press("r")
    assert decisions(page) == {"J20": "accept", "J18": "reject"}
    keys.press("j")  # there is no other label in an open band
    keys.press("u")
    assert (decisions(page), status(page)) == ({"J20": "accept"}, "Undone: Pneumonia")
    keys.press("ArrowRight")  # the first lit word of the current label
    assert (page.evaluate("document.activeElement.textContent"), status(page)) == (
        "fever",
        "“fever” speaks for Pneumonia.",
    )
    assert spoken(page) == {"J18": "+1.90", "J45": "−0.80"}
    keys.press("Escape")
    keys.press("/")
    keys.type("a")
    page.get_by_role("option").nth(4).wait_for()
    keys.press("ArrowUp")  # from the first to the last, which proposes a heading
    keys.press("ArrowUp")
    keys.press("Enter")
    page.get_by_role("group", name="Why Back pain?").wait_for()
    keys.press("a")
    keys.press("?")
    page.get_by_role("dialog", name="Help and keys").wait_for()
    keys.press("Escape")
    for _ in range(12):
        keys.press("Tab")
        if page.evaluate("document.activeElement.id") == "send":
            break
    keys.press("Enter")
    page.get_by_text("2 decisions are stored").wait_for()
    assert [one["label"] for one in server.feedback[0]["decisions"]] == ["J20", "M54"]
    assert re.fullmatch(
        r"[0-9a-f]{16}", server.feedback[0]["document"]["id"]
    )  # made of the text, since it was given none


def test_single_keys_may_be_switched_off(suggested):
    page = suggested()
    page.get_by_role("button", name="Help and keys").click()
    page.get_by_label("Use single keys").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("a")
    assert decisions(page) == {}


def test_decisions_outlive_another_look_at_the_same_text(suggested, server):
    page = suggested()
    page.get_by_role("button", name="Reject Acute bronchitis").click()
    page.get_by_role("button", name="Edit text").click()
    page.keyboard.press("Control+End")
    page.keyboard.type(" Fever again.")
    page.get_by_role("button", name="Suggest labels").click()
    page.get_by_role("button", name="Edit text").wait_for()
    assert decisions(page) == {"J20": "reject"}
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="New text").click()
    assert page.get_by_role("textbox", name="Text", exact=True).input_value() == ""
    assert not page.get_by_role("button", name="Send feedback").is_visible()


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"\xef\xbb\xbfFever\r\nand cough", "Fever\nand cough"),
        (b"\xff\xfe\x00", "This file is not a text."),
        (b"a\x00b", "This file is not a text."),
    ],
)
def test_a_file(open_page, tmp_path, content, shown):
    path = tmp_path / "visit.2.txt"
    path.write_bytes(content)
    page = open_page()
    page.locator("#file").set_input_files(path)
    if "not a text" in shown:
        page.get_by_role("alert").get_by_text(shown).wait_for()
    else:
        page.get_by_text(f"{len(shown)} characters").wait_for()
        assert page.locator("#editor").input_value() == shown
        assert page.get_by_label("Document id").input_value() == "visit.2"


def test_an_error_is_shown_in_its_four_parts_and_loses_nothing(open_page, server):
    page = open_page()
    page.locator("#editor").fill("Fever")
    server.error = (413, REFUSED)
    page.get_by_role("button", name="Suggest labels").click()
    page.get_by_text(REFUSED["what"]).wait_for()
    assert page.get_by_role("alert").inner_text().split("\n")[:7] == [
        REFUSED["what"], "Where", REFUSED["where"], "Expected", REFUSED["expected"], "What to do", REFUSED["todo"],
    ]  # fmt: skip
    page.get_by_role("button", name="Suggest labels").click()
    page.locator(".row").first.wait_for()
    assert page.get_by_role("alert").text_content() == ""
    page.route("**/api/**", lambda route: route.abort())
    page.get_by_role("button", name="Accept Pneumonia").click()
    page.get_by_role("button", name="Send feedback").click()
    page.get_by_text("The server does not answer.").wait_for()
    assert decisions(page) == {"J18": "accept"}
    assert page.get_by_role("button", name="Send feedback").is_enabled()
    assert all("Failed to load resource" in one for one in open_page.problems)
    open_page.problems.clear()


def test_a_token_is_asked_for(open_page, server):
    server.token = "open sesame"
    page = open_page(ready=False)
    for token, words in (("wrong", "wants a token"), ("open sesame", "did not take")):
        page.get_by_role("dialog", name="Access token").get_by_text(words).wait_for()
        page.keyboard.type(token)
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
    page.get_by_text("6 labels from").wait_for()
    assert (
        page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")
        == '[{},{},""]'
    )
    open_page.problems.clear()


def test_several_models(open_page, server):
    server.models = ["first", "second"]
    page = open_page(ready=False)
    page.locator("#editor").fill("Fever")
    page.get_by_label("Model").select_option("second")
    page.keyboard.press("Control+Enter")
    page.locator(".row").first.wait_for()
    page.get_by_label("Model").select_option("first")
    page.get_by_text(
        "Clinic first: 6 labels from 1,200 documents. Parts: network, words. "
        "Of 100 labels that it assigned to other documents 83 were right. "
        "What it assigns and what is to be reviewed held 91 of 100 right labels."
    ).wait_for()
    page.locator("#labels[aria-busy=false]").wait_for()
    assert [body["model"] for path, body in server.seen if path == "/api/suggest"] == [
        "second",
        "first",
    ]


def test_in_a_folder_behind_a_proxy(suggested):
    assert suggested(folder="/folder/").locator(".row").count() == 5


def test_a_note_of_the_model_is_shown(suggested):
    page = suggested(text="nothing known")
    assert page.get_by_text("The model knows no word of this text.").is_visible()
    assert page.get_by_role(
        "button", name="Accept Asthma"
    ).is_visible()  # `Reject` is open where all else is empty


def test_data_are_never_markup(suggested, server, monkeypatch):
    monkeypatch.setitem(TITLES, "J20", "<img src=x onerror=alert(1)>")
    page = suggested(text="<b id=bold>cough</b> bronchitis")
    assert page.locator("#bold, main img").count() == 0
    assert page.locator("#reading").text_content() == "<b id=bold>cough</b> bronchitis"


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_is_wider_than_the_screen(suggested, width):
    page = suggested(width)
    page.get_by_role("button", name="Accept Acute bronchitis").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="Edit text").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_long_text_stays_fluent(suggested, tmp_path):
    """200,000 characters with 3,600 words for a label, 2,000 of them marked: to point at a
    label takes less than to lay out the text.
    """
    path = tmp_path / "long.txt"
    path.write_text(f"{'word ' * 20}cough, no fever.\n" * 1800)
    page = suggested(file=path)
    took, reference = page.evaluate("""() => {
      const reading = document.getElementById("reading");
      const time = (change) => {
        const started = performance.now();
        change();
        reading.offsetHeight;
        return performance.now() - started;
      };
      const point = (label) => document.querySelector(`[data-label="${label}"] .title`)
        .dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
      const layOut = () => {
        reading.style.display = "none";
        reading.offsetHeight;
        reading.style.display = "";
      };
      return [["J45", "J20", "J18", "J45"].map((label) => time(() => point(label))), [1, 2, 3].map(() => time(layOut))];
    }""")
    assert page.locator("[data-network]").count() == 2000
    assert min(took) < min(reference)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_accessible(suggested, dark):
    """No rule of axe-core is broken: at the start, with reasons and decisions, in the search,
    in the help, with an error.
    """
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="pip install '.[test]'"
    ).Axe()
    page = suggested(dark=dark)
    page.keyboard.press("a")
    page.keyboard.press("r")
    page.locator("details.reject > summary").click()
    states = {"labels": lambda: page.locator(".word", has_text="fever").hover()}
    states["search"] = lambda: (
        page.keyboard.press("/"),
        page.keyboard.type("a"),
        page.get_by_role("option").first.wait_for(),
    )
    states["edit"] = lambda: (
        page.keyboard.press("Escape"),
        page.get_by_role("button", name="Edit text").click(),
    )
    states["file"] = lambda: (
        page.locator("#file").set_input_files(Path("/bin/true")),
        page.get_by_text("not a text").wait_for(),
    )
    states["help"] = lambda: page.get_by_role("button", name="Help and keys").click()
    found = {}
    for name, reach in states.items():
        reach()
        violations = axe.run(page).response["violations"]
        found[name] = [(one["id"], one["nodes"][0]["html"][:200]) for one in violations]
    assert found == {name: [] for name in states}


def test_with_the_real_server(chromium, started, tmp_path):  # noqa: F811
    """Suggest, explain, search and feedback, as `plant serve` answers them."""
    feedback = tmp_path / "feedback.jsonl"
    server = started("--feedback", str(feedback))
    page = chromium.new_page()
    problems = []
    page.on("console", lambda line: problems.append(line.text))
    page.goto(server.address)
    page.get_by_text("clinic: 12 labels").wait_for()
    page.locator("#editor").fill("congenital inflammation of the colon")
    page.keyboard.press("Control+Enter")
    page.locator(".why table").first.wait_for(state="attached")
    page.locator(".word").first.wait_for()
    shown = {one.text_content().lower() for one in page.locator("[data-scorers]").all()}
    assert shown & {"congenital", "inflammation", "colon"}
    label = page.locator(".row.current").get_attribute("data-label")
    page.keyboard.press("a")
    page.keyboard.press("/")
    page.keyboard.type(label)
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Send feedback").click()
    page.get_by_text("1 decision is stored.").wait_for()
    page.close()
    (row,) = [json.loads(line) for line in feedback.read_text().splitlines()]
    assert (row["label"], row["decision"], row["text"]) == (
        label,
        "accept",
        "congenital inflammation of the colon",
    )
    assert row["score"] > 0
    assert problems == []
