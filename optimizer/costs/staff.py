"""Staff: people who run bought servers and a hall of one's own, paid in whole steps of a post."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optimizer.catalog.rows import Trust
from optimizer.costs.figures import figure
from optimizer.costs.over_time import running
from optimizer.costs.term import Term
from optimizer.setting import Setting
from optimizer.units import W_PER_KW

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COMPONENT = "staff"
#: Key of the posts that are paid.
POSTS = ("Posts", "site")
#: Accelerators of the server that the catalogue's figure of administration speaks of.
_SERVER_OF = 8.0
#: Slack of a count that is rounded up, for the last bit of a sum.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class StaffNeed:
    """Posts for each accelerator bought, for each kW of an own hall, at least for such a hall; their step."""

    per_accelerator: float
    per_hall_kw: float
    hall_minimum: float
    step: float

    def posts(self, accelerators: float, hall_kw: float) -> float:
        """Whole steps of posts for a fleet; ``hall_kw`` is 0 where no hall is owned."""
        needed = self.per_accelerator * accelerators + self.per_hall_kw * hall_kw
        if hall_kw > 0.0:
            needed = max(needed, self.hall_minimum)
        return math.ceil(needed / self.step - _ROUNDING) * self.step

    def posts_of(self, accelerators: "NDArray[np.float64]", hall_kw: "NDArray[np.float64]") -> "NDArray[np.float64]":
        """The same for many fleets at once."""
        import numpy as np

        needed = self.per_accelerator * accelerators + self.per_hall_kw * hall_kw
        needed = np.where(hall_kw > 0.0, np.maximum(needed, self.hall_minimum), needed)
        return np.asarray(np.ceil(needed / self.step - _ROUNDING) * self.step)


def staff_need(setting: Setting) -> StaffNeed:
    """Posts by what they depend on."""
    staff = setting.instance.economics.staff
    return StaffNeed(
        per_accelerator=figure(setting, "cluster_admin", staff.fte_per_server).usd / _SERVER_OF,
        per_hall_kw=figure(setting, "facility_staff", staff.fte_per_mw).usd / W_PER_KW,
        hall_minimum=figure(setting, "staff_min_24x7", staff.minimum_fte).usd,
        step=staff.step_fte,
    )


def terms(setting: Setting) -> list[Term]:
    """Wages of the posts."""
    economics = setting.instance.economics
    price = figure(setting, "staff_cost_loaded", economics.staff.usd_per_fte_year)
    need = staff_need(setting)
    hall = setting.instance.site.facility != "colocation" and (need.per_hall_kw > 0.0 or need.hall_minimum > 0.0)
    if price.usd == 0.0 or not (need.per_accelerator > 0.0 or hall):
        return []
    factors = running(economics, economics.staff.escalation_fraction)
    stated = economics.staff.usd_per_fte_year is not None and economics.staff.fte_per_server is not None
    # How many people a server takes is an estimate wherever the planner does not say it.
    trust: Trust = "user" if stated else "assumed"
    return [Term(COMPONENT, "staff", POSTS, "posts", price.usd, factors, 0.0, price.source, price.as_of, trust)]
