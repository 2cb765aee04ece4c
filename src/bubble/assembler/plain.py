"""Copying plain JSON data."""

from __future__ import annotations

from bubble.protocol.jsontext import JSONValue

__all__ = ["copied"]


def copied(value: JSONValue) -> JSONValue:
    """`value` with every object and array made anew; not by recursion, so that depth does not matter."""
    holder: list[JSONValue] = [value]
    todo: list[list[JSONValue] | dict[str, JSONValue]] = [holder]
    while todo:
        container = todo.pop()
        places = range(len(container)) if isinstance(container, list) else list(container)
        # The places are those of this very container, which a checker cannot follow through the union: so the index is vouched for here.
        for place in places:
            inner = container[place]  # type: ignore[index]
            if isinstance(inner, (dict, list)):
                container[place] = inner.copy()  # type: ignore[index]
                todo.append(container[place])  # type: ignore[index, arg-type]
    return holder[0]
