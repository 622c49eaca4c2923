"""What the page shows, read from its elements."""

from __future__ import annotations


def lit(page):
    """The words that are lit, each with what the network and the scorers say."""
    words = page.locator(".word[data-network], .word[data-scorers]").all()
    return [
        (
            word.text_content(),
            word.get_attribute("data-network"),
            word.get_attribute("data-scorers"),
        )
        for word in words
    ]


def spoken(page):
    """The labels that are marked, with the log-odds shown."""
    return {
        one.get_attribute("data-label"): one.locator(".speaks").text_content()
        for one in page.locator(".row.spoken, .row.against").all()
    }


def decisions(page):
    return {
        one.get_attribute("data-label"): one.get_attribute("data-decision")
        for one in page.locator(".row[data-decision]").all()
    }


def status(page):
    return page.get_by_role("status").text_content()


def bands(page):
    """The labels by their band."""
    return {
        band.locator("h3").text_content(): [
            one.get_attribute("data-label") for one in band.locator(".row").all()
        ]
        for band in page.locator(".band:not([hidden])").all()
    }
