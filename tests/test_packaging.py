"""What leaves the house: the wheel holds the whole package, and the locks fit the metadata."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import bubble

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "bubble"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = ("base", "build", "dev")


def pinned(lock: str) -> set[str]:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
    return {name.lower() for name in re.findall(r"^([\w.-]+)==", text, flags=re.MULTILINE)}


def named(requirements: list[str | dict[str, str]]) -> set[str]:
    return {re.split(r"[^\w.-]", text, maxsplit=1)[0].lower() for text in requirements if isinstance(text, str)}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(out), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, text=True, timeout=100)
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    expected = {path.relative_to(PACKAGE.parent).as_posix() for path in files}
    with zipfile.ZipFile(wheel) as archive:
        assert expected <= set(archive.namelist())


def test_the_wheel_says_that_it_is_typed_and_under_which_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert "bubble/py.typed" in names
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_the_installed_version_is_the_one_of_the_metadata() -> None:
    assert metadata.version("bubble-threads") == bubble.__version__


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_in_a_lock_has_a_hash_and_no_address(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
    pins = [pin for pin in re.split(r"\n(?=\S)", text) if not pin.startswith("#")]
    assert [pin for pin in pins if "--hash=sha256:" not in pin] == []
    assert re.search(r"://|--index|--find-links|file:", text) is None


def test_the_base_lock_pins_what_the_package_and_its_demonstration_need() -> None:
    agent = PROJECT["project"]["optional-dependencies"]["a2a"]
    assert named(PROJECT["project"]["dependencies"] + agent) <= pinned("base")


def test_the_build_lock_pins_what_building_needs() -> None:
    needed = PROJECT["dependency-groups"]["build"] + PROJECT["build-system"]["requires"]
    assert named(needed) <= pinned("build")


def test_the_development_lock_pins_everything() -> None:
    extras = [text for extra in PROJECT["project"]["optional-dependencies"].values() for text in extra]
    needed = named(extras + PROJECT["dependency-groups"]["dev"]) - {"bubble-threads"}
    assert needed | pinned("base") | pinned("build") <= pinned("dev")
