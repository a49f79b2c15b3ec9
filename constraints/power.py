r"""Power: servers, spares and cooling stay below the site's power in the hottest hour.

    Power_Limit    sum_q server_kw[q] PUE_design[k] Servers[q] <= site.power_kw

``server_kw`` is the most one server draws with its network share; liquid options save fan power inside it, which PUE
does not show. ``PUE_design`` is that of the hottest weather bin. Rented servers draw power elsewhere. Binds on sites
with little power.

Source of the physics: docs/method.md section 6.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from optimizer.program_data import ProgramData

LIMITS: Final = ("power_kw",)


def add(model: Any, data: "ProgramData") -> None:
    """The row of power at the meter."""
    from pyomo.core import Constraint

    limit = data.setting.instance.site.power_kw
    if limit is None or not data.hall:
        return
    pools = [(data.pools[q], model.Servers[q]) for q in data.hall]
    # Divided by the limit, so that the solver's tolerance is a share of it.
    share = sum(pool.server_kw * pool.pue_design / limit * servers for pool, servers in pools)
    model.Power_Limit = Constraint(expr=share <= 1.0, doc="power at the meter fits the site")
