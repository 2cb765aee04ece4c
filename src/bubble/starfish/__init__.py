"""Starfish, the page in the browser: its templates and files, and messages as HTML."""
