r"""Site: what stands or is paid for the site as a whole: its connection, the hall, staff, management servers.

    Site_Used[q]       Servers[q] <= bound_q SiteUsed                  where something is paid once for the site
    Site_Routed[b,l]   share of a class's demand served by bought servers at level l <= SiteUsed    (implied, tight)
    Hall_Kw            ColocationKw + HallKw = SpaceKw                  where either hall may be used
    Hall_Own           HallKw <= bound HallBuilt,  Hall_Rented  ColocationKw <= bound (1 - HallBuilt)
    Staff              step StaffSteps >= posts per accelerator x bought accelerators + posts per kW x kW in an own hall
    Staff_Hall         step StaffSteps >= least posts of an own hall, where one is used
    Management         servers per management server x ManagementServers >= sum_q Servers[q]

One fleet stands in one hall. What comes in whole steps binds for small fleets, where one post more is a large share.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from optimizer.program_data import ProgramData

LIMITS: Final = ()


def add(model: Any, data: "ProgramData") -> None:
    """Variables and rows of the site."""
    if not data.hall:
        return
    if data.needs_site:
        _add_used(model, data)
    if data.chooses_hall:
        _add_hall(model, data)
    if data.staff is not None:
        _add_staff(model, data)
    if data.servers_per_management_server is not None:
        _add_management(model, data)


def _add_used(model: Any, data: "ProgramData") -> None:
    """Whether any server is bought."""
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


def _add_hall(model: Any, data: "ProgramData") -> None:
    """The hall is rented or built, never both."""
    from pyomo.core import Binary, Constraint, NonNegativeReals, Var

    most = sum(data.pools[q].server_kw * data.max_servers[q] for q in data.hall)
    model.HallBuilt = Var(["site"], domain=Binary, doc="an own hall is built")
    model.HallKw = Var(["site"], domain=NonNegativeReals, bounds=(0.0, most), doc="IT peak in an own hall, kW")
    model.ColocationKw = Var(["site"], domain=NonNegativeReals, bounds=(0.0, most), doc="IT peak in colocation, kW")
    built, own, rented = model.HallBuilt["site"], model.HallKw["site"], model.ColocationKw["site"]
    model.Hall_Kw = Constraint(expr=own + rented - model.SpaceKw == 0.0, doc="every server stands in the hall")
    model.Hall_Own = Constraint(expr=own - most * built <= 0.0, doc="an own hall is built")
    model.Hall_Rented = Constraint(expr=rented + most * built <= most, doc="or rented")


def _add_staff(model: Any, data: "ProgramData") -> None:
    """Posts in whole steps."""
    from pyomo.core import Constraint, NonNegativeIntegers, Var

    need = data.staff
    assert need is not None
    most = data.most_posts()
    steps = round(most / need.step)
    model.StaffSteps = Var(["site"], domain=NonNegativeIntegers, bounds=(0, steps), doc="posts, in steps")
    posts = need.step * model.StaffSteps["site"]
    accelerators = sum(data.pools[q].server_type.accelerators * model.Servers[q] for q in data.hall)
    needed = need.per_accelerator * accelerators
    facility = data.setting.instance.site.facility
    if facility != "colocation":
        needed = needed + need.per_hall_kw * (model.HallKw["site"] if data.chooses_hall else model.SpaceKw)
        if need.hall_minimum > 0.0:
            used = model.HallBuilt["site"] if data.chooses_hall else model.SiteUsed["site"]
            # Rounded up to whole steps, which is what the integer will be.
            least = data.whole_posts(need.hall_minimum)
            model.Staff_Hall = Constraint(expr=posts - least * used >= 0.0, doc="an own hall is never left alone")
    model.Staff = Constraint(expr=posts - needed >= 0.0, doc="posts for servers and hall")


def _add_management(model: Any, data: "ProgramData") -> None:
    """Servers without accelerators."""
    from pyomo.core import Constraint, NonNegativeIntegers, Var

    each = data.servers_per_management_server
    assert each is not None
    most = -(-sum(data.max_servers[q] for q in data.hall) // each)
    model.ManagementServers = Var(["site"], domain=NonNegativeIntegers, bounds=(0, most), doc="management servers")
    managed = each * model.ManagementServers["site"] - sum(model.Servers[q] for q in data.hall)
    model.Management = Constraint(expr=managed >= 0.0, doc="management servers for bought servers")
