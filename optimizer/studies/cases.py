"""Best plans of an instance's neighbours, each solved once; and what makes two plans the same choice."""

from collections.abc import Callable, Mapping
from typing import Any

from optimizer.errors import InputError, UsageProblems
from optimizer.instance.field_paths import FieldPath, with_values
from optimizer.instance.model import Instance
from optimizer.next_best import Things
from optimizer.plan import Plan
from optimizer.ranking import KINDS, things_of
from optimizer.studies.best import best_plan

NOTHING_FITS = "nothing fits"


class Stopped(Exception):  # noqa: N818 - it reports how a search ended
    """The study was asked to stop."""


class Cases:
    """Best plans of the neighbours of one instance."""

    def __init__(self, instance: Instance, stop: Callable[[], bool] | None = None) -> None:
        self.instance = instance
        self._stop = stop
        self._plans: dict[tuple[tuple[str, Any], ...], Plan | None] = {}

    @property
    def solved(self) -> int:
        """Neighbours that were solved."""
        return len(self._plans)

    def neighbour(self, values: Mapping[FieldPath, Any]) -> Instance:
        """The instance with other values; UsageProblems where it would be none."""
        try:
            return with_values(self.instance, values)
        except InputError as error:
            raise UsageProblems(error.problems) from None

    def plan(self, values: Mapping[FieldPath, Any]) -> Plan | None:
        """The best plan with other values of some fields, None where nothing fits; Stopped when asked to stop."""
        key = tuple(sorted((field.name, value) for field, value in values.items()))
        if key not in self._plans:
            if self._stop is not None and self._stop():
                raise Stopped
            self._plans[key] = best_plan(self.neighbour(values))
        return self._plans[key]


def choice(plan: Plan | None) -> Things | None:
    """What makes plans distinct: accelerator types, schemes, cooling options, ways of sourcing; None: nothing fits.

    Of a plan for training the schemes are the number formats of its jobs.
    """
    if plan is None:
        return None
    formats = plan.training.jobs if plan.training is not None else ()
    return things_of(plan) | {("schemes", job.precision) for job in formats}


def choice_words(things: Things | None) -> str:
    """A choice in words: h100-80gb-sxm, bought, rdhx_passive, w8a8-fp8."""
    if things is None:
        return NOTHING_FITS
    ways = {"buy": "bought", "on_demand": "on demand", "reserved_1yr": "1-year term", "reserved_3yr": "3-year term"}
    parts = []
    for kind in ("accelerators", "sourcing", "cooling", "schemes"):
        names = sorted(name for one, name in things if one == kind)
        if kind == "sourcing":
            names = [ways.get(name, name.replace("_", " ")) for name in names]
        if kind == "schemes":
            names = [_scheme(name) for name in names]
        if names:
            parts.append(" + ".join(names))
    assert set(KINDS) == {"accelerators", "sourcing", "cooling", "schemes"}
    return ", ".join(parts)


def _scheme(name: str) -> str:
    """A scheme without the parts that say nothing: 16-bit cache, no recovery step."""
    return name.removesuffix("+none").removesuffix("+kv16")
