r"""Space: servers fill racks, and racks fit the site.

    Rack_Fill[q]   per_rack[q] Racks[q] >= Servers[q]           bought pools; spares stand in racks too
    Rack_Limit     sum_q Racks[q] <= site.racks
    Site_Used[q]   Servers[q] <= bound_q SiteUsed                where something is paid once for the site
    Site_Routed[b,l]   share of a class's demand served by bought servers at level l <= SiteUsed    (implied, tight)

``per_rack`` follows from power per rack and height (``constraints.cooling``). A rack holds servers of one pool. Binds
in small halls and with air cooling, where racks are thin.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from optimizer.program_data import ProgramData

LIMITS: Final = ("racks",)


def add(model: Any, data: "ProgramData") -> None:
    """Rows of racks."""
    from pyomo.core import Constraint

    def fill(m: Any, q: str) -> Any:
        return m.Servers[q] - data.pools[q].per_rack * m.Racks[q] <= 0.0

    model.Rack_Fill = Constraint(list(model.Racks), rule=fill, doc="servers fill racks")
    limit = data.setting.instance.site.racks
    if limit is not None and data.hall:
        racks = sum(model.Racks[q] if q in model.Racks else model.Servers[q] for q in data.hall)
        model.Rack_Limit = Constraint(expr=racks <= limit, doc="racks fit the site")
    if data.prices_site:
        _add_site(model, data)


def _add_site(model: Any, data: "ProgramData") -> None:
    """What is paid once as soon as any server is bought."""
    from pyomo.core import Binary, Constraint, Var

    model.SiteUsed = Var(["site"], domain=Binary, doc="any server is bought")
    used = model.SiteUsed["site"]

    def opened(m: Any, q: str) -> Any:
        return m.Servers[q] - data.max_servers[q] * used <= 0.0

    model.Site_Used = Constraint(list(data.hall), rule=opened, doc="bought servers use the site")
    bought = set(data.hall)
    running = {name: level for name, level in data.billed_levels.items() if level.fraction > 0.0}

    def routed(m: Any, b: int, name: str) -> Any:
        rates = (
            (data.deployments[d].demand_weight / data.demand[b] / running[name].fraction, m.Rate[d, q, name])
            for d, q in data.pairs
            if q in bought and data.deployments[d].class_index == b
        )
        return sum(weight * rate for weight, rate in rates) - used <= 0.0

    # Implied by the rows above for whole plans; tight for fractional ones.
    model.Site_Routed = Constraint(
        [(b, name) for b in range(len(data.demand)) for name in running],
        rule=routed,
        doc="demand that bought servers serve needs the site",
    )
