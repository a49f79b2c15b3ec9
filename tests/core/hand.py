"""Programs made by hand: pools, deployments and prices with round numbers; no prediction, no catalogue figure counts.

Costs are in USD per hour: a price ``p`` is a term of ``p x 8766`` USD per year.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Literal

from optimizer.catalog import Catalog, load_catalog
from optimizer.catalog.rows import Accelerator, CoolingOption, Fabric
from optimizer.costs.term import QuantityKey, Term
from optimizer.instance.model import Instance
from optimizer.program import build_program
from optimizer.program_data import Offered, ProgramData
from optimizer.setting import Pool, Price, ServerType, Setting, Sourcing, load_levels
from optimizer.solver import Compiled, Options, Outcome, Reason
from optimizer.units import HOURS_PER_YEAR

USER: Final = ("stated by the test", "", "user")
EXACT: Final = Options(gap=0.0, time_limit_s=60.0)

Json = dict[str, Any]


@cache
def catalog() -> Catalog:
    """The packaged catalogue, read once."""
    return load_catalog()


def instance(**sections: Json) -> Instance:
    """An instance of one class and 10 requests/s; sections replace or extend its own."""
    workload = {
        "model": "llama-3.1-8b",
        "request": {"input_tokens": 100, "output_tokens": 10},
        "demand": {"requests_per_s": 10},
    }
    workload.update(sections.pop("workload", {}))
    if "classes" in workload:
        del workload["request"], workload["demand"]
    sections["targets"] = {"spare_fraction": 0.0, "peak_utilization_fraction": 1.0, **sections.get("targets", {})}
    # What no test speaks of costs nothing: people, insurance, prices that rise.
    plain = {
        "energy_escalation_fraction": 0.0,
        "hall": {"colocation_escalation_fraction": 0.0},
        "staff": {"usd_per_fte_year": 0.0},
        "services": {"insurance_fraction": 0.0},
    }
    sections["economics"] = {**plain, **sections.get("economics", {})}
    return Instance.model_validate_json(_text({"name": "by hand", "workload": workload, **sections}))


def _text(content: Json) -> str:
    import json

    return json.dumps(content)


def accelerator(key: str = "a", *, per_server: int = 8, speed: float = 50.0) -> Accelerator:
    """An accelerator whose server of ``per_server`` draws 10 kW."""
    return Accelerator(
        id=key,
        generation="hopper",
        memory_gib=80.0,
        memory_bandwidth_gb_s=2000.0,
        fp16_tflops=500.0,
        scale_up_gb_s=100.0,
        scale_up_domain=per_server,
        scale_out_gb_s=speed,
        pcie_gb_s=50.0,
        tdp_w=700.0,
        accelerators_per_server=per_server,
        accelerators_per_host=per_server,
        server_power_kw=10.0,
        server_rack_units=4,
    )


def option(key: str, *, capture: float | None = None, fixed: float = 0.0, marginal: float = 1.0) -> CoolingOption:
    """A cooling option: air, or liquid that takes the share ``capture`` of the heat."""
    row = catalog().cooling["air_containment_econ" if capture is None else "d2c_1p"]
    return row.model_copy(
        update={
            "id": key,
            "liquid_capture_typical_fraction": 0.0 if capture is None else capture,
            "capex_fixed_usd": fixed,
            "capex_marginal_usd_per_kw": marginal,
        }
    )


AIR: Final = option("air")
LIQUID: Final = option("liquid", capture=0.75)


def server_type(
    key: str = "a",
    *,
    per_server: int = 8,
    discounts: tuple[tuple[int, float], ...] = (),
    kind: Literal["all_units", "incremental"] = "all_units",
    rent: Mapping[Sourcing, float] | None = None,
    usd: float | None = 100.0,
    speed: float = 50.0,
) -> ServerType:
    """A server type at ``usd`` a server."""
    return ServerType(
        id=f"{key}{per_server}",
        accelerator=accelerator(key, per_server=per_server, speed=speed),
        accelerators=per_server,
        server_usd=None if usd is None else Price(usd, *USER),
        discounts=discounts,
        discount_kind=kind,
        rent={term: Price(price, *USER) for term, price in (rent or {}).items()},
    )


def bought(
    key: str,
    of: ServerType,
    *,
    cooling: CoolingOption = AIR,
    per_rack: int = 4,
    server_kw: float = 10.0,
    pue: float = 1.25,
) -> Pool:
    """A bought pool; its network draws nothing."""
    return Pool(key, of, "buy", cooling, per_rack, 1.0, 0.0, server_kw, pue, pue)


def rented(key: str, of: ServerType, term: Sourcing = "on_demand") -> Pool:
    """A rented pool."""
    return Pool(key, of, term, None, 0, 1.0, 0.0, 0.0, 1.0, 1.0)


def offered(
    key: str,
    of: ServerType,
    *,
    width: int = 8,
    rate: float = 1.0,
    class_index: int = 0,
    scheme: str = "plain",
    weight: float = 1.0,
    busy_kw: float = 10.0,
) -> Offered:
    """A deployment whose replica serves ``rate`` requests/s."""
    fits = of.accelerators // width
    spans = 1.0 / fits if fits else float(-(-width // of.accelerators))
    return Offered(key, 0, class_index, of.id, scheme, width, spans, rate, weight, busy_kw)


def price(key: QuantityKey, usd_per_hour: float, *, component: str = "rent", capital: float = 0.0) -> Term:
    """``usd_per_hour`` for each unit of a quantity that lasts all year, and capital at the start."""
    return Term(component, "item", key, "units", usd_per_hour * HOURS_PER_YEAR, (), capital, *USER)


@dataclass(frozen=True, slots=True)
class Solution:
    """Cost in USD per hour and the values of the variables that are not 0, by name."""

    usd_per_hour: float
    values: dict[str, float]

    def count(self, family: str) -> float:
        """Sum of a family of variables."""
        return sum(value for name, value in self.values.items() if name.split("[")[0] == family)


def setting_of(
    given: Instance,
    pools: Sequence[Pool],
    *,
    fabrics: Mapping[float, tuple[Fabric, ...]] | None = None,
    residual: CoolingOption = AIR,
) -> Setting:
    """A setting with the given pools."""
    types = {pool.server_type.id: pool.server_type for pool in pools}
    return Setting(
        instance=given,
        catalog=catalog(),
        server_types=tuple(types.values()),
        pools=tuple(pools),
        refusals=(),
        fabrics=dict(fabrics or {}),
        levels=load_levels(given),
        classes=given.workload.all_classes(),
        electricity=Price(0.1, *USER),
        residual=residual,
    )


def data_of(
    given: Instance,
    pools: Sequence[Pool],
    deployments: Sequence[Offered],
    terms: Iterable[Term],
    *,
    demand: Sequence[float] = (10.0,),
    most_servers: int = 40,
    fabrics: Mapping[float, tuple[Fabric, ...]] | None = None,
    residual: CoolingOption = AIR,
    idle_kw: float = 4.0,
) -> ProgramData:
    """Data of a program: every deployment in every pool of its server type, bounds that are not tight."""
    setting = setting_of(given, pools, fabrics=fabrics, residual=residual)
    rho = given.targets.peak_utilization_fraction
    capacity = {one.id: one.demand_weight * rho * one.requests_per_s for one in deployments}
    data = ProgramData(
        setting=setting,
        pools={pool.id: pool for pool in pools},
        deployments={one.id: one for one in deployments},
        pairs=tuple(
            (one.id, pool.id)
            for one in deployments
            for pool in pools
            if pool.server_type.id == one.server_type and (pool.is_bought or one.servers_per_replica <= 1.0)
        ),
        demand=tuple(demand),
        capacity=capacity,
        terms=(),
        max_replicas={one.id: math.ceil(demand[one.class_index] / capacity[one.id]) + 10 for one in deployments},
        max_in_service={pool.server_type.id: most_servers for pool in pools},
        max_servers={pool.id: most_servers for pool in pools},
        idle_kw={pool.id: idle_kw for pool in pools if pool.is_bought},
    )
    return data.with_terms(terms)


def with_bounds(data: ProgramData, servers: int) -> ProgramData:
    """The same data with another bound on the servers of every pool."""
    return replace(
        data,
        max_servers=dict.fromkeys(data.max_servers, servers),
        max_in_service=dict.fromkeys(data.max_in_service, servers),
    )


def run(data: ProgramData) -> Outcome:
    """How the program ends."""
    return Compiled(build_program(data)).solve(EXACT)


def solve(data: ProgramData) -> Solution | None:
    """The cheapest plan of the program, None where there is none."""
    compiled = Compiled(build_program(data))
    outcome = compiled.solve(EXACT)
    if outcome.reason is Reason.INFEASIBLE:
        return None
    assert outcome.reason is Reason.OPTIMAL
    assert outcome.values is not None
    values = zip(compiled.columns, compiled.rounded(outcome.values), strict=True)
    return Solution(outcome.objective, {one.name: float(value) for one, value in values if value})


def cost(data: ProgramData) -> float:
    """Cost of the cheapest plan, USD per hour."""
    found = solve(data)
    assert found is not None, "no plan"
    return found.usd_per_hour
