"""The rows of one part of the program as LP text, for a fixed data set made by hand."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from pyomo.core import ConcreteModel, Constraint, Objective

import constraints
from optimizer.costs.services import MANAGEMENT
from optimizer.costs.staff import POSTS
from optimizer.price_tiers import add_price_tiers
from optimizer.program import add_quantities, add_variables, build_program
from optimizer.program_data import SITE_USED, ProgramData
from optimizer.solver import export
from tests.core.hand import LIQUID, bought, data_of, instance, offered, price, rented, server_type
from tests.core.steps import fabrics

FOLDER: Final = Path(__file__).parent / "lp"
#: A part of the program that is no limit but has rows.
PRICE_TIERS: Final = "price_tiers"


def family_name(family: ModuleType) -> str:
    """``power`` of ``constraints.power``."""
    return family.__name__.rpartition(".")[2]


#: Everything that adds rows, in the order in which the program adds it.
ADDERS: Final[dict[str, Callable[[Any, ProgramData], None]]] = {
    PRICE_TIERS: add_price_tiers,
    **{family_name(one): one.add for one in constraints.FAMILIES if hasattr(one, "add")},
}


def golden_data() -> ProgramData:
    """Two server types, three ways to get the first; widths that nest in one and not in the other; every cap set."""
    big = server_type("big", discounts=((3, 0.1), (6, 0.2)), rent={"on_demand": 3.0})
    small = server_type("small", speed=25.0)
    pools = [
        bought("big_air", big),
        bought("big_liquid", big, cooling=LIQUID, per_rack=2, server_kw=8.0, pue=1.125),
        rented("big_rent", big),
        bought("small_air", small, per_rack=1, server_kw=4.0),
    ]
    given = instance(
        workload={
            "classes": [
                {
                    "name": name,
                    "request": {"input_tokens": 100, "output_tokens": 10},
                    "demand": {"requests_per_s": demand},
                }
                for name, demand in (("chat", 16), ("code", 4))
            ],
            "load": {"hourly_fractions": [1.0] * 12 + [0.5] * 12},
        },
        targets={"spare_fraction": 0.125, "spare_servers": 1, "peak_utilization_fraction": 0.8},
        choices={"supply": {"big": 64}, "max_accelerator_types": 1},
        site={
            "power_kw": 200,
            "racks": 6,
            "floor_m2": 30,
            "facility": "cheaper",
            "carbon_tonnes_per_year": 500,
            "water_m3_per_year": 1000,
        },
        economics={
            "budget_capex_usd": 8192,
            "budget_usd_per_year": 4096,
            "services": {"servers_per_management_server": 4, "management_server_usd": 1000},
        },
    )
    deployments = [
        offered("big_half", big, width=4, rate=1.25),
        offered("big_quarter", big, width=2, rate=2.5, class_index=1, scheme="tuned"),
        offered("big_pair", big, width=16, rate=5.0),
        offered("small_two", small, width=2, rate=0.625),
        offered("small_three", small, width=3, rate=1.25, class_index=1),
    ]
    terms = [
        price(("Servers", "big_rent"), 2.0),
        price(("TierServers", "big8", "0"), 1.0, component="servers", capital=1000.0),
        price(("TierServers", "big8", "1"), 0.9, component="servers", capital=900.0),
        price(("TierServers", "big8", "2"), 0.8, component="servers", capital=800.0),
        price(("TierServers", "small8", "0"), 0.5, component="servers", capital=500.0),
        price(("PlantBuilt", "air"), 0.25, component="cooling", capital=250.0),
        price(("SchemePrepared", "tuned"), 0.5, component="recovery", capital=50.0),
        price(POSTS, 0.125, component="staff"),
        price(MANAGEMENT, 0.0625, component="services"),
        price(SITE_USED, 0.25, component="services"),
        price(("ColocationKw", "site"), 0.25, component="space"),
        price(("HallKw", "site"), 0.125, component="space"),
    ]
    return data_of(given, pools, deployments, terms, demand=(16.0, 4.0), most_servers=8, fabrics=fabrics())


def rows_by_part(data: ProgramData) -> dict[str, list[str]]:
    """Names of the constraints that each part adds."""
    model = ConcreteModel()
    add_variables(model, data)
    add_quantities(model, data)
    result = {}
    known: set[str] = set()
    for name, add in ADDERS.items():
        add(model, data)
        now = {component.name for component in model.component_objects(Constraint)}
        result[name] = sorted(now - known)
        known = now
    return result


def lp_text(part: str, folder: Path) -> str:
    """LP text of one part's rows with a dummy objective; written in ``folder`` on the way."""
    data = golden_data()
    kept = rows_by_part(data)[part]
    model = build_program(data)
    for component in model.component_objects(Constraint):
        if component.name not in kept:
            component.deactivate()
    model.TotalCost.deactivate()
    model.Nothing = Objective(expr=0.0)
    path = folder / f"{part}.lp"
    export(model, path)
    return path.read_text()
