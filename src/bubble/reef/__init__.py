"""Reef: the bridge that lets any A2A agent take part in threads, as a bot principal. Knows amphibian, the runtime of connectors."""
