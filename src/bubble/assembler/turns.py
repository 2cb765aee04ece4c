"""One operation after the other, in the order in which they were called.

A turn is taken at once where nobody has it. It only has to be waited for while an operation before it waits for a part handler that is a
coroutine function; that waiting is the one thing for which this package needs an event loop.
"""

from __future__ import annotations

from asyncio import Lock as Turns  # fair: who waits longest is next

__all__ = ["Turns"]
