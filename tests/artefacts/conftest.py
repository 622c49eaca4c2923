"""Relevance for the tests of its files."""

from tests.relevance.conftest import joined

__all__ = ["joined"]
