"""`bubble reef --config CONFIG`, in a new child for each line on standard input: `python -m tests.reef.bridge CONFIG`."""

from __future__ import annotations

import sys
from pathlib import Path

import bubble.reef.running  # noqa: F401 - loaded once, before there are children
from bubble.cli.reef import reef
from tests.amphibian.nursery import fork_for_each_line

if __name__ == "__main__":
    fork_for_each_line(lambda: reef(config=Path(sys.argv[1])))
