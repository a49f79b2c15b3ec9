"""The base of every part of a plan."""

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    """Base of every part of a plan."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")
