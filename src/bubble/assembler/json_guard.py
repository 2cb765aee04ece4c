"""The original's guard against objects that would change a prototype in JavaScript.

A value is refused as a whole where an object in it, at any depth, has a member `__proto__`, or a member `constructor` that is an object
with a member `prototype`. Python has no need of it; a reader that is to show the same values has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bubble.protocol.jsontext import JSONValue

__all__ = ["GUARDED", "Guard", "is_guarded"]

_PROTO, _CONSTRUCTOR, _PROTOTYPE = "__proto__", "constructor", "prototype"
GUARDED: Final = frozenset({_PROTO, _PROTOTYPE})


def is_guarded(value: JSONValue) -> bool:
    """Whether `value` is refused."""
    todo = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            inner = node.get(_CONSTRUCTOR)
            if _PROTO in node or (isinstance(inner, dict) and _PROTOTYPE in inner):
                return True
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)
    return False


class Guard:
    """The same for a value that is being read, which may get rid of what is refused: the last member of a name wins.

    `refused` holds, by the depth of an open container, the names of those of its members in which something is to be refused.
    """

    __slots__ = ("refused",)

    def __init__(self) -> None:
        self.refused: dict[int, set[str]] = {}

    def begin(self, names: Sequence[str]) -> None:
        """The innermost open object gets a member; `names` has the current name of each open container, empty for arrays."""
        depth, name = len(names) - 1, names[-1]
        self._discard(depth, name)
        if name == _PROTO or (name == _PROTOTYPE and depth > 0 and names[depth - 1] == _CONSTRUCTOR):
            self.refused.setdefault(depth, set()).add(name)

    def close(self, names: Sequence[str]) -> None:
        """The innermost open container is finished; `names` are those of the others."""
        if self.refused.pop(len(names), None):
            self.refused.setdefault(len(names) - 1, set()).add(names[-1] if names else "")

    def _discard(self, depth: int, name: str) -> None:
        names = self.refused.get(depth)
        if names is not None:
            names.discard(name)
            if not names:
                del self.refused[depth]
