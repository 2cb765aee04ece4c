"""Markdown as HTML that a page may take as it is: no script, no style, no request to anywhere.

*Theory of operation.* Three walls stand behind each other. The parser knows no HTML, so tags in a text stay text. What it makes goes
through a sanitiser with a short list of elements and attributes. And the page has a Content-Security-Policy that would stop what came
through both. Images are shown as links: an image from elsewhere would tell its host who reads, and when.

A block that is longer than `LONGEST_BLOCK` is shown as it was written: nobody reads a list of that length, and parsing it again with each
piece that comes would hold up everybody.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

__all__ = ["LONGEST_BLOCK", "Rendered", "markdown_html", "plain_html", "render_blocks"]

#: In characters.
LONGEST_BLOCK: Final = 16 * 1024
#: How deep elements may lie in each other; what is deeper is shown as it was written, for the parser would leave it out.
DEEPEST: Final = 24
#: What looks for the end of a link looks as far as the block reaches, at each bracket anew.
MOST_BRACKETS: Final = 800

SCHEMES: Final = frozenset({"http", "https", "mailto"})
_ELEMENTS: Final = frozenset(
    {"a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"}
    | {"s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"}
)
_ATTRIBUTES: Final = {"a": {"href", "title"}, "code": {"class"}, "ol": {"start"}, "td": {"align"}, "th": {"align"}}
_LANGUAGE: Final = re.compile(r"language-[A-Za-z0-9+#._-]{1,32}")
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"'`\x00-\x1f\u200e\u200f\u202a-\u202e\u2066-\u2069]+", re.IGNORECASE)
_TRAILING: Final = ".,:;!?)]}*_~"
_ALIGNED: Final = re.compile(r"text-align:(left|center|right)")


class Rendered(NamedTuple):
    """HTML of a text. The first `settled` characters make `settled_html`, whatever comes after the text; `rest_html` is the remainder's."""

    settled: int
    settled_html: str
    rest_html: str


def markdown_html(text: str) -> str:
    """The whole of a text."""
    done: list[str] = []
    start = 0
    while True:
        rendered = render_blocks(text, start)
        done.append(rendered.settled_html)
        if rendered.settled == start:
            return "".join([*done, rendered.rest_html])
        start = rendered.settled


def render_blocks(text: str, start: int) -> Rendered:
    """The text from `start` on, where a block begins, as far as `LONGEST_BLOCK` reaches. What is settled never has to be looked at again.

    Blocks are settled as soon as another one follows them on a line that is complete; only the last can still become something else.
    """
    piece = _piece(text, start)
    is_all = start + len(piece) == len(text)
    tokens = _PARSER.parse(piece) if piece.count("[") <= MOST_BRACKETS else None
    if tokens is None or _is_too_deep(tokens):
        return Rendered(start, "", plain_html(piece)) if is_all else Rendered(start + len(piece), plain_html(piece), "")
    lines = [token.map[0] for token in tokens if token.level == 0 and token.nesting >= 0 and token.map is not None]
    complete = piece.count("\n")
    # The block that the incomplete last line begins may turn out to belong to the one before.
    open_from = lines[-1] if lines and lines[-1] < complete else lines[-2] if len(lines) > 1 else 0
    if open_from == 0:
        if is_all:
            return Rendered(start, "", _safe(_render(tokens)))
        return Rendered(start + len(piece), plain_html(piece), "")
    before = [token for token in tokens if _begins_before(token, open_from)]
    cut = _end_of(tokens, before)
    settled = start + _offset_of_line(piece, open_from)
    rest = _safe(_render(tokens[cut:])) if is_all else ""
    return Rendered(settled, _safe(_render(tokens[:cut])), rest)


def plain_html(text: str) -> str:
    """A text as it was written."""
    return f'<pre class="as-written">{html.escape(text, quote=False)}</pre>'


