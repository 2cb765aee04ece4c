"""The store in plain Python: for tests and for demos that may forget everything.

`state` holds what there is, `outbox` tells what happened, `threads` and `people` change the state, `store` is the contract.
"""

from __future__ import annotations

from bubble.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
