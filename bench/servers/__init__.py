"""The servers that are measured, each in a process of its own: the product, the product behind plain ASGI, and next to nothing."""
