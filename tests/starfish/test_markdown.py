"""Markdown becomes HTML that cannot do anything, and growing text becomes what the whole text would be."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubble.starfish.markdown import DEEPEST, LONGEST_BLOCK, SCHEMES, markdown_html
from bubble.starfish.rendering import GrowingHtml, HtmlMessages
from tests.starfish.hostile import HOSTILE

ELEMENTS = {
    *("a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"),
    *("s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
ATTRIBUTES = {"href", "title", "target", "rel", "start", "align", "class"}


class Inspector(HTMLParser):
    """Notes what is not on the list."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.wrong += [tag] if tag not in ELEMENTS else []
        for name, value in attrs:
            self.wrong += [f"{tag} {name}"] if name not in ATTRIBUTES else []
            if name == "href" and (value or "").partition(":")[0].lower() not in SCHEMES:
                self.wrong.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        self.text += data


def inspected(html: str) -> Inspector:
    inspector = Inspector()
    inspector.feed(html)
    inspector.close()
    return inspector


def shown(text: str) -> str:
    return inspected(render(text)).text


def render(text: str) -> str:
    message = {"id": "m", "parts": [{"type": "text", "text": text, "state": "done"}]}
    parts: Any = HtmlMessages().shown(message)["parts"]  # type: ignore[arg-type]
    return str(parts[0]["html"])


@pytest.mark.requirement("SF-01")
@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_hostile_comes_through(text: str) -> None:
    assert inspected(render(text)).wrong == []


def test_there_are_at_least_sixty_hostile_texts() -> None:
    assert len(set(HOSTILE)) == len(HOSTILE) >= 60


@pytest.mark.requirement("SF-01")
@given(st.text(alphabet="<>\"'&;:/()[]!`*_~#|-\\\n\t abhijprstv=x\x00\u202e", max_size=120))
def test_no_text_at_all_makes_an_element_that_is_not_on_the_list(text: str) -> None:
    assert inspected(markdown_html(text)).wrong == []


@pytest.mark.requirement("SF-02")
def test_an_image_is_a_link_that_opens_elsewhere_and_tells_nothing() -> None:
    link = '<a href="https://x.example/a.png" target="_blank" rel="noopener noreferrer">a cat</a>'
    assert markdown_html("![a cat](https://x.example/a.png)") == f"<p>{link}</p>\n"


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**b** _i_ ~~s~~ `c`", "<p><strong>b</strong> <em>i</em> <s>s</s> <code>c</code></p>\n"),
        ("one\ntwo", "<p>one<br>\ntwo</p>\n"),
        ("```py\nx\n```", '<pre><code class="language-py">x\n</code></pre>\n'),
        ("3. c", '<ol start="3">\n<li>c</li>\n</ol>\n'),
    ],
)
def test_markdown_is_shown(text: str, html: str) -> None:
    assert markdown_html(text) == html


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("see https://x.example/a_b?c=d.", "https://x.example/a_b?c=d"),
        ("(https://x.example/a)", "https://x.example/a"),
        ("**https://x.example**", "https://x.example"),
    ],
)
def test_an_address_in_a_text_is_a_link(text: str, address: str) -> None:
    assert f'<a href="{address}" target="_blank" rel="noopener noreferrer">{address}</a>' in markdown_html(text)
    assert "<a" not in markdown_html(f"`{address}`")


BLOCKS = st.sampled_from(
    [
        "a *b*\n",
        "\n",
        "- x\n",
        "  - y\n",
        "1. z\n",
        "```\n",
        "    code\n",
        "> q\n",
        "# h\n",
        "---\n",
        "===\n",
        "|a|b|\n",
        "|-|-|\n",
        "w",
    ]
)


@pytest.mark.requirement("SF-03")
@given(st.lists(BLOCKS, max_size=14).map("".join), st.lists(st.integers(0, 60), max_size=6))
def test_a_text_that_grew_is_shown_like_one_that_was_there_at_once(text: str, cuts: list[int]) -> None:
    growing = GrowingHtml()
    for cut in sorted(cuts):
        growing.render(text[:cut])
    assert growing.render(text) == GrowingHtml().render(text) == markdown_html(text)


@pytest.mark.requirement("SF-03")
@given(st.lists(BLOCKS, max_size=14).map("".join))
def test_a_text_in_pieces_is_shown_like_the_parser_shows_the_whole(text: str) -> None:
    from bubble.starfish import markdown

    assert markdown_html(text) == markdown._safe(markdown._render(markdown._PARSER.parse(text)))


@pytest.mark.requirement("SF-03")
def test_what_is_settled_is_not_rendered_again() -> None:
    growing = GrowingHtml()
    growing.render("one\n\ntwo\n\nthree\n")
    assert "".join(growing._html) == "<p>one</p>\n<p>two</p>\n"


@pytest.mark.parametrize(
    "text", ["word " * LONGEST_BLOCK, "- " * DEEPEST + "deep", "x\n\n" * LONGEST_BLOCK, "[" * 2_000]
)
def test_what_is_too_long_or_too_deep_is_shown_as_it_was_written(text: str) -> None:
    assert "".join(shown(text).split()) == "".join(text.split())


def test_half_an_emoji_is_shown_as_something_missing() -> None:
    assert markdown_html("") == ""
    assert "�" in render("a \ud83d")


@pytest.mark.requirement("SF-01")
def test_html_that_a_producer_brings_along_is_never_passed_on() -> None:
    planted = {"type": "data-bubble-artifact", "data": {"artifactId": "a"}, "html": "<img src=x onerror=pwned()>"}
    message = {"id": "m", "parts": [planted, {"type": "text", "text": "a", "html": "<b>"}], "metadata": {}}
    parts: Any = HtmlMessages().shown(message)["parts"]  # type: ignore[arg-type]
    assert "html" not in parts[0]
    assert parts[1]["html"] == "<p>a</p>\n"


def test_parts_without_text_are_left_alone_and_the_message_is_not_touched() -> None:
    tool = {"type": "tool-look", "input": {"html": "<b>"}}
    message = {"id": "m", "parts": [tool, {"type": "reasoning", "text": "*so*", "id": "1"}], "metadata": {}}
    result = HtmlMessages().shown(message)  # type: ignore[arg-type]
    assert result["parts"] == [tool, {"type": "reasoning", "id": "1", "html": "<p><em>so</em></p>\n"}]
    assert message["parts"] == [tool, {"type": "reasoning", "text": "*so*", "id": "1"}]
