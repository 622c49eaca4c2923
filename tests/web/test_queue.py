"""The queue on the page, with the real server: by keys, by several people, on a phone, in the dark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.plant_serving.conftest import scorers_run, started  # noqa: F401
from tests.web.page_looks import decisions, status

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
EVIL = "<img src=x onerror=alert(1)>"
TEXTS = [
    "asthma with cough\r\nand wheezing",
    "fracture of the arm",
    f"{EVIL} congenital inflammation of the colon",
    "asthma and bronchitis",
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "new.jsonl"
    rows = [{"doc_id": f"d{number}", "text": text} for number, text in enumerate(TEXTS)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def visit(chromium: Any, started: Any, table: Path) -> Iterator[Callable[..., Any]]:  # noqa: F811
    """A page of a browser of its own at the server of the queue: `visit(width=…, dark=True)`."""
    arguments = ("--queue", str(table), "--order", "file", "--people", "2")
    server_of_the_queue = cache(lambda: started(*arguments))  # once the table is as it is wanted
    problems: list[str] = []
    contexts = []

    def open_at(width: int = 1200, *, dark: bool = False, documents: str = "4") -> Any:
        server = server_of_the_queue()
        contexts.append(
            chromium.new_context(
                viewport={"width": width, "height": 860},
                color_scheme="dark" if dark else "light",
                reduced_motion="reduce",
            )
        )
        page = contexts[-1].new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda line: problems.append(line.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "request",
            lambda sent: None if sent.url.startswith(server.address) else problems.append(sent.url),
        )
        page.goto(server.address)
        page.get_by_text(f" of {documents} decided").wait_for()
        return page

    open_at.problems = problems  # type: ignore[attr-defined]
    yield open_at
    for context in contexts:
        context.close()
    assert problems == []


def begin(page: Any, name: str) -> None:
    """Open the first document, by keys alone."""
    page.keyboard.press("n")
    page.get_by_role("dialog", name="Who are you?").wait_for()
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    shown(page, "d0")


def shown(page: Any, doc_id: str) -> None:
    """Wait for the labels of a document."""
    page.locator(f"#documents [aria-current=true]:has-text('{doc_id}')").wait_for(state="attached")
    page.locator("#labels[aria-busy=false]").wait_for()
    page.locator(".row").first.wait_for()


def test_by_keys_alone(visit: Any, table: Path) -> None:
    page = visit()
    begin(page, "Ada")
    page.keyboard.press("a")
    page.keyboard.press("r")
    before = decisions(page)
    page.keyboard.press("n")
    shown(page, "d1")
    assert page.get_by_text("1 of 4 decided").is_visible()
    assert decisions(page) == {}
    page.keyboard.press("n")  # nothing decided: passed over
    shown(page, "d2")
    page.keyboard.press("a")
    page.keyboard.press("n")
    shown(page, "d3")
    page.keyboard.press("a")
    page.keyboard.press("n")
    shown(page, "d1")  # the one that was passed over
    page.keyboard.press("a")
    page.keyboard.press("n")
    page.get_by_text("No document waits for you.").wait_for()
    rows = [json.loads(one) for one in table.with_name("new.feedback.jsonl").open()]
    assert {row["who"] for row in rows} == {"Ada"}
    assert {row["label"]: row["decision"] for row in rows if row["doc_id"] == "d0"} == before
    assert rows[0]["text"] == TEXTS[0]  # ends of lines as they are in the file

    page.locator("#documents button").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    shown(page, "d0")
    assert decisions(page) == before  # what is stored is shown


def stored(table: Path) -> list[tuple[str, str, str]]:
    """Document, label and decision of each line of the feedback file."""
    rows = [json.loads(one) for one in table.with_name("new.feedback.jsonl").open()]
    return [(row["doc_id"], row["label"], row["decision"]) for row in rows]


def test_decisions_are_taken_back_by_keys(visit: Any, table: Path) -> None:
    page = visit()
    begin(page, "Ada")
    for key in "arn":
        page.keyboard.press(key)
    shown(page, "d1")
    first, second = stored(table)
    page.keyboard.press("u")
    assert status(page).startswith("Nothing is decided on this document")
    page.keyboard.press("p")
    shown(page, "d0")
    page.keyboard.press("u")  # the last decision, which is stored
    assert decisions(page) == {first[1]: "accept"}
    page.keyboard.press("n")
    shown(page, "d1")
    assert stored(table) == [first, second, ("d0", second[1], "withdraw")]
    page.get_by_text("1 of 4 decided").wait_for()
    page.keyboard.press("p")
    shown(page, "d0")
    assert decisions(page) == {first[1]: "accept"}
    page.keyboard.press("u")  # the withdrawal, then what came before
    assert len(decisions(page)) == 2
    page.keyboard.press("u")
    page.keyboard.press("u")
    assert decisions(page) == {}
    page.keyboard.press("n")
    shown(page, "d1")
    page.get_by_text("0 of 4 decided").wait_for()
    assert stored(table)[3:] == [("d0", first[1], "withdraw")]
    page.reload()
    page.get_by_text("0 of 4 decided").wait_for()


def test_any_decision_is_taken_back_by_its_button(visit: Any, table: Path) -> None:
    page = visit()
    begin(page, "Ada")
    for key in "aaan":
        page.keyboard.press(key)
    shown(page, "d1")
    page.keyboard.press("p")
    shown(page, "d0")
    labels = list(decisions(page))
    page.locator(f"[data-label='{labels[1]}'] .choose.accept").click()
    page.locator("#history summary").click()
    page.locator("#past button").first.click()
    assert list(decisions(page)) == labels[2:]
    page.locator(f"[data-label='{labels[2]}'] .name").click()
    page.keyboard.press("x")
    assert decisions(page) == {}
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Send, then next").click()
    shown(page, "d1")
    assert stored(table)[3:] == [("d0", label, "withdraw") for label in labels[:2]]
    page.keyboard.press("p")
    shown(page, "d0")
    page.locator("#history summary").click()
    past = page.locator("#past li").all_text_contents()
    assert [one.startswith("Ada took back the decision on ") for one in past] == [False] * 3 + [
        True
    ] * 2
    assert page.locator("#past button").count() == 1  # of the decision that holds
    page.get_by_label("Your name").fill("Ben")
    page.keyboard.press("Tab")
    page.locator(".row[data-decision]").wait_for(state="detached")  # Ben has to decide himself
    page.locator("#labels[aria-busy=false]").wait_for()
    assert not page.locator("#history").is_visible()


def test_a_long_queue_is_reached_part_by_part(visit: Any, table: Path) -> None:
    rows = [
        {"doc_id": f"n{number}", "text": f"congenital inflammation {number}"}
        for number in range(1, 1251)
    ]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = visit(documents="1,250")
    listed = page.locator("#documents button")
    group = page.get_by_role("group", name="Part of the list")
    first = page.get_by_label("First document shown")

    def waits(start: str, last: str, top: str) -> None:
        group.get_by_text(last).wait_for()
        page.locator(f"#documents li:first-child :text-is('{top}')").wait_for()
        assert first.input_value() == start

    waits("1", "–100 of 1,250", "n1")
    page.get_by_role("button", name="Later documents").click()
    waits("101", "–200 of 1,250", "n101")
    listed.last.focus()
    page.keyboard.press("ArrowDown")
    waits("201", "–300 of 1,250", "n201")
    assert "inflammation 201" in page.evaluate("document.activeElement.textContent")
    page.keyboard.press("ArrowUp")
    waits("101", "–200 of 1,250", "n101")
    first.fill("9999")
    first.press("Enter")
    waits("1250", "–1,250 of 1,250", "n1250")
    listed.first.click()
    page.get_by_role("dialog", name="Who are you?").wait_for()
    page.keyboard.type("Ada")
    page.keyboard.press("Enter")
    shown(page, "n1250")
    page.keyboard.press("a")
    page.keyboard.press("n")
    shown(page, "n1")  # the list goes along
    waits("1", "–100 of 1,250", "n1")
    page.locator(".name").first.focus()
    page.keyboard.press("d")
    page.keyboard.type("INFLAMMATION 777")
    page.locator("#documents li:nth-child(2)").wait_for(state="detached")
    assert listed.all_text_contents() == ["undecided: congenital inflammation 777n777"]
    assert not group.is_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    shown(page, "n777")


def test_a_heading_that_the_vocabulary_lacks(visit: Any, table: Path) -> None:
    page = visit()
    begin(page, "Ada")
    options = page.locator("#found [role=option]")
    page.keyboard.press("/")
    label = page.locator(".row").first.get_attribute("data-label")
    page.keyboard.type(label[:-1])
    page.get_by_text(f"Propose “{label[:-1]}” as a new heading").wait_for()
    assert options.first.get_attribute("aria-selected") == "true"
    page.keyboard.type(label[-1])  # the whole name of a label
    page.get_by_text("Propose").wait_for(state="detached")
    page.keyboard.press("Control+a")
    page.keyboard.type(EVIL)
    page.get_by_text("No label has this name.").wait_for()
    kept = table.with_name("new.proposals.jsonl")
    page.keyboard.press("Enter")  # nothing is chosen yet
    page.keyboard.press("ArrowDown")
    assert (kept.read_bytes(), options.first.get_attribute("aria-selected")) == (b"", "true")
    page.keyboard.press("Enter")
    page.get_by_text("is proposed to the editors").wait_for()
    (row,) = [json.loads(one) for one in kept.open()]
    assert [row[name] for name in ("proposed", "doc_id", "who")] == [EVIL, "d0", "Ada"]
    assert decisions(page) == {}


def test_two_people_and_their_conflict(visit: Any) -> None:
    ada, ben = visit(), visit()
    begin(ada, EVIL)
    label = ada.locator(".row.current").get_attribute("data-label")
    ada.keyboard.press("a")
    ada.keyboard.press("n")
    shown(ada, "d1")
    ben.keyboard.press("n")
    ben.keyboard.type("Ben")
    ben.keyboard.press("Enter")
    ben.locator(".row").first.wait_for()
    ben.locator("#documents button").first.click()
    shown(ben, "d0")
    row = ben.locator(f"[data-label='{label}']")
    assert row.locator(".said").text_content() == ""  # Ben has to decide himself
    ben.keyboard.press("r")
    ben.get_by_role("button", name="Send, then next").click()
    ben.get_by_text("people disagree on 1").wait_for()
    ben.get_by_label("Which documents are listed").select_option("Conflicts")
    ben.locator("#documents li:nth-child(2)").wait_for(state="detached")
    ben.locator("#documents button").click()
    shown(ben, "d0")
    row.get_by_text(f"{EVIL} ✓").wait_for()  # a name is no markup
    assert row.get_by_text("people disagree").is_visible()
    ben.locator("#history summary").click()
    past = ben.locator("#past li").all_text_contents()
    assert past[0].startswith(f"{EVIL} accepted ")
    assert "Ben rejected" in past[1]
    assert ben.locator("main img, #queue img").count() == 0


def test_the_name_is_asked_for_once(visit: Any) -> None:
    page = visit()
    page.keyboard.press("n")
    page.get_by_role("button", name="Cancel").click()
    assert page.locator(".row").count() == 0  # nothing is opened without a name
    begin(page, "Ada")
    page.reload()
    page.get_by_text(" of 4 decided").wait_for()
    assert page.get_by_label("Your name").input_value() == "Ada"
    page.keyboard.press("n")
    shown(page, "d0")


def test_a_table_that_is_opened_is_a_queue(visit: Any, tmp_path: Path) -> None:
    page = visit()
    path = tmp_path / "more.csv"
    path.write_text("doc_id,text\nx,asthma\ny,fever\n")
    page.locator("#file").set_input_files(path)
    page.get_by_text("0 of 2 decided").wait_for()
    assert page.get_by_label("Queue", exact=True).locator("option").all_text_contents() == [
        "new.jsonl",
        "more.csv",
    ]
    path.write_text("name;value\n1;2\n")
    page.locator("#file").set_input_files(path)
    page.get_by_role("alert").get_by_text("there is no column").wait_for()
    assert all("Failed to load resource" in one for one in visit.problems)
    visit.problems.clear()
    page.get_by_label("Queue", exact=True).select_option("new.jsonl")
    page.get_by_text("0 of 4 decided").wait_for()


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (375, True)], ids=["desk", "phone"])
def test_accessible_at_every_width(visit: Any, width: int, dark: bool) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="pip install '.[test]'"
    ).Axe()
    page = visit(width, dark=dark)
    found = {}

    def look(name: str) -> None:
        violations = axe.run(page).response["violations"]
        found[name] = [(one["id"], one["nodes"][0]["html"][:200]) for one in violations]
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    look("list")
    page.keyboard.press("n")
    look("name")
    page.keyboard.press("Escape")
    begin(page, "Ada")
    page.keyboard.press("a")
    page.keyboard.press("n")
    shown(page, "d1")
    page.locator("#waiting").evaluate("one => { one.open = true }")
    page.locator("#documents button").first.click()
    shown(page, "d0")
    page.locator("#waiting").evaluate("one => { one.open = true }")
    page.locator("#history summary").click()
    look("history")
    assert found == {name: [] for name in found}
