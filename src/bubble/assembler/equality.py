"""Comparing plain JSON data."""

from __future__ import annotations

__all__ = ["equal"]


def equal(one: object, other: object) -> bool:
    """Whether two values are the same data, however deep they are.

    Python takes 1 for true, for 1.0 and, where it is 0, for -0.0; whoever reads them as JSON sees a difference, and so does this.
    """
    todo = [(one, other)]
    while todo:  # not by recursion: data may nest deeper than Python's stack
        left, right = todo.pop()
        if left is right:
            continue
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            todo.extend((value, right[key]) for key, value in left.items())
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            todo.extend(zip(left, right, strict=True))
        elif type(left) is not type(right) or left != right or (left == 0 and str(left) != str(right)):
            return False
    return True
