r"""Environment: carbon dioxide and water of bought servers stay below what the site may cause in a year.

    Carbon_Limit   sum_q carbon_q ( idle_kw_q 8766 Servers[q] + BusyKwh[q] ) <= site.carbon_tonnes_per_year
    Water_Limit    the same with the water of the cooling option            <= site.water_m3_per_year

``carbon_q`` is the grid's carbon of a kWh times the mean PUE, ``water_q`` the water of a kWh of IT energy. Rented
servers cause theirs elsewhere. Binds where the grid is dirty, or water short: wet pads save energy with water.

Source of the physics: docs/method.md section 6.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from optimizer.program_data import ProgramData

LIMITS: Final = ("carbon_tonnes_per_year", "water_m3_per_year")


def add(model: Any, data: "ProgramData") -> None:
    """Rows of carbon and water."""
    from pyomo.core import Constraint

    if not data.hall or not data.environment_caps:
        return
    caps = {name: (most, per_kwh) for name, most, per_kwh in data.environment_caps}

    def within(m: Any, name: str) -> Any:
        most, per_kwh = caps[name]
        used = sum(share * data.it_kwh(m, q) for q, share in per_kwh.items() if share)
        if isinstance(used, int):
            return Constraint.Feasible
        # Divided by the limit, so that the solver's tolerance is a share of it; where nothing may be caused, as it is.
        return used / (most or 1.0) <= (1.0 if most else 0.0)

    model.Environment_Limit = Constraint(list(caps), rule=within, doc="carbon and water of a year")