def _is_too_deep(tokens: Sequence[Token]) -> bool:
    return any(token.nesting == 1 and token.level >= DEEPEST - 1 for token in tokens)


def _piece(text: str, start: int) -> str:
    if len(text) - start <= LONGEST_BLOCK:
        return text[start:]
    end = text.rfind("\n", start, start + LONGEST_BLOCK) + 1
    return text[start : end or start + LONGEST_BLOCK]


def _begins_before(token: Token, line: int) -> bool:
    return token.level == 0 and token.nesting >= 0 and token.map is not None and token.map[0] < line


def _end_of(tokens: Sequence[Token], before: Sequence[Token]) -> int:
    if not before:
        return 0
    last = max(index for index, token in enumerate(tokens) if token is before[-1])
    while tokens[last].nesting == 1 or tokens[last].level > 0:
        last += 1
    return last + 1


def _offset_of_line(text: str, line: int) -> int:
    at = 0
    for _ in range(line):
        at = text.index("\n", at) + 1
    return at


def _render(tokens: Sequence[Token]) -> str:
    return str(_PARSER.renderer.render(tokens, _PARSER.options, {}))


def _safe(unsafe: str) -> str:
    return nh3.clean(
        unsafe,
        tags=set(_ELEMENTS),
        attributes={name: set(allowed) for name, allowed in _ATTRIBUTES.items()},
        attribute_filter=_filter,
        url_schemes=set(SCHEMES),
        link_rel="noopener noreferrer",
        set_tag_attribute_values={"a": {"target": "_blank"}},
        strip_comments=True,
    )


def _filter(element: str, attribute: str, value: str) -> str | None:
    if element == "code":
        return value if _LANGUAGE.fullmatch(value) else None
    if attribute == "href":
        return value if value.partition(":")[0].lower() in SCHEMES else None
    return value


# --- the parser -----------------------------------------------------------------------------------------------------------------


def _image(self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    label = html.escape(self.renderInlineAsText(token.children, options, env) or "image")
    source = html.escape(str(token.attrGet("src") or ""))
    return f'<a href="{source}">{label}</a>'


def _align(self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    style = token.attrs.pop("style", None)
    if style is not None and (found := _ALIGNED.fullmatch(str(style))):
        token.attrs["align"] = found[1]
    return self.renderToken(tokens, index, options, env)


def _link_addresses(state: StateCore) -> None:
    """Addresses that stand in a text become links. In one pass, so that no text is too long for it."""
    for block in state.tokens:
        if block.type == "inline" and block.children:
            block.children = _with_links(block.children)


def _with_links(tokens: Sequence[Token]) -> list[Token]:
    linked: list[Token] = []
    depth = 0
    for token in tokens:
        depth += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        linked += [token] if depth or token.type != "text" else _split(token)
    return linked


def _split(token: Token) -> list[Token]:
    pieces: list[Token] = []
    at = 0
    for found in _ADDRESS.finditer(token.content):
        address = found[0].rstrip(_TRAILING)
        pieces += [_text(token.content[at : found.start()], token.level), *_link(address, token.level)]
        at = found.start() + len(address)
    return [*pieces, _text(token.content[at:], token.level)] if pieces else [token]


def _text(content: str, level: int) -> Token:
    return Token("text", "", 0, content=content, level=level)


def _link(address: str, level: int) -> list[Token]:
    begin = Token("link_open", "a", 1, attrs={"href": address}, level=level)
    return [begin, _text(address, level + 1), Token("link_close", "a", -1, level=level)]


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": DEEPEST})
    parser.enable(["table", "strikethrough"])
    # A definition could change blocks that were settled long before it came.
    parser.disable(["reference", "html_block", "html_inline"])
    parser.core.ruler.push("addresses", _link_addresses)
    parser.add_render_rule("image", _image)
    parser.add_render_rule("td_open", _align)
    parser.add_render_rule("th_open", _align)
    return parser


_PARSER: Final = _make_parser()
