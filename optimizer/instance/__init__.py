"""The instance file: its shape, its reading, its defaults.

``Instance`` is loaded when it is first asked for: a faulty file is reported without loading pydantic.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optimizer.instance.model import FORMAT_VERSION, Instance

__all__ = ["FORMAT_VERSION", "Instance"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from optimizer.instance import model

        return getattr(model, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
