"""Published conformance checks for every kind of component: `pytest --pyargs plant_cli.testing
--plant-plugin NAME`.

A check is a function of a spec that raises AssertionError with a sentence. Each runs as one test of
one component.
"""
