"""The dialects of A2A that agents in the field speak: two generations over two bindings, a module each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bubble.reef.card import Binding, Generation, Interface
from bubble.reef.dialects.base import Dialect, Request
from bubble.reef.dialects.jsonrpc03 import JsonRpc03
from bubble.reef.dialects.jsonrpc10 import JsonRpc10
from bubble.reef.dialects.rest03 import Rest03
from bubble.reef.dialects.rest10 import Rest10

__all__ = ["DIALECTS", "Dialect", "Request", "dialect_of"]

DIALECTS: Final[Mapping[tuple[Generation, Binding], type[Dialect]]] = {
    ("0.3", "JSONRPC"): JsonRpc03,
    ("0.3", "HTTP+JSON"): Rest03,
    ("1.0", "JSONRPC"): JsonRpc10,
    ("1.0", "HTTP+JSON"): Rest10,
}


def dialect_of(interface: Interface) -> Dialect:
    """The dialect that the interface takes."""
    return DIALECTS[interface.generation, interface.binding](interface)
