"""Quantity discounts by their words, and random ones: every order that takes what is needed is priced."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from math import comb
from random import Random
from typing import Any

from optimizer.catalog.rows import Fabric
from optimizer.instance.economics import CoolingPrices, Economics
from optimizer.instance.model import Instance
from optimizer.instance.targets import Targets

#: Features that at least 50 of 500 instances must have.
FEATURES = (
    "network discount",
    "plant discount",
    "cooling by the rack",
    "converted to liquid",
    "own weather",
    "part load",
    "availability",
)


def network_usd(fabrics: Sequence[Fabric], economics: Economics, accelerators: int) -> float:
    """Price of the cheapest order of at least so many accelerators' network."""
    steps = [(one.from_accelerators, one.discount_fraction) for one in economics.network_discounts]
    all_units = economics.network_discount_kind == "all_units"
    most = max([accelerators, *(start for start, _ in steps)]) if all_units else accelerators
    best = float("inf")
    for count in {accelerators, *(start for start, _ in steps)}:
        if not accelerators <= count <= most:
            continue
        fabric = next((one for one in fabrics if count <= one.max_accelerators), fabrics[-1])
        usd = float(getattr(fabric, f"{economics.price_level}_usd_per_accelerator"))
        if all_units:
            total = count * usd * (1.0 - max([off for start, off in steps if start <= count], default=0.0))
        else:
            # Each accelerator by its own number.
            starts = [1, *(start for start, _ in steps), count + 1]
            shares = [0.0, *(off for _, off in steps)]
            total = 0.0
            for place, off in enumerate(shares):
                total += max(0, min(starts[place + 1], count + 1) - starts[place]) * usd * (1.0 - off)
        best = min(best, total)
    return best


def plant_usd(marginal: float, own: CoolingPrices | None, heat_kw: float) -> float:
    """Price of the kW of the smallest or of a larger plant that takes the heat, without its fixed part."""
    steps = () if own is None else tuple((one.from_kw, one.discount_fraction) for one in own.discounts)
    if own is not None and own.discount_kind == "incremental":
        starts = [0.0, *(start for start, _ in steps), float("inf")]
        shares = [0.0, *(off for _, off in steps)]
        return sum(
            max(0.0, min(starts[place + 1], heat_kw) - starts[place]) * marginal * (1.0 - off)
            for place, off in enumerate(shares)
        )
    sizes = [heat_kw, *(start for start, _ in steps if start > heat_kw)]
    return min(
        size * marginal * (1.0 - max([off for start, off in steps if start <= size], default=0.0)) for size in sizes
    )


def available_spares(targets: Targets, accelerators: int, in_service: int) -> int:
    """Least spares with which enough servers are up with the asked probability, in whole fractions."""
    if targets.availability_fraction is None:
        return 0
    down = targets.failures_per_accelerator_year, targets.repair_days
    return _available(targets.availability_fraction, *down, accelerators, in_service)


@cache
def _available(asked: float, failures: float, repair_days: float, accelerators: int, in_service: int) -> int:
    hours_down = Fraction(failures) * accelerators * Fraction(repair_days)
    down = hours_down / (hours_down + Fraction(1461, 4))
    for spare in range(1000):
        total = in_service + spare
        sure = sum(comb(total, k) * down**k * (1 - down) ** (total - k) for k in range(spare + 1))
        if sure >= Fraction(asked) - Fraction(1, 10**12):
            return spare
    raise ValueError("no count of spares is enough")


def least_share(shares: Iterable[float]) -> float:
    """What is left of a price under the largest discount."""
    return 1.0 - max(shares, default=0.0)


def add_discounts(random: Random, document: dict[str, Any]) -> None:
    """Steps of a size that small fleets come near to."""
    economics = document["economics"]
    if random.random() < 0.3:
        steps = sorted(random.sample((2, 4, 6, 8, 12, 16, 24, 32, 64), random.choice((1, 2, 3))))
        economics["network_discounts"] = [
            {"from_accelerators": start, "discount_fraction": share}
            for start, share in zip(steps, sorted(random.sample((0.05, 0.1, 0.2, 0.35, 0.5), len(steps))), strict=True)
        ]
        economics["network_discount_kind"] = random.choice(("all_units", "incremental"))
    if random.random() < 0.4:
        prices = economics.setdefault("cooling_prices", {})
        for option in sorted({*document["choices"]["cooling"], "air_containment_econ"}):
            if random.random() < 0.6:
                starts = sorted(random.sample((3.0, 6.0, 11.5, 20.0, 33.3, 60.0), random.choice((1, 2, 3))))
                shares = sorted(random.sample((0.05, 0.1, 0.25, 0.4, 0.6), len(starts)))
                own = prices.setdefault(option, {})
                own["discounts"] = [
                    {"from_kw": start, "discount_fraction": share} for start, share in zip(starts, shares, strict=True)
                ]
                own["discount_kind"] = random.choice(("all_units", "incremental"))
    if random.random() < 0.35:
        for option in document["choices"]["cooling"]:
            if random.random() < 0.6:
                own = economics.setdefault("cooling_prices", {}).setdefault(option, {})
                own["per_rack_usd"] = random.choice((500.0, 6000.0, 25_000.0))
    if random.random() < 0.8:
        document["choices"]["liquid_retrofit"] = True
        if random.random() < 0.5:
            economics["liquid_retrofit_usd_per_kw"] = random.choice((0.0, 300.0, 2500.0))


def add_availability(random: Random, document: dict[str, Any]) -> None:
    """A target of availability, with servers that fail often enough for it to ask for more than the share."""
    if random.random() < 0.3:
        document["targets"] |= {
            "availability_fraction": random.choice((0.9, 0.99, 0.999, 0.99999)),
            "failures_per_accelerator_year": random.choice((0.04, 0.3, 1.0)),
            "repair_days": random.choice((2.0, 7.0, 30.0)),
        }


def add_weather(random: Random, document: dict[str, Any]) -> None:
    """Own bins or hours, and plants that run below their size."""
    site = document["site"]
    if random.random() < 0.2:
        middles = sorted(random.sample(range(-10, 36), 5))
        dry = [float(random.choice((0, 100, 1500, 4000))) for _ in middles]
        wet = [dry[0] + 10.0, *dry[1:-1], 0.0]
        site["climate_bins"] = {"temperature_c": middles, "dry_bulb_hours": [5.0 + one for one in dry]}
        site["climate_bins"]["wet_bulb_hours"] = wet
    elif random.random() < 0.1:
        dry = [round(random.gauss(15.0, 9.0), 0) for _ in range(8760)]
        site["climate_bins"] = {"dry_bulb_c": dry, "wet_bulb_c": [one - random.choice((0.0, 2.0, 6.0)) for one in dry]}
    if random.random() < 0.3:
        site["plant_load_fraction"] = random.choice((0.15, 0.3, 0.5, 0.8))


def features(instance: Instance, *, buys: bool, converts: bool) -> Iterable[str]:
    """Which of them an instance has; ``converts``: it offers servers for air that are converted to liquid."""
    if buys and any(one.per_rack_usd for one in instance.economics.cooling_prices.values()):
        yield FEATURES[2]
    if converts:
        yield FEATURES[3]
    if buys and instance.site.climate_bins is not None:
        yield FEATURES[4]
    if buys and instance.site.plant_load_fraction < 1.0:
        yield FEATURES[5]
    if buys and instance.targets.availability_fraction is not None:
        yield FEATURES[6]
    if buys and instance.economics.network_discounts:
        yield FEATURES[0]
    if buys and any(one.discounts for one in instance.economics.cooling_prices.values()):
        yield FEATURES[1]
