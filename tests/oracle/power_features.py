"""Random tariffs, prices and caps of carbon and water, laid over a random instance from a stream of their own."""

from collections.abc import Iterable
from random import Random
from typing import Any

from optimizer.instance.model import Instance

#: Features that at least 50 of 500 instances must have.
FEATURES = ("tariff", "hourly tariff", "peak charge", "connection charge", "escalation", "carbon price", "water price")
#: Rarer: only where servers are bought, and at most one of them in an instance.
CAPS = ("carbon cap", "water cap")


def add_prices(random: Random, document: dict[str, Any]) -> None:
    """What electricity, carbon and water cost."""
    site, economics = document["site"], document["economics"]
    if random.random() < 0.5:
        site.pop("electricity_usd_per_kwh", None)
        site["tariff"] = _tariff(random)
    if random.random() < 0.3:
        economics["energy_escalation_fraction"] = random.choice((-0.02, 0.0166, 0.1))
    if random.random() < 0.25:
        economics["carbon_usd_per_tonne"] = random.choice((20.0, 100.0, 800.0))
    if random.random() < 0.25:
        economics["water_usd_per_m3"] = random.choice((2.0, 50.0))
    if random.random() < 0.15:
        site["carbon_g_per_kwh"] = random.choice((20.0, 700.0))


def _tariff(random: Random) -> dict[str, Any]:
    tariff: dict[str, Any] = {}
    form = random.random()
    if form < 0.3:
        tariff["hourly_usd_per_kwh"] = [
            round(random.choice((0.04, 0.1, 0.3)), 3) for _ in range(random.choice((24, 168)))
        ]
    else:
        tariff["energy_usd_per_kwh"] = random.choice((0.04, 0.1))
        if form < 0.8:
            tariff["periods"] = [
                {
                    "usd_per_kwh": random.choice((0.02, 0.2, 0.5)),
                    "months": random.choice(([], [6, 7, 8, 9], [1, 12])),
                    "weekdays": random.choice(([], [1, 2, 3, 4, 5], [6, 7])),
                    "hours": random.choice(([], list(range(8, 20)), [0, 1, 2, 23])),
                }
                for _ in range(random.choice((1, 2)))
            ]
    if random.random() < 0.6:
        tariff["demand_usd_per_kw_month"] = random.choice((6.0, 17.25, 60.0))
    if random.random() < 0.5:
        tariff["fixed_usd_per_month"] = random.choice((100.0, 2000.0))
    return tariff


def add_states(random: Random, document: dict[str, Any]) -> None:
    """Power caps that servers in the hall may run under; from a stream of their own, so that seeds stay."""
    if random.random() < 0.3:
        caps = random.choice(([1.0, 0.7], [0.6, 0.8], [1.0, 0.9], [1.0, 0.8, 0.6], [0.65]))
        document["choices"]["power_cap_fractions"] = caps


def add_cap(random: Random, document: dict[str, Any], tonnes: float, cubic_metres: float) -> None:
    """A cap around what the cheapest fleet causes when idle."""
    if random.random() < 0.3 and tonnes:
        document["site"]["carbon_tonnes_per_year"] = float(f"{tonnes * random.uniform(0.8, 2.0):.5g}")
    elif random.random() < 0.4 and cubic_metres:
        document["site"]["water_m3_per_year"] = float(f"{cubic_metres * random.uniform(0.5, 2.0):.5g}")


def features(instance: Instance) -> Iterable[str]:
    """Which of them an instance has."""
    site, economics = instance.site, instance.economics
    if site.tariff is not None:
        yield "tariff"
        if site.tariff.hourly_usd_per_kwh is not None or site.tariff.periods:
            yield "hourly tariff"
        if site.tariff.demand_usd_per_kw_month:
            yield "peak charge"
        if site.tariff.fixed_usd_per_month:
            yield "connection charge"
    if economics.energy_escalation_fraction:
        yield "escalation"
    if economics.carbon_usd_per_tonne:
        yield "carbon price"
    if economics.water_usd_per_m3:
        yield "water price"
    if site.carbon_tonnes_per_year is not None:
        yield "carbon cap"
    if site.water_m3_per_year is not None:
        yield "water cap"
