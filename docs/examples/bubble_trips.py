"""Two kinds of parts for those who travel together: places, and checklists that grow."""

from collections.abc import Mapping
from typing import Any

from bubble.extensions import Extension

Part = Mapping[str, Any]


class Places:
    """`{"kind": "place", "name": …, "latitude": …, "longitude": …}`: a spot on a map."""

    kind = "place"

    def to_chunks(self, part: Part) -> list[Part]:
        spot = {"name": part["name"], "latitude": float(part["latitude"]), "longitude": float(part["longitude"])}
        return [{"type": "data-trips-place", "data": spot}]

    def from_ui_part(self, part: Part) -> Part | None:
        return {"kind": "place", **part["data"]} if part["type"] == "data-trips-place" else None


class Checklists:
    """`{"kind": "checklist", "listId": …, "item": …, "done"?: …}`: one line of a list, new or ticked off."""

    kind = "checklist"

    def to_chunks(self, part: Part) -> list[Part] | None:
        if not (isinstance(part["listId"], str) and isinstance(part["item"], str)):
            return None
        return [{"type": "data-trips-checklist", "id": part["listId"], "data": self.fold(part, None)}]

    def fold(self, part: Part, current: Any) -> Any:
        return {**(current or {}), part["item"]: part.get("done") is True}

    def from_ui_part(self, part: Part) -> None:
        return None


EXTENSION = Extension(name="trips", version=1, part_handlers=(Places(), Checklists()))
