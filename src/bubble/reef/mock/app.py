"""The mock agent as an ASGI application: both bindings of both generations, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount

from bubble.protocol.version import VERSION
from bubble.reef.card import Binding, Generation
from bubble.reef.mock.executor import MockExecutor
from bubble.reef.mock.scripts import SCRIPTS

__all__ = ["INTERFACES", "MockInterface", "create_mock_agent"]

_NAME: Final = "Mock agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class MockInterface:
    """One way to talk to it, below `path`; there is also a card there that names only this one."""

    path: str
    binding: Binding
    generation: Generation


INTERFACES: Final = (
    MockInterface(path="/1.0/rest", binding="HTTP+JSON", generation="1.0"),
    MockInterface(path="/1.0/rpc", binding="JSONRPC", generation="1.0"),
    MockInterface(path="/0.3/rpc", binding="JSONRPC", generation="0.3"),
    MockInterface(path="/0.3/rest", binding="HTTP+JSON", generation="0.3"),
)


def create_mock_agent(url: str, *, pace: float = 0.05) -> Starlette:
    """The application, for a server that is reached at `url`. `pace` is the seconds between two pieces of an answer."""
    card = _card(url, INTERFACES)
    handler = DefaultRequestHandler(
        agent_executor=MockExecutor(pace=pace), task_store=InMemoryTaskStore(), agent_card=card
    )
    routes: list[BaseRoute] = [*create_agent_card_routes(card)]
    for interface in INTERFACES:
        own = create_agent_card_routes(_card(url, [interface]))
        routes.append(Mount(interface.path, routes=[*own, *_routes(interface, handler)]))
    return Starlette(routes=routes)


def _routes(interface: MockInterface, handler: DefaultRequestHandler) -> Iterator[BaseRoute]:
    is_older = interface.generation == "0.3"
    if interface.binding == "JSONRPC":
        yield from create_jsonrpc_routes(handler, rpc_url="/", enable_v0_3_compat=is_older)
    else:
        yield from create_rest_routes(handler, enable_v0_3_compat=is_older)


def _card(url: str, interfaces: Sequence[MockInterface]) -> AgentCard:
    return AgentCard(
        name=_NAME,
        description="Answers as the first word of the prompt says.",
        version=VERSION,
        supported_interfaces=[
            AgentInterface(
                url=f"{url}{each.path}/" if each.binding == "JSONRPC" else f"{url}{each.path}",
                protocol_binding=each.binding,
                protocol_version=each.generation,
            )
            for each in interfaces
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[
            AgentSkill(id=name, name=name, description=f"What `{name}` does.", tags=["mock"])
            for name in sorted(SCRIPTS)
        ],
    )
