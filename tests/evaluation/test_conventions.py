"""Finding a convention by name."""

import pytest

from plant_cli.api import UsageError
from plant_cli.evaluation.conventions import CONVENTIONS, find_convention


def test_each_is_found_and_says_what_it_does():
    for name in ("plant", "paper", "xmlrepo", "caml", "libmultilabel", "annif"):
        assert find_convention(name) is CONVENTIONS[name]
        assert CONVENTIONS[name].summary


def test_a_misspelt_one_gets_a_near_name():
    with pytest.raises(UsageError) as caught:
        find_convention("xmlrep")
    assert "did you mean 'xmlrepo'?" in caught.value.expected
