r"""Space: servers fill racks, and racks fit the site.

    Rack_Fill[q]   per_rack[q] Racks[q] >= Servers[q]           bought pools; spares stand in racks too
    Rack_Limit     sum_q Racks[q] <= site.racks
    Floor_Limit    sum_q Racks[q] x floor of a rack <= site.floor_m2

``per_rack`` follows from power per rack and height (``constraints.cooling``). A rack holds servers of one pool. Binds
in small halls and with air cooling, where racks are thin.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from optimizer.program_data import ProgramData

LIMITS: Final = ("racks", "floor_m2")


def add(model: Any, data: "ProgramData") -> None:
    """Rows of racks."""
    from pyomo.core import Constraint

    def fill(m: Any, q: str) -> Any:
        return m.Servers[q] - data.pools[q].per_rack * m.Racks[q] <= 0.0

    model.Rack_Fill = Constraint(list(model.Racks), rule=fill, doc="servers fill racks")
    site = data.setting.instance.site
    if not data.hall:
        return
    racks = sum(model.Racks[q] if q in model.Racks else model.Servers[q] for q in data.hall)
    if site.racks is not None:
        model.Rack_Limit = Constraint(expr=racks <= site.racks, doc="racks fit the site")
    if site.floor_m2 is not None:
        # Whole racks that the floor holds.
        held = int(site.floor_m2 / site.rack_floor_m2 + 1e-9)
        model.Floor_Limit = Constraint(expr=racks <= held, doc="racks fit the floor")
