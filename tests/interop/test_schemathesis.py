"""schemathesis against `/openapi.json` of a real server: whatever it thinks of, no 5xx and no answer that the document does not tell.

The server is a process of its own. Its threads and principals are made beforehand, so that requests get past "not found"; operations that
destroy what others need get names of their own.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

schemathesis = pytest.importorskip("schemathesis")

from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402
from schemathesis import Case  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.generation import GenerationMode  # noqa: E402
from schemathesis.schemas import APIOperation  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    allow_header_conformance,
    content_type_conformance,
    ignored_auth,
    missing_required_header,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from schemathesis.specs.openapi.schemas import OpenApiSchema  # noqa: E402

from bubble.server.routes import OPERATIONS  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.requirement("PR-6-05", "PR-6-04")]

CHILD = Path(__file__).parents[1] / "server" / "child.py"
ADMIN_TOKEN = "t" * 40
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    missing_required_header,
    unsupported_method,
    allow_header_conformance,
    ignored_auth,
]
AnyCase = Case[APIOperation[Any, Any, Any, Any]]
THREADS = [f"t{number}" for number in range(4)]
DOOMED = [f"doomed{number}" for number in range(200)]
PEOPLE = ["alice", "bot"]
EXAMPLES = 12


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """A server with something in it."""
    options = {
        "port": 0,
        "store": "memory:",
        "admin_token": ADMIN_TOKEN,
        "log": {"level": "error"},
        "rates": {"requests_per_second": 0},
    }
    process = subprocess.Popen([sys.executable, str(CHILD), json.dumps(options)], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        address = str(json.loads(process.stdout.readline())["url"])
        _fill(address)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=15)
        if process.stdout is not None:
            process.stdout.close()


def _fill(address: str) -> None:
    with httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"}) as admin:

        def put(path: str, body: object) -> None:
            assert admin.post(path, json=body).status_code == 201

        put("/v1/principals", {"principalId": "alice", "kind": "user", "displayName": "Alice"})
        put("/v1/principals", {"principalId": "bot", "kind": "bot", "displayName": "Bot", "ownerPrincipalId": "alice"})
        for thread in (*THREADS, *DOOMED):
            put("/v1/threads", {"threadId": thread, "participants": [{"principalId": "alice", "role": "owner"}]})
        for thread in THREADS:
            put(f"/v1/threads/{thread}/events", {"type": "run_started", "principalId": "admin", "runId": "r"})


@pytest.fixture(scope="session")
def api(url: str) -> OpenApiSchema:
    """What the server says it is."""
    schema: OpenApiSchema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    return schema


def _lead_somewhere(case: AnyCase, *, chance: random.Random, doomed: Iterator[str]) -> None:
    """Most of the time, names what is there. A stream of a thread that is there would have no end."""
    parameters = case.path_parameters
    operation = case.operation.definition.raw["operationId"]
    if operation in ("streamEvents", "streamMessages"):
        parameters["threadId"] = "nowhere"
        return
    if not parameters or chance.random() < 0.2 or operation == "importThread":
        return
    if "threadId" in parameters:
        parameters["threadId"] = next(doomed, "t0") if operation == "deleteThread" else chance.choice(THREADS)
    if "principalId" in parameters:
        parameters["principalId"] = chance.choice(PEOPLE)


def _runs() -> Iterator[tuple[str, GenerationMode]]:
    """Each operation with what fits its document, and with what does not where there is anything to get wrong."""
    for operation in OPERATIONS:
        yield operation.name, GenerationMode.POSITIVE
        if operation.parameters or operation.query or operation.takes_body:
            yield operation.name, GenerationMode.NEGATIVE


@pytest.mark.parametrize(("name", "mode"), list(_runs()))
def test_no_operation_answers_what_it_does_not_tell(api: OpenApiSchema, name: str, mode: GenerationMode) -> None:
    operation = api.find_operation_by_id(name)
    chance, doomed = random.Random(name), iter(DOOMED)  # noqa: S311 - repeatable

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=mode))
    def holds(case: AnyCase) -> None:
        if mode is GenerationMode.POSITIVE:
            _lead_somewhere(case, chance=chance, doomed=doomed)
            if "waitMs" in (case.query or {}):
                case.query["waitMs"] = 1
        case.call_and_validate(headers={"Authorization": f"Bearer {ADMIN_TOKEN}"}, checks=CHECKS, timeout=20)

    holds()
