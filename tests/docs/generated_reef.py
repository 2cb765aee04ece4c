"""The configuration of reef, as its reference shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bubble.amphibian.options import Section
from bubble.reef.settings import ReefConfig
from tests.docs.tables import code, table

__all__ = ["REEF"]


def configuration() -> str:
    """Every key, section by section."""
    return table(("key", "default", "what it is"), _rows())


def _rows() -> Iterator[tuple[str, str, str]]:
    for name, section in ReefConfig.model_fields.items():
        kind = section.annotation
        assert isinstance(kind, type)
        assert issubclass(kind, Section)
        for key, field in kind.model_fields.items():
            yield code(f"{section.alias or name}.{field.alias or key}"), _default(field), field.description or ""


def _default(field: FieldInfo) -> str:
    if field.is_required() or field.default is None or isinstance(field.default, BaseModel):
        return ""
    return code(f"{field.default:g}" if isinstance(field.default, float) else str(field.default))


REEF: Final[Mapping[str, Callable[[], str]]] = {"configuration": configuration}
