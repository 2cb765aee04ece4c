"""Every link of the documentation leads somewhere, and every page is reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, anchors, links, pages

OUTSIDE = ("http://", "https://")


def target_of(page: Path, link: str) -> tuple[Path, str]:
    path, _, anchor = link.partition("#")
    return (page.parent / path).resolve() if path else page, anchor


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in links(page):
        if link.startswith(OUTSIDE):
            continue
        target, anchor = target_of(page, link)
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, todo = set[Path](), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        todo += [target_of(page, link)[0] for link in links(page) if not link.startswith(OUTSIDE)]
    assert set(pages()) <= reached


def test_what_the_architecture_names_is_there() -> None:
    source = ROOT / "src" / "bubble"
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = {path.name for path in source.iterdir() if (path / "__init__.py").is_file()}
    assert {name for name in packages if f"`{name}`" not in text} == set()
