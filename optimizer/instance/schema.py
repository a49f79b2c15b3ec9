"""The JSON Schema of an instance: generated from the shapes, committed, read by the checker, served to editors.

``python -m optimizer.instance.schema`` writes the committed file again after a change of a shape.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

INSTANCE_SCHEMA: Final = Path(__file__).parent.parent / "schema" / "instance.schema.json"

#: Dialect that pydantic writes.
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


@cache
def committed() -> dict[str, Any]:
    """The committed schema of an instance, without loading any shape."""
    schema: dict[str, Any] = json.loads(INSTANCE_SCHEMA.read_text(encoding="utf-8"))
    return schema


def generated() -> dict[str, Any]:
    """The schema of an instance as its shapes say it now."""
    from optimizer.instance.model import Instance

    return of_shape(Instance)


def of_shape(shape: Any, *, mode: str = "validation") -> dict[str, Any]:
    """Schema of a pydantic shape, without the titles that repeat the names of the keys."""
    return {"$schema": _DIALECT, **_tidy(shape.model_json_schema(mode=mode))}


def _tidy(schema: dict[str, Any]) -> dict[str, Any]:
    for name, inner in schema.get("properties", {}).items():
        inner.pop("title", None)
        # A section that is left out has the defaults of its own keys; repeating them all here helps no reader.
        if isinstance(inner.get("default"), dict):
            inner["default"] = {}
        schema["properties"][name] = inner
    for inner in schema.get("$defs", {}).values():
        _tidy(inner)
    return schema


def as_text(schema: dict[str, Any]) -> str:
    """A schema as it is committed and printed."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    INSTANCE_SCHEMA.write_text(as_text(generated()), encoding="utf-8")
