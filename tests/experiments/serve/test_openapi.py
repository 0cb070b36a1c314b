"""The OpenAPI document, and requests drawn from it."""

import json

import pytest

from experiments.serve.problems import CODES
from tests.experiments.serve import tiny
from tests.experiments.serve.test_load import Running


def document():
    return tiny.call(tiny.served(), "GET", "/openapi.json").json()


def test_every_route_is_told_with_its_problems():
    told = document()
    for path in ("/v1/move", "/v1/analyze", "/v1/legal", "/v1/validate", "/api/move"):
        route = told["paths"][path]["post"]
        assert "requestBody" in route and (route.get("summary") or route.get("description"))
        statuses = {int(status) for status in route["responses"]}
        assert {status for status, _ in CODES.values()} <= statuses
        content = route["responses"]["422"]["content"]
        assert list(content) == ["application/problem+json"], path
    schema = json.dumps(told["components"]["schemas"]["Move"])
    assert '"additionalProperties": false' in schema
    assert "HTTPValidationError" not in told["components"]["schemas"]


def test_the_page_that_shows_it_is_ours():
    app = tiny.served()
    page = tiny.call(app, "GET", "/api.html")
    assert page.status_code == 200 and "http" not in page.text.replace("http-equiv", "")
    script = tiny.call(app, "GET", "/apidoc.js")
    assert script.status_code == 200 and "openapi.json" in script.text
    assert "innerHTML" not in script.text


@pytest.mark.slow
def test_requests_drawn_from_the_document():
    """Whatever the document allows or forbids gets an answer that it describes."""
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis.specs.openapi import checks

    # that a position is legal, or a model compiled for it, no schema can say
    skipped = [checks.positive_data_acceptance]
    seen = []
    with Running() as running:
        schema = schemathesis.openapi.from_url(f"{running.url}/openapi.json")
        for found in schema.get_all_operations():
            operation = found.ok()
            if operation.path.startswith(("/v1/tables", "/v1/runs")):
                continue  # they have tests of their own
            seen.append(operation.path)

            @given(case=operation.as_strategy())
            @settings(
                max_examples=80, deadline=None, database=None, phases=[Phase.generate],
                suppress_health_check=list(HealthCheck), derandomize=True,
            )  # fmt: skip
            def run(case):
                response = case.call()
                assert response.status_code < 500, response.text
                case.validate_response(response, excluded_checks=skipped)

            run()
        assert running.app.state.service.ready
    assert {"/v1/move", "/v1/analyze", "/v1/legal", "/v1/validate", "/api/move"} <= set(seen)
