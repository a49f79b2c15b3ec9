"""Small random instances that train: one job in many shapes, limits that bind and that do not."""

import json
import random
from typing import Any

from optimizer.instance.model import Instance
from optimizer.instance.reading import read_instance_text
from tests.oracle.tiers import add_weather

_CARDS = ("a100-80gb-sxm", "h100-80gb-sxm", "h200-141gb-sxm", "b200-180gb-sxm", "mi300x", "gb200-nvl72")
_CLIMATES = ("us_va_ashburn", "us_or_dalles", "sg_singapore", "fi_helsinki")
#: Billions of parameters, all and active, and degrees that divide the experts which such sizes imply (43, 133).
_SIZES = (
    (1.0, None, (1,)),
    (7.0, None, (1,)),
    (13.0, None, (1,)),
    (70.0, None, (1,)),
    (47.0, 13.0, (1, 43)),
    (235.0, 22.0, (1, 7, 19)),
)


def draw_training(seed: int) -> dict[str, Any]:
    """A random instance as JSON values."""
    rng = random.Random(seed)
    size, active, expert_degrees = rng.choice(_SIZES)
    counts = sorted(rng.sample((8, 16, 24, 64, 72, 96, 100, 128, 192, 256, 400, 512, 1024, 2048), rng.randint(1, 4)))
    flop = 6e9 * (active or size)
    workload: dict[str, Any] = {
        "kind": "training",
        "parameters_b": size,
        "tokens": rng.uniform(2, 30) * 86400 * counts[-1] * 1.2e14 / flop,
        "sequence_tokens": rng.choice((2048, 4096, 8192)),
        "global_batch_tokens": rng.choice((1e6, 4e6, 8e6, 3.3e6)),
        "precisions": rng.choice((["bf16"], ["fp8"], ["bf16", "fp8"])),
        "accelerator_counts": counts,
        "layouts": {
            "tensor_parallel": sorted(rng.sample((1, 2, 4, 8), rng.randint(1, 3))),
            "pipeline_parallel": sorted(rng.sample((1, 2, 3, 4, 8), rng.randint(1, 2))),
            "virtual_stages": [1],
            "context_parallel": [1],
            "expert_parallel": list(expert_degrees),
            "micro_batch": [rng.choice((1, 2))],
            "recompute": rng.choice((["none"], ["none", "full"])),
            "zero_stages": rng.choice(([1], [1, 3])),
        },
    }
    if active:
        workload["active_parameters_b"] = active
    if rng.random() < 0.3:
        workload["reliability"] = {"restart_s": rng.choice((120, 1200)), "fault_tolerant_replicas": rng.choice((1, 4))}
        if rng.random() < 0.5:
            workload["reliability"] |= {"production_factor": 1.13, "mtbf_accelerator_hours": 40000}
    if rng.random() < 0.25:
        workload["delay_usd_per_day"] = rng.choice((1e3, 1e4, 1e5))
    if rng.random() < 0.2:
        workload["most_accelerators"] = rng.choice(counts)
    cooling = rng.sample(("air_containment_econ", "rdhx_passive", "d2c_1p", "imm_1p"), rng.randint(1, 3))
    if "d2c_1p" not in cooling and rng.random() < 0.5:
        cooling.append("d2c_1p")
    value: dict[str, Any] = {
        "name": f"random training {seed}",
        "workload": workload,
        "targets": {"spare_fraction": rng.choice((0.0, 0.05, 0.1))},
        "choices": {
            "accelerators": rng.sample(_CARDS, rng.randint(1, 3)),
            "cooling": sorted(set(cooling)),
            "sourcing": rng.choice((["buy"], ["buy", "on_demand"], ["buy", "on_demand", "reserved_1yr"])),
        },
        "economics": {"charge": rng.choice(("job", "job", "horizon")), "discount_rate": rng.choice((0.0, 0.08))},
    }
    if rng.random() < 0.7:
        value["targets"]["deadline_days"] = round(rng.uniform(10, 120), 2)
    if rng.random() < 0.25:
        value["targets"]["mfu_floor_fraction"] = round(rng.uniform(0.1, 0.5), 3)
    if rng.random() < 0.15:
        value["targets"]["nvlink_fraction"] = rng.choice((0.02, 0.05, 0.2))
    if rng.random() < 0.15:
        value["economics"]["budget_usd"] = rng.choice((1e5, 1e6, 1e7))
    if rng.random() < 0.1:
        value["economics"]["budget_capex_usd"] = rng.choice((1e7, 1e8))
    if rng.random() < 0.2:
        value["choices"]["supply"] = {rng.choice(value["choices"]["accelerators"]): rng.choice((64, 256, 600))}
    if rng.random() < 0.4:
        _two_sites(rng, value, counts[-1])
    else:
        value["site"] = _site(rng, counts[-1])
    _add_discounts(random.Random(f"tiers {seed}"), value, counts)
    _add_site(random.Random(f"site {seed}"), value)
    return value


