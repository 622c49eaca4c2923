"""How OpenMP's threads wait for one another: briefly, so that training beside other work does not hold the cores that the others need.

A thread that waits spins: it keeps its core busy until there is work again. GNU's OpenMP, which torch's wheels for Linux carry, spins for
300,000 rounds before it sleeps, LLVM's for 200 ms. Beside other processes most of the time goes there.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

WAITING = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "0"}
"""What is set: rounds of waiting before a thread sleeps (GNU), milliseconds (LLVM and Intel)."""
CHOICES = (*WAITING, "OMP_WAIT_POLICY")
"""Any of these shows that the user has decided how threads wait."""


def limit_spinning(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let waiting threads sleep soon, unless the environment says how they wait. OpenMP reads it when torch is loaded, and never again."""
    if not any(environment.get(name) for name in CHOICES):
        environment.update(WAITING)


def describe_waiting(environment: MutableMapping[str, str] = os.environ) -> str:
    """How threads wait in this process, and who decided it."""
    given = {name: environment[name] for name in CHOICES if environment.get(name)}
    shown = ", ".join(f"{name}={value}" for name, value in given.items())
    if not given:
        return "as OpenMP does by default: they keep their cores busy"
    return f"{shown} (set by plant: short, for the sake of other processes)" if given == WAITING else f"{shown} (set by you)"
