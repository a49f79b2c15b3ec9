r"""Cooling: each rack stays within what its cooling takes away, and plants are built for the heat they get.

    rack limit   per_rack[n,k] = min(floor(rack_kw_k / server_kw[n,k]), floor(rack units / height)); 0: not allowed
    Plant_Heat[k]   PlantKw[k] = sum of the heat that servers of all pools send to plant k, kW
    Plant_Open[q,k] Servers[q] <= bound_q x PlantBuilt[k]
    Plant_Ordered[k]  sum_v PlantTierKw[k,v] >= PlantKw[k]                plants with a quantity discount on their kW
    Plant_Tier_*      least_v PlantTierUsed[k,v] <= PlantTierKw[k,v] <= most_v PlantTierUsed[k,v],
                      sum_v PlantTierUsed[k,v] <= PlantBuilt[k]

A liquid option captures a share of the heat; the rest stays in the air, so both plants are sized. The rack limit
decides which pools exist at all; ``optimizer.setting`` keeps the reason. Binds for dense servers: a server that draws
more than a rack may is not offered with that option.

Source of the physics: catalogue of cooling options (docs/method.md sections 5 and 6).
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from optimizer.program_data import ProgramData

LIMITS: Final = ("rack_kw",)


def add(model: Any, data: "ProgramData") -> None:
    """Variables and rows of cooling plants."""
    from pyomo.core import Binary, Constraint, NonNegativeReals, Var

    shares = data.heat_shares
    largest = {plant: sum(kw * data.max_servers[q] for q, kw in members.items()) for plant, members in shares.items()}
    model.PlantKw = Var(
        list(shares),
        domain=NonNegativeReals,
        bounds=lambda _m, k: (0.0, largest[k]),
        doc="heat a plant is sized for, kW",
    )
    model.PlantBuilt = Var(list(shares), domain=Binary, doc="a cooling plant is built")

    def heat(m: Any, k: str) -> Any:
        return m.PlantKw[k] - sum(kw * m.Servers[q] for q, kw in shares[k].items()) == 0.0

    def built(m: Any, k: str, q: str) -> Any:
        return m.Servers[q] - data.max_servers[q] * m.PlantBuilt[k] <= 0.0

    model.Plant_Heat = Constraint(list(shares), rule=heat, doc="heat of servers goes to plants")
    model.Plant_Open = Constraint(
        [(k, q) for k, members in shares.items() for q in members],
        rule=built,
        doc="servers stand where the plant is built",
    )

    levels = data.billed_levels
    running = [name for name, level in levels.items() if level.fraction > 0.0]

    def routed(m: Any, k: str, b: int, name: str) -> Any:
        rates = (
            (data.deployments[d].demand_weight / data.demand[b] / levels[name].fraction, m.Rate[d, q, name])
            for d, q in data.pairs
            if q in shares[k] and data.deployments[d].class_index == b
        )
        return sum(weight * rate for weight, rate in rates) - m.PlantBuilt[k] <= 0.0

    priced = [k for k in shares if ("PlantBuilt", k) in data.yearly_by_quantity]
    classes = range(len(data.demand))
    # Implied by the rows above for whole plans; tight for fractional ones: the share of demand that a plant serves.
    model.Plant_Routed = Constraint(
        [(k, b, name) for k in priced for b in classes for name in running],
        rule=routed,
        doc="demand is cooled by built plants",
    )
    _add_tiers(model, data)


def _add_tiers(model: Any, data: "ProgramData") -> None:
    """What is ordered falls into one step of the plant's price; more than the heat where a discount is worth it."""
    from pyomo.core import Binary, Constraint, NonNegativeReals, Var

    tiers = data.plant_tiers
    steps: dict[str, list[tuple[str, str]]] = {}
    for key in tiers:
        steps.setdefault(key[0], []).append(key)
    model.PlantTierKw = Var(
        list(tiers),
        domain=NonNegativeReals,
        bounds=lambda _m, *key: (0.0, tiers[key][1]),
        doc="kW of a plant that are ordered in a step of its price",
    )
    model.PlantTierUsed = Var(list(tiers), domain=Binary, doc="the step of a plant's price that holds")
    model.Plant_Ordered = Constraint(
        list(steps),
        rule=lambda m, k: sum(m.PlantTierKw[key] for key in steps[k]) - m.PlantKw[k] >= 0.0,
        doc="a plant takes the heat",
    )
    model.Plant_Tier_Low = Constraint(
        [key for key, (least, _) in tiers.items() if least > 0.0],
        rule=lambda m, *key: m.PlantTierKw[key] - tiers[key][0] * m.PlantTierUsed[key] >= 0.0,
        doc="a step of a plant's price starts here",
    )
    model.Plant_Tier_High = Constraint(
        list(tiers),
        rule=lambda m, *key: m.PlantTierKw[key] - tiers[key][1] * m.PlantTierUsed[key] <= 0.0,
        doc="a step of a plant's price ends here",
    )
    model.Plant_Tier_One = Constraint(
        list(steps),
        rule=lambda m, k: sum(m.PlantTierUsed[key] for key in steps[k]) - m.PlantBuilt[k] <= 0.0,
        doc="one step of a built plant's price holds",
    )
