"""How a study's yearly costs are told: as they are, or, of runs of training, as what the runs cost.

Bills of runs are annuities over the horizon (docs/training-plans.md section 3); a run is paid once, so people are told
its cost. Files for programs (JSON, CSV) keep the annuity, as their names say.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from optimizer.costs.finance import capital_recovery_factor
from optimizer.instance.model import Instance
from optimizer.instance.training import TrainingWorkload

#: Any result of a study.
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Money:
    """Yearly costs times what, and the words behind them."""

    times: float = 1.0
    words: str = "per year"

    def told(self, draw: Callable[[Any, str], str]) -> Callable[[Any], str]:
        """What ``draw`` makes of a study's result in this money, and of its words."""
        return lambda found: draw(in_money(found, self), self.words)


def money_of(instance: Instance) -> Money:
    """How costs of plans of an instance are told."""
    workload = instance.workload
    if not isinstance(workload, TrainingWorkload):
        return Money()
    economics = instance.economics
    share = capital_recovery_factor(economics.discount_rate, economics.horizon_years)
    return Money(1.0 / share, "for the run" if len(workload.all_jobs()) == 1 else "for the runs")


def in_money(found: Found, money: Money) -> Found:
    """The result of a study with every yearly cost in it times ``money.times``."""
    if money.times == 1.0:
        return found
    told: Found = _times(found, money.times)
    return told


def _times(value: Any, times: float) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_times(one, times) for one in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changes = {}
    for one in fields(value):
        before = getattr(value, one.name)
        is_cost = "usd_per_year" in one.name and isinstance(before, int | float)
        after = before * times if is_cost else _times(before, times)
        if after is not before:
            changes[one.name] = after
    return replace(value, **changes) if changes else value
