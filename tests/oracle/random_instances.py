"""Small random instances from a seed, with the features of real ones in controlled proportions.

Demand and caps are set in proportion to what the instance itself can do, so that fleets stay small and caps bite: the
instance is listed first, then demand is drawn as a few servers' worth, then caps are drawn around the cheapest fleet.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

from optimizer.instance.model import Instance
from tests.oracle import power_features, site_features, tiers
from tests.oracle.enumerate import Answer, TooLarge, answer
from tests.oracle.listing import Listing, list_instance

#: Features that at least 50 of 500 instances must have.
FEATURES = (
    "all-units discount",
    "incremental discount",
    "discount reached",
    "several cooling options",
    "liquid cooling",
    "two accelerator types",
    "mix chosen",
    "power cap",
    "rack cap",
    "rack power cap",
    "supply cap",
    "capital budget",
    "yearly budget",
    "type cap",
    "buy",
    "on demand",
    "reserved",
    "bought chosen",
    "rented chosen",
    "infeasible",
    "several classes",
    "load levels",
    "spare servers",
    "widths that do not nest",
    "replica wider than a server",
    "own prices",
    "own accelerator",
    "mixture of experts",
    "latent attention",
    "users",
    "quantized",
    "recovery step",
    "conservative accuracy",
    "sequence slots",
    "two roles",
    "power states",
    "power cap chosen",
    *power_features.FEATURES,
    *power_features.CAPS,
    "owned servers",
    "owned chosen",
    "paid by level",
    "paid by level chosen",
    "spot",
    "provider limit",
    "rent from a share",
    *site_features.FEATURES,
    *site_features.CAPS,
    *tiers.FEATURES,
)
#: An instance that takes more steps to enumerate is too large to be drawn.
MOST_STEPS = 10_000

_COOLING = ("air_crac", "air_containment_econ", "dynamic", "rdhx_active", "d2c_1p", "imm_1p")
_SCHEMES = (
    ("w16a16",),
    ("w16a16", "w8a8-fp8"),
    ("w8a8-fp8",),
    ("w8a8-int8", "w4a16-int4"),
    ("w16a16", "w8a8-int8", "w8a8-fp8"),
    ("w16a16", "w4a16-int4"),
)
_MODELS = (
    ("Llama-3.1-8B", 3),
    ("Llama-3.2-1B", 1),
    ("Qwen2.5-7B", 2),
    ("Gemma-3-12B (text)", 1),
    ("gpt-oss-20b", 1),
    ("Qwen3-30B-A3B", 2),
    ("Mixtral-8x7B", 1),
    ("DeepSeek-V2-Lite", 3),
    ("Llama-3.1-70B", 1),
)
_CATALOGUE = (
    "l4",
    "l40s",
    "a100-40gb-sxm",
    "a100-80gb-sxm",
    "h100-80gb-sxm",
    "h100-80gb-pcie",
    "mi300x",
    "rtx-pro-6000-server",
)


@dataclass(frozen=True)
class Drawn:
    """A random instance with its listing, its features and what the enumeration says."""

    seed: int
    instance: Instance
    listing: Listing
    features: frozenset[str]
    expected: Answer | None


def _own_accelerator(random: Random, name: str) -> dict[str, Any]:
    size = random.choice((1, 2, 4, 4, 6, 8, 8))
    tdp = random.choice((150, 300, 450, 700))
    generation = random.choice(("ampere", "ada", "hopper"))
    tflops = random.choice((120, 300, 600))
    linked = size > 1 and random.random() < 0.6
    row: dict[str, Any] = {
        "id": name,
        "generation": generation,
        "memory_gib": random.choice((24, 40, 48, 80)),
        "memory_bandwidth_gb_s": random.choice((600, 1200, 2000, 3000)),
        "fp16_tflops": tflops,
        "int8_tops": 2 * tflops,
        "scale_up_domain": size if linked else 1,
        "scale_out_gb_s": random.choice((12.5, 25, 50)),
        "pcie_gb_s": 32,
        "tdp_w": tdp,
        "accelerators_per_server": size,
        "accelerators_per_host": size,
        "server_power_kw": round(size * tdp * random.choice((1.3, 1.6)) / 1000 + 0.4, 3),
        "server_rack_units": random.choice((1, 2, 4, 8)),
        "liquid_cooling": random.choice(("option", "option", "no", "required")),
    }
    if generation != "ampere":
        row["fp8_tflops"] = 2 * tflops
    if linked:
        row["scale_up_gb_s"] = random.choice((50, 200, 450))
    return row


def _discounts(random: Random) -> list[dict[str, float]]:
    steps = sorted(random.sample(range(2, 6), random.choice((1, 1, 2))))
    shares = sorted(random.choice((0.05, 0.1, 0.2, 0.3, 0.45)) for _ in steps)
    return [{"from_servers": n, "discount_fraction": share} for n, share in zip(steps, shares, strict=True)]


def _request_class(random: Random, name: str) -> dict[str, Any]:
    unit = random.choice(("requests_per_s", "output_tokens_per_s", "output_tokens_per_s", "concurrent_users"))
    demand: dict[str, float] = {unit: 1.0}
    if unit == "concurrent_users" and random.random() < 0.6:
        demand["think_time_s"] = random.choice((5.0, 30.0))
    one: dict[str, Any] = {
        "name": name,
        "request": {
            "input_tokens": random.choice((128, 500, 1000, 3000)),
            "output_tokens": random.choice((50, 200, 500)),
        },
        "demand": demand,
    }
    if random.random() < 0.3:
        one["request"]["prefix_hit_fraction"] = random.choice((0.3, 0.7))
    targets = {}
    if random.random() < 0.5:
        targets["tpot_ms"] = random.choice((25.0, 40.0, 80.0))
    if random.random() < 0.3:
        targets["ttft_ms"] = random.choice((500.0, 2000.0))
    if targets:
        one["targets"] = targets
    return one


def _prices(random: Random, row: dict[str, Any] | None) -> dict[str, Any]:
    """Own prices: for an own accelerator all of them, so that buying and renting compete."""
    own: dict[str, Any] = {}
    if row is not None:
        each = random.choice((3000.0, 8000.0, 15000.0))
        own["server_usd"] = round(row["accelerators_per_server"] * each * random.uniform(0.9, 1.3), 2)
        fair = each * (0.3 + 0.03 * random.random()) / 8766
        own["on_demand_usd_per_hour"] = round(fair * random.uniform(0.9, 2.0), 4)
        if random.random() < 0.5:
            own["reserved_3yr_usd_per_hour"] = round(own["on_demand_usd_per_hour"] * random.uniform(0.6, 0.95), 4)
        if random.random() < 0.4:
            own["spot_usd_per_hour"] = round(own["on_demand_usd_per_hour"] * random.uniform(0.4, 0.8), 4)
        if random.random() < 0.3:
            own["reserved_1yr_usd_per_hour"] = round(own["on_demand_usd_per_hour"] * random.uniform(0.7, 1.0), 4)
    elif random.random() < 0.4:
        own["server_usd"] = float(random.choice((40_000, 90_000, 150_000)))
    if random.random() < 0.7:
        own["discounts"] = _discounts(random)
        own["discount_kind"] = random.choice(("all_units", "incremental"))
    return own


def _document(random: Random, seed: int) -> dict[str, Any]:
    """An instance with unit demand and no caps yet."""
    names: list[str] = []
    rows: list[dict[str, Any]] = []
    prices: dict[str, Any] = {}
    for index in range(random.choice((1, 2, 2, 2, 2, 3))):
        if random.random() < 0.6:
            row = _own_accelerator(random, f"card-{'abc'[index]}")
            rows.append(row)
            names.append(row["id"])
            prices[row["id"]] = _prices(random, row)
        else:
            name = random.choice([one for one in _CATALOGUE if one not in names])
            names.append(name)
            own = _prices(random, None)
            if own:
                prices[name] = own
    model = random.choices([name for name, _ in _MODELS], [weight for _, weight in _MODELS])[0]
    tensor = random.choice(([1], [1, 2], [2], [1, 4], [2, 4], [4], [2, 8]))
    pipeline = random.choice(([1], [1], [1], [1, 3], [3], [1, 2], [2, 3], [2]))
    if "70B" in model:
        tensor, pipeline = random.choice(([2, 4], [4], [8])), random.choice(([1], [1, 2], [2, 4], [3]))
    choices: dict[str, Any] = {
        "accelerators": names,
        "tensor_parallel": tensor,
        "pipeline_parallel": pipeline,
        "attention_data_parallel": random.choice(([1], [1], [1, 2])),
        "max_concurrency": random.choice((16, 64, 128, 256)),
        "schemes": list(random.choice(_SCHEMES)),
        "sourcing": random.choice(
            (
                ["buy", "on_demand", "reserved_1yr", "reserved_3yr"],
                ["buy", "on_demand"],
                ["buy"],
                ["buy"],
                ["buy", "reserved_3yr", "reserved_1yr"],
                ["on_demand", "reserved_1yr"],
                ["buy", "on_demand", "spot"],
                ["on_demand", "spot", "reserved_1yr"],
            )
        ),
        "cooling": sorted(random.sample(_COOLING, random.choice((1, 2, 2, 3)))),
    }
    if random.random() < 0.25:
        choices["recovery_steps"] = random.choice((["none", "qad"], ["none", "qat-lora"], ["qad"]))
        if "w16a16" in choices["schemes"] and random.random() < 0.7:
            choices["schemes"] = ["w4a16-int4"]
    if random.random() < 0.15:
        choices["kv_schemes"] = ["kv16", "kv8-fp8"]
    if random.random() < 0.35:
        choices["max_accelerator_types"] = random.choice((1, 1, 2))
    if seed % 5 == 2:
        choices["sequence_slots"] = (2, 5, 8, 12, 20)[seed // 5 % 5]
    roles = (["unified", "disaggregated"], ["disaggregated"], ["unified", "disaggregated"])[seed % 3]
    if seed % 16 in (6, 11):
        choices |= {"serving_roles": roles, "unit_replicas": ([1, 2], [1], [1, 3])[seed % 3]}
    workload: dict[str, Any] = {"model": model}
    count = random.choice((1, 1, 1, 2, 2, 3))
    classes = [_request_class(random, f"class-{index}") for index in range(count)]
    if count == 1:
        one = classes[0]
        workload["request"], workload["demand"] = one["request"], one["demand"]
    else:
        workload["classes"] = classes
    if "spot" in choices["sourcing"]:
        choices["spot_availability_fraction"] = random.choice((0.7, 0.9, 1.0))
    if random.random() < 0.6:
        if random.random() < 0.4:
            workload["load"] = {"mean_fraction": random.choice((0.3, 0.5, 0.8))}
        else:
            digits = random.choice((1, 3))
            few = random.random() < 0.6
            hours = [
                random.choice((0.2, 0.6, 0.9)) if few else round(0.2 + 0.7 * random.random(), digits) for _ in range(23)
            ]
            workload["load"] = {"hourly_fractions": [*hours, 1.0]}
    targets: dict[str, Any] = {
        "accuracy_floor_fraction": random.choice((0.9, 0.95, 0.975, 0.987, 0.992)),
        "spare_fraction": random.choice((0.0, 0.05, 0.05, 0.25, 0.5)),
    }
    if count == 1 and "targets" in classes[0]:
        targets |= classes[0]["targets"]
    if random.random() < 0.4:
        targets["spare_servers"] = random.choice((1, 1, 2))
    if random.random() < 0.25:
        targets["accuracy_confidence"] = random.choice((0.8, 0.9))
    if random.random() < 0.1:
        targets["nvlink_gb_s"] = random.choice((1.0, 20.0))
    if seed % 32 == 11:
        targets["kv_link_fraction"] = (0.002, 0.01, 0.05)[seed // 32 % 3]
    if random.random() < 0.1:
        targets["weights_gib_per_accelerator"] = random.choice((6.0, 12.0))
    if random.random() < 0.03:
        targets["tpot_ms"] = 0.5
    economics: dict[str, Any] = {"prices": prices}
    if random.random() < 0.4:
        economics |= {
            "horizon_years": random.choice((3.0, 5.0)),
            "discount_rate": random.choice((0.0, 0.05, 0.12)),
            "server_life_years": random.choice((3.0, 4.0, 6.0)),
            "price_level": random.choice(("low", "typical", "high")),
        }
    if random.random() < 0.3:
        economics["colocation_usd_per_kw_month"] = random.choice((0.0, 90.0, 200.0))
    if random.random() < 0.3:
        economics["rack_usd"] = random.choice((0.0, 3000.0, 20_000.0))
    # A hall's fixed cost would decide every small fleet alone; most planners here have own figures.
    for option in sorted({*choices["cooling"], "air_containment_econ"}):
        if random.random() < 0.7:
            own = {"fixed_usd": random.choice((0.0, 2000.0, 20_000.0))}
            if random.random() < 0.5:
                own["marginal_usd_per_kw"] = random.choice((300.0, 900.0, 2000.0))
            economics.setdefault("cooling_prices", {})[option] = own
    site: dict[str, Any] = {"climate": random.choice(("us_va_ashburn", "ie_dublin", "sg_singapore"))}
    if random.random() < 0.5:
        site["electricity_usd_per_kwh"] = random.choice((0.05, 0.15, 0.3))
    if random.random() < 0.25:
        site["rack_kw"] = random.choice((8.0, 15.0, 30.0))
    offers = _offers(random, choices, prices)
    inventory = _inventory(random, names, choices["cooling"], {row["id"]: row for row in rows})
    if random.random() < 0.2:
        economics["rent_fallbacks"] = {"reserved_1yr_fraction": 0.75, "spot_fraction": 0.5}
    return {
        "name": f"random {seed}",
        "workload": workload,
        "targets": targets,
        "choices": choices,
        "site": site,
        "economics": economics,
        "inventory": inventory,
        "catalog": {"accelerators": rows, "rental_offers": offers},
    }


def _offers(random: Random, choices: dict[str, Any], prices: dict[str, Any]) -> list[dict[str, Any]]:
    """Own rental prices told as offers of two providers, the cheaper of which has few."""
    result = []
    for name, own in prices.items():
        usd = own.get("on_demand_usd_per_hour")
        if usd is None or random.random() < 0.5:
            continue
        del own["on_demand_usd_per_hour"]
        size = random.choice((1, 2, 4))
        for provider, factor in (("north", 1.0), ("south", random.choice((1.0, 1.1, 1.4)))):
            row = {
                "id": f"{provider}/{name}",
                "provider": provider,
                "region": provider,
                "accelerator": name,
                "accelerators": size,
                "on_demand_usd_per_accelerator_hour": round(usd * factor, 4),
            }
            if random.random() < 0.5:
                row["spot_usd_per_accelerator_hour"] = round(usd * factor * random.choice((0.4, 0.6)), 4)
            result.append(row)
        choices.setdefault("provider_supply", {})["north"] = {name: size * random.choice((0, 1, 2))}
    return result


def _inventory(
    random: Random, names: list[str], cooling: list[str], own: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """A few owned servers of a type that may be bought, or of one that may not."""
    result = []
    for name in names if random.random() < 0.35 else ():
        needs_liquid = own.get(name, {}).get("liquid_cooling") == "required"
        options = [one for one in cooling if not needs_liquid or one in ("d2c_1p", "imm_1p")]
        if not options:
            continue
        row = {
            "accelerator": name,
            "servers": random.choice((1, 1, 2, 3)),
            "cooling": random.choice(options),
            "remaining_life_years": random.choice((1.0, 2.5, 10.0)),
        }
        if random.random() < 0.5:
            row["upkeep_usd_per_server_year"] = random.choice((0.0, 500.0, 5000.0))
        result.append(row)
    return result


def read(document: dict[str, Any]) -> Instance:
    """An instance from what a file would say."""
    return Instance.model_validate_json(json.dumps(document))


def _demand_objects(document: dict[str, Any]) -> list[dict[str, Any]]:
    workload = document["workload"]
    return [one["demand"] for one in workload["classes"]] if "classes" in workload else [workload["demand"]]


def _set_demand(random: Random, document: dict[str, Any], listing: Listing, servers: float) -> None:
    """Demand of ``servers`` servers' worth over all classes, a server's worth being the median over pools."""
    demands = _demand_objects(document)
    for b, demand in enumerate(demands):
        worth = sorted(
            max(c.capacity * (listing.pools[q].server_type.size / c.width) for c in columns)
            for q in range(len(listing.pools))
            if (columns := [c for c in listing.columns if c.pool == q and c.request_class == b])
        )
        unit = next(key for key in demand if key != "think_time_s")
        scale = demand[unit] / listing.demand[b]
        each = worth[len(worth) // 2] if worth else 10.0
        demand[unit] = float(f"{each * scale * servers / len(demands) * random.uniform(0.6, 1.4):.5g}")


def _set_caps(random: Random, document: dict[str, Any], free: Answer) -> None:
    """Caps around what the cheapest fleet without them takes."""
    site, economics, choices = document["site"], document["economics"], document["choices"]
    if free.meter_kw and random.random() < 0.4:
        site["power_kw"] = round(free.meter_kw * random.uniform(0.6, 1.3), 2)
    if free.racks and random.random() < 0.4:
        site["racks"] = max(0, free.racks + random.choice((-1, 0, 0, 1)))
    if random.random() < (0.75 if len(choices["accelerators"]) > 1 else 0.1):
        # A type that is short makes a mix of the others worth its while.
        name = random.choice(sorted(free.accelerators))
        choices["supply"] = {name: math.floor(free.accelerators[name] * random.choice((0.5, 0.7, 0.85)))}
        if random.random() < 0.8:
            choices.pop("max_accelerator_types", None)
    if free.capital_usd and random.random() < 0.3:
        economics["budget_capex_usd"] = round(free.capital_usd * random.uniform(0.6, 1.2), 2)
    if random.random() < 0.15:
        economics["budget_usd_per_year"] = round(free.usd_per_year * random.uniform(0.97, 1.3), 2)


def _features(instance: Instance, listing: Listing, expected: Answer | None) -> Iterable[str]:
    choices, site, economics, targets = instance.choices, instance.site, instance.economics, instance.targets
    bought = [pool for pool in listing.pools if pool.is_bought]
    for kind in {pool.server_type.id: pool.server_type for pool in bought}.values():
        if kind.discounts:
            yield "incremental discount" if kind.incremental else "all-units discount"
            servers = expected.servers if expected is not None else {}
            if sum(n for key, n in servers.items() if key.startswith(f"{kind.id}/buy")) >= kind.discounts[0][0]:
                yield "discount reached"
    if len({pool.cooling.id for pool in bought if pool.cooling is not None}) > 1:
        yield "several cooling options"
    if any(pool.cooling is not None and pool.cooling.medium == "liquid" for pool in bought):
        yield "liquid cooling"
    if len({pool.server_type.accelerator.id for pool in listing.pools}) > 1:
        yield "two accelerator types"
    caps = {
        "power cap": site.power_kw,
        "rack cap": site.racks,
        "rack power cap": site.rack_kw,
        "supply cap": choices.supply or None,
        "capital budget": economics.budget_capex_usd,
        "yearly budget": economics.budget_usd_per_year,
        "type cap": choices.max_accelerator_types,
    }
    yield from (name for name, value in caps.items() if value is not None)
    sourcing = {"buy": "buy", "on_demand": "on demand", "reserved_1yr": "reserved", "reserved_3yr": "reserved"}
    yield from (sourcing[pool.sourcing] for pool in listing.pools if pool.sourcing in sourcing)
    if expected is None:
        yield "infeasible"
    else:
        if all(len(choice.accelerators) > 1 for choice in expected.choices):
            yield "mix chosen"
        if any("/buy/" in key for key in expected.servers):
            yield "bought chosen"
        if any("/buy/" not in key and "/owned/" not in key for key in expected.servers):
            yield "rented chosen"
    yield from power_features.features(instance)
    if expected is not None and any("/owned/" in key for key in expected.servers):
        yield "owned chosen"
    by_level = {pool.id for pool in listing.pools if pool.by_level}
    if expected is not None and by_level & expected.servers.keys():
        yield "paid by level chosen"
    if instance.inventory:
        yield "owned servers"
    if by_level:
        yield "paid by level"
    if any(pool.sourcing == "spot" for pool in listing.pools):
        yield "spot"
    if any(pool.provider in choices.provider_supply for pool in listing.pools):
        yield "provider limit"
    if economics.rent_fallbacks.spot_fraction:
        yield "rent from a share"
    yield from site_features.features(instance)
    converted = any(
        pool.cooling is not None
        and pool.cooling.medium == "liquid"
        and pool.server_type.accelerator.liquid_cooling == "no"
        for pool in bought
    )
    yield from tiers.features(instance, buys=bool(bought), converts=converted)
    if len(listing.classes) > 1:
        yield "several classes"
    if len(listing.power.levels) > 1 or listing.power.levels[0].share < 1.0:
        yield "load levels"
    if targets.spare_servers and bought:
        yield "spare servers"
    for q, pool in enumerate(listing.pools):
        size = pool.server_type.size
        widths = {column.width for column in listing.columns if column.pool == q}
        narrow = [*sorted(width for width in widths if width <= size), size]
        if any(large % small for small, large in pairwise(narrow)):
            yield "widths that do not nest"
        if any(width > size for width in widths):
            yield "replica wider than a server"
    if economics.prices:
        yield "own prices"
    if any(pool.server_type.accelerator.id.startswith("card-") for pool in listing.pools):
        yield "own accelerator"
    model = listing.catalog.models[str(instance.workload.model)]
    if model.experts:
        yield "mixture of experts"
    if model.kv_lora:
        yield "latent attention"
    if any(one.demand.concurrent_users is not None for one in listing.classes):
        yield "users"
    if any(usd > 0 for usd in listing.scheme_usd.values()):
        yield "quantized"
    if any(not key.endswith("+none") for key in listing.scheme_usd):
        yield "recovery step"
    if targets.accuracy_confidence > 0.5:
        yield "conservative accuracy"
    if instance.choices.sequence_slots is not None:
        yield "sequence slots"
    if "disaggregated" in instance.choices.serving_roles:
        yield "two roles"
    if any(pool.server_type.cap < 1.0 for pool in listing.pools):
        yield "power states"
    if expected is not None and any("@" in key for key in expected.servers):
        yield "power cap chosen"


@cache
def draw(seed: int) -> Drawn:
    """The random instance of a seed. Instances too large to enumerate are drawn again, from the same stream."""
    random = Random(f"oracle {seed}")
    own = Random(f"power {seed}")
    steps, weather, failing = (Random(f"{name} {seed}") for name in ("tiers", "weather", "availability"))
    licences, states = Random(f"software {seed}"), Random(f"power states {seed}")
    for _ in range(50):
        document = _document(random, seed)
        power_features.add_prices(own, document)
        site_features.add_site(own, document)
        tiers.add_discounts(steps, document)
        tiers.add_weather(weather, document)
        site_features.add_software(licences, document)
        tiers.add_availability(failing, document)
        power_features.add_states(states, document)
        listing = list_instance(read(document))
        served = {column.request_class for column in listing.columns}
        empty = len(served) < len(listing.classes)
        if empty and random.random() < 0.9:
            continue
        _set_demand(random, document, listing, random.choice((0.4, 1.0, 2.0, 3.0, 4.5)))
        try:
            free = answer(listing.under(read(document)), MOST_STEPS)
            if free is not None:
                _set_caps(random, document, free)
                power_features.add_cap(own, document, *free.idle_caused)
                site_features.add_floor(own, document, free.racks)
            instance = read(document)
            listing = listing.under(instance)
            expected = answer(listing, MOST_STEPS)
        except TooLarge:
            continue
        return Drawn(seed, instance, listing, frozenset(_features(instance, listing, expected)), expected)
    raise RuntimeError(f"no small instance in 50 draws from seed {seed}")


def counts(drawn: Iterable[Drawn]) -> dict[str, int]:
    """How many instances have each feature, in the order of ``FEATURES``."""
    found = Counter(feature for one in drawn for feature in one.features)
    return {name: found[name] for name in FEATURES}
