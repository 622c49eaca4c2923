"""The faults put in by hand are alive: each old text occurs once in the sources, and a test
file concerns its module.
"""

from __future__ import annotations

import ast

import pytest

from tests.faults.by_hand import Fault, find_tests, read_faults

FAULTS = read_faults()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_fault_changes_one_place_and_the_module_can_still_be_read(fault: Fault) -> None:
    module, text = fault.locate()
    ast.parse(text)
    assert find_tests(module)


def test_there_are_a_hundred_faults_of_three_subjects() -> None:
    subjects = [fault.subject for fault in FAULTS]
    assert {subject: subjects.count(subject) for subject in subjects} == {
        "numerics": 45,
        "runs": 25,
        "scoring": 30,
    }
    assert len({fault.name for fault in FAULTS}) == 100
