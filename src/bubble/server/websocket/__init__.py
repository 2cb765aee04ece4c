"""The WebSocket: a session without I/O, the driver that acts on it, and two skins (plain ASGI, and uvicorn's transport)."""
