"""Comparing plain JSON data."""

from __future__ import annotations

__all__ = ["equal"]


def equal(one: object, other: object) -> bool:
    """Whether two values are the same data, however deep they are."""
    try:
        return one == other
    except RecursionError:
        return _equal_without_recursion(one, other)


def _equal_without_recursion(one: object, other: object) -> bool:
    todo = [(one, other)]
    while todo:
        left, right = todo.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            todo.extend((value, right[key]) for key, value in left.items())
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            todo.extend(zip(left, right, strict=True))
        elif left != right:
            return False
    return True