def _add_discounts(rng: random.Random, value: dict[str, Any], counts: list[int]) -> None:
    """Discounts on network and plants near the counts of the job, from a stream of their own."""
    kinds = ("all_units", "incremental")
    if rng.random() < 0.3:
        starts = sorted({max(2, round(rng.choice(counts) * rng.choice((0.6, 1.0, 1.02, 1.3)))) for _ in range(2)})
        steps = zip(starts, (0.1, 0.35), strict=False)
        value["economics"]["network_discounts"] = [
            {"from_accelerators": start, "discount_fraction": share} for start, share in steps
        ]
        value["economics"]["network_discount_kind"] = rng.choice(kinds)
    if rng.random() < 0.3:
        plant_steps = zip((0.5 * float(rng.choice(counts)), counts[-1] * 1.6), (0.15, 0.4), strict=True)
        own: dict[str, Any] = {"discount_kind": rng.choice(kinds)}
        own["discounts"] = [{"from_kw": start, "discount_fraction": share} for start, share in plant_steps]
        value["economics"]["cooling_prices"] = dict.fromkeys(value["choices"]["cooling"], own)


def _add_site(rng: random.Random, value: dict[str, Any]) -> None:
    """What sites bring beside power: weather, part load, halls, cooling by the rack, staff, availability.

    From a stream of its own, so that the other draws of a seed stay.
    """
    sites = value.get("sites") or [value["site"]]
    for site in sites:
        wrapped: dict[str, Any] = {"site": site}
        add_weather(rng, wrapped)
        # Of two sites a hall of one's own, never left alone, makes one dear: rarer, so that splits are drawn too.
        if rng.random() < (0.75 if len(sites) == 1 else 0.3):
            site["facility"] = rng.choice(("own_build", "cheaper"))
    economics = value["economics"]
    if rng.random() < 0.7:
        for option in value["choices"]["cooling"]:
            if rng.random() < 0.6:
                own = economics.setdefault("cooling_prices", {}).get(option, {})
                economics["cooling_prices"][option] = {**own, "per_rack_usd": rng.choice((500.0, 6000.0, 60_000.0))}
    if rng.random() < 0.6:
        # Eleven posts that an own hall always has would decide every small run.
        economics["staff"] = {"usd_per_fte_year": rng.choice((500.0, 50_000.0)), "step_fte": rng.choice((0.1, 1.0))}
        economics["staff"]["minimum_fte"] = rng.choice((0.0, 0.5, 2.0))
        economics["hall"] = {"build_usd_per_kw": rng.choice((500.0, 9000.0)), "life_years": rng.choice((8.0, 20.0))}
    if not value.get("sites"):
        _add_availability(rng, value)
    else:
        # Racks count whole at each site: with a price they would make any split cheapest by a hair.
        for own in economics.get("cooling_prices", {}).values():
            own.pop("per_rack_usd", None)


def _add_availability(rng: random.Random, value: dict[str, Any]) -> None:
    """A target of availability; milder than for a few servers, since the enumeration counts in whole fractions."""
    if rng.random() < 0.4:
        value["targets"] |= {
            "availability_fraction": rng.choice((0.9, 0.99, 0.9999)),
            "failures_per_accelerator_year": rng.choice((0.04, 0.1)),
            "repair_days": rng.choice((2.0, 7.0)),
        }


def _site(rng: random.Random, most: int) -> dict[str, Any]:
    site: dict[str, Any] = {"climate": rng.choice(_CLIMATES)}
    if rng.random() < 0.5:
        site["power_kw"] = round(most * rng.uniform(0.4, 2.5), 1)
    if rng.random() < 0.2:
        site["racks"] = rng.randint(1, max(2, most // 20))
    if rng.random() < 0.3:
        site["electricity_usd_per_kwh"] = rng.choice((0.03, 0.1, 0.3))
    return site


def _two_sites(rng: random.Random, value: dict[str, Any], most: int) -> None:
    """Two sites with a link. Spares and racks that are rounded at each site would make any split cheapest by a hair."""
    value["targets"]["spare_fraction"] = 0.0
    value["economics"]["rack_usd"] = 0
    value["sites"] = [{"name": name, **_site(rng, most)} for name in ("east", "west")]
    for site in value["sites"]:
        site.pop("racks", None)
        site["power_kw"] = round(most * rng.uniform(0.3, 1.5), 1)
    value["wan_links"] = [
        {"between": ["east", "west"], "gbit_per_s": rng.choice((100, 1000, 10000)), "km": rng.choice((10, 500, 3000))}
    ]


def instance_of(value: dict[str, Any]) -> Instance:
    """Read the values as an instance."""
    return read_instance_text(json.dumps(value), "random.json")
