"""Attempts: whether an instance with some changes has a plan, and what the cheapest one is."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from optimizer.advice.fields import Changes, changed
from optimizer.answer import Stop, answer, plan_of
from optimizer.candidates import Candidates, build_candidates
from optimizer.catalog import load_catalog
from optimizer.errors import InternalError
from optimizer.instance.model import Instance
from optimizer.models import served_model
from optimizer.offer import Offer, Without, make_offer, program_data
from optimizer.plan import Plan
from optimizer.role_units import TooManyUnits
from optimizer.schemes import scheme_options
from optimizer.screen import screen
from optimizer.setting import Setting, build_setting
from optimizer.solver import Options, Reason

#: Beginnings of paths that neither pools, nor schemes, nor predictions hang on.
_LIGHT = (
    "targets.vram_gib_per_accelerator",
    "targets.weights_gib_per_accelerator",
    "targets.tpot_ms",
    "targets.ttft_ms",
    "targets.latency_ms",
    "targets.nvlink_",
    "targets.kv_link_",
    "targets.peak_utilization_fraction",
    "targets.spare_",
    "site.power_kw",
    "site.racks",
    "site.floor_m2",
    "site.carbon_tonnes_per_year",
    "site.water_m3_per_year",
    "economics.budget_",
    "choices.supply.",
    "choices.max_",
)

#: Units of two roles beyond which an attempt is not decided: each takes about a kilobyte.
_MOST_UNITS = 300_000


class OutOfTime(Exception):  # noqa: N818 - it reports how a search ended
    """The time limit, an interrupt or the room for candidates ended the search before an attempt was decided."""


@dataclass(slots=True)
class Search:
    """What every attempt needs; answers are kept, so that no attempt is made twice.

    ``tell`` is called with a count and words before each attempt. ``restrict`` takes pools away that must not be used.
    """

    offer: Offer
    options: Options
    stop: Stop | None
    deadline: float
    tell: Callable[[int, str], None] = lambda _count, _words: None
    restrict: Callable[[Setting], Setting] = lambda setting: setting
    attempts: int = 0
    _known: dict[frozenset[tuple[str, object]], bool] = field(default_factory=dict)

    @property
    def instance(self) -> Instance:
        """The instance that has no plan."""
        return self.offer.screened.candidates.setting.instance

    def check_time(self) -> None:
        """Raise OutOfTime where time is up or the search was asked to stop."""
        if time.perf_counter() > self.deadline or (self.stop is not None and self.stop()):
            raise OutOfTime

    def limited(self, gap: float | None = None) -> Options:
        """Options within the time that is left."""
        left = max(1e-3, self.deadline - time.perf_counter())
        return replace(self.options, time_limit_s=left, gap=self.options.gap if gap is None else gap)

    def offered(self, changes: Changes) -> Offer:
        """The offer of the changed instance; predictions are made again only where a change touches them."""
        self.check_time()
        self.attempts += 1
        self.tell(self.attempts, ", ".join(changes))
        instance = changed(self.instance, changes)
        candidates = self.offer.screened.candidates
        if all(path.startswith(_LIGHT) or _is_of_a_class(path) for path in changes):
            setting = replace(candidates.setting, instance=instance, classes=instance.workload.all_classes())
            moved: Candidates = replace(candidates, setting=setting)
        else:
            setting = self.restrict(build_setting(instance, load_catalog()))
            model = served_model(instance, setting.catalog)
            options = scheme_options(setting, model)
            try:
                moved = build_candidates(setting, model, options, candidates.factors, _MOST_UNITS)
            except TooManyUnits:
                raise OutOfTime from None
        return make_offer(screen(moved))

    def solvable(self, changes: Changes) -> bool:
        """Whether the changed instance has any plan: a simple one at hand, or the first that the solver meets.

        Raises
        ------
        OutOfTime: not decided in time.
        """
        key = frozenset(changes.items())
        if key not in self._known:
            offer = self.offered(changes)
            data = program_data(offer)
            if data is None:
                self._known[key] = False
            elif data.start is not None:
                self._known[key] = True
            else:
                found = answer(offer, self.limited(gap=0.5), Without(), self.stop, break_ties=False)
                self._known[key] = self._decided(found.fleet is not None, found.outcome.reason)
        return self._known[key]

    def cheapest(self, changes: Changes) -> Plan | None:
        """The cheapest plan of the changed instance, verified; None where it has none.

        Raises
        ------
        OutOfTime: not decided in time.
        """
        from optimizer.verify import verify

        offer = self.offered(changes)
        found = answer(offer, self.limited(), Without(), self.stop, break_ties=False)
        if not self._decided(found.fleet is not None, found.outcome.reason):
            return None
        plan = plan_of(offer, found, self.options)
        findings = verify(plan)
        if findings:
            raise InternalError("a change's plan does not stand:\n" + "\n".join(str(one) for one in findings[:20]))
        return plan

    def _decided(self, has_plan: bool, reason: Reason) -> bool:
        if not has_plan and reason is not Reason.INFEASIBLE:
            raise OutOfTime
        return has_plan


def _is_of_a_class(path: str) -> bool:
    """Demand and latency targets of the work: screening and the program read them, predictions do not."""
    return path.startswith("workload.") and (".demand." in path or ".targets." in path)
