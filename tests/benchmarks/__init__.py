"""Benchmarks, each a command: `python -m tests.benchmarks.NAME`. Threads wait as they do under
`plant`.
"""

from plant_cli.runs.machine import limit_spinning

limit_spinning()  # before any of them loads torch
