"""Numbers on the command line."""

import math
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """A range of finite numbers: every comparison with ``nan`` is false, so click's own range lets it through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Refuse ``nan`` and infinities, then what lies outside the range."""
        number: float = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return float(super().convert(number, param, ctx))
