"""Plain JSON data: copies of it, and what is none."""

from __future__ import annotations

from bubble.protocol.jsontext import JSONValue

__all__ = ["copied", "is_plain"]


def copied(value: JSONValue) -> JSONValue:
    """`value` with every object and array made anew; not by recursion, so that depth does not matter."""
    holder: list[JSONValue] = [value]
    todo: list[list[JSONValue] | dict[str, JSONValue]] = [holder]

    def outside_copied(inner: JSONValue) -> JSONValue:
        if not isinstance(inner, dict | list):
            return inner
        copy = inner.copy()
        todo.append(copy)
        return copy

    while todo:
        container = todo.pop()
        if isinstance(container, list):
            container[:] = [outside_copied(inner) for inner in container]
        else:
            container.update({name: outside_copied(inner) for name, inner in container.items()})
    return holder[0]


def is_plain(value: object) -> bool:
    """Whether `value` is made of what JSON has, and can be written down: it does not contain itself."""
    around: set[int] = set()  # the containers that the next value is in, by identity
    todo: list[tuple[object, bool]] = [(value, False)]
    while todo:
        node, is_left = todo.pop()
        if is_left:
            around.remove(id(node))
        elif isinstance(node, dict | list | tuple):
            if id(node) in around or (isinstance(node, dict) and not all(isinstance(name, str) for name in node)):
                return False
            around.add(id(node))
            todo.append((node, True))
            todo.extend((inner, False) for inner in (node.values() if isinstance(node, dict) else node))
        elif node is not None and not isinstance(node, str | int | float):
            return False
    return True
