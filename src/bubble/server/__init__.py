"""The server: settings, the ASGI application, its routes and streams."""

from __future__ import annotations
