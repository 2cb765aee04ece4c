"""The load: raw non-blocking sockets, requests made beforehand; bytes are counted and verified, nothing is decoded meanwhile."""
