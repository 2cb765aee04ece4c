"""Extensions are found by their entry points, whoever wrote them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from bubble import extensions
from bubble.extensions import Extension, installed_extensions

PACKAGE = Path(__file__).with_name("package")

PROGRAM = """
import asyncio, json
from bubble import create_assembler
from bubble.extensions import installed_extensions, installed_part_handlers

extensions = installed_extensions()
assembler = create_assembler(part_handlers=installed_part_handlers())
event = {
    "seq": 1, "createdAt": "2026-05-06T12:34:56.789Z", "type": "message_part", "principalId": "bot", "runId": "r",
    "part": {"kind": "mention", "principalId": "ann"}, "version": "bubble-v1",
}

async def main():
    snapshot = await assembler.assemble([event])
    [part] = await assembler.encode(snapshot.messages[0])
    return [[[one.name, one.version] for one in extensions], snapshot.messages[0]["parts"], [part.version, part.part]]

print(json.dumps(asyncio.run(main())))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which somebody else's distribution is installed."""
    target = tmp_path_factory.mktemp("site")
    install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target"]
    subprocess.run([sys.executable, *install, str(target), str(PACKAGE)], check=True, capture_output=True, timeout=100)
    return target


@pytest.mark.requirement("TA-90", "TA-33", "TA-31")
def test_the_extension_of_another_distribution_is_found_and_used_both_ways(site: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    output = subprocess.check_output([sys.executable, "-c", PROGRAM], env=environment, text=True, timeout=60)
    assert json.loads(output) == [
        [["artifacts", 1], ["mentions", 1]],
        [{"type": "data-app-mention", "id": "mention:ann", "data": {"principalId": "ann"}}],
        ["bubble-v1", {"kind": "mention", "principalId": "ann"}],
    ]


@pytest.mark.requirement("TA-90")
def test_the_bundled_extension_is_installed_with_the_package() -> None:
    assert "artifacts" in [extension.name for extension in installed_extensions()]


def installs(monkeypatch: pytest.MonkeyPatch, **values: object) -> None:
    """Lets these objects be what is announced, by the names of their entry points."""

    class Announced(EntryPoint):
        def load(self) -> object:
            return values[self.name]

    points = EntryPoints(Announced(name, "nowhere:X", extensions.GROUP) for name in values)
    monkeypatch.setattr(extensions, "entry_points", lambda group: points.select(group=group))


@pytest.mark.requirement("TA-90")
def test_extensions_come_in_the_order_of_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    installs(
        monkeypatch,
        b=Extension(name="y", version=1, part_handlers=()),
        a=Extension(name="z", version=2, part_handlers=()),
    )
    assert [extension.name for extension in installed_extensions()] == ["y", "z"]


@pytest.mark.requirement("TA-90")
def test_an_entry_point_that_is_no_extension_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    installs(monkeypatch, wrong="text")
    with pytest.raises(TypeError, match="entry point wrong = nowhere:X"):
        installed_extensions()


@pytest.mark.requirement("TA-90")
def test_two_extensions_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    installs(monkeypatch, **{name: Extension(name="same", version=1, part_handlers=()) for name in ("a", "b")})
    with pytest.raises(ValueError, match='two extensions with the name "same"'):
        installed_extensions()
