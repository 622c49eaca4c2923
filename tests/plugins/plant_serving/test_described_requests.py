"""Requests made by schemathesis of the server's own OpenAPI description: no mistake of the program,
and no answer that the description does not have.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from starlette.testclient import TestClient

schemathesis = pytest.importorskip("schemathesis")
OPERATIONS = 12  # fewer would mean that the description lost some
CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large,
          HealthCheck.filter_too_much]  # fmt: skip


def ask_all(client: TestClient, examples: int) -> int:
    """Ask each operation with valid and invalid data; how many operations there are."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.generation import GenerationMode
    from schemathesis.specs.openapi import checks

    required = [not_a_server_error, checks.status_code_conformance, checks.content_type_conformance,
                checks.response_schema_conformance, checks.response_headers_conformance]  # fmt: skip
    schema = schemathesis.openapi.from_asgi("/openapi.json", client.app)
    operations = [one.ok() for one in schema.get_all_operations()]
    for operation in operations:
        for mode in GenerationMode:

            @seed(7)
            @settings(
                max_examples=examples,
                deadline=None,
                database=None,
                suppress_health_check=CHECKS,
                phases=[Phase.explicit, Phase.generate],
            )
            @given(operation.as_strategy(generation_mode=mode))
            def ask(case: schemathesis.Case) -> None:
                case.validate_response(case.call(timeout=300), checks=required)

            # what takes nothing cannot be asked wrongly
            with suppress(Unsatisfiable) if mode.is_negative else nullcontext():
                ask()
    assert client.log == []
    return len(operations)


@pytest.mark.slow
def test_answers_are_as_described(client: TestClient) -> None:
    assert ask_all(client, 40) >= OPERATIONS
