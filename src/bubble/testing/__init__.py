"""The public test kit: the store suite, a server in the test's own process, ASGI without a network, pytest fixtures."""

from __future__ import annotations
