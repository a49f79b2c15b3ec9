"""What power costs and causes, hour by hour in plain Python: docs/method.md sections 4, 6 and 8."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from optimizer.catalog import Catalog
from optimizer.instance.economics import Economics
from optimizer.instance.model import Instance
from optimizer.instance.tariff import Tariff

HOURS = 8766.0
WEEK = 168
MONTHS = (31.0, 28.25, 31.0, 30.0, 31.0, 30.0, 31.0, 31.0, 30.0, 31.0, 30.0, 31.0)
#: A profile of more distinct values below its peak is merged into as many bands.
BANDS = 23


class Level(NamedTuple):
    """A share of the peak, its hours a year, the price of a kWh of requests in them, whether it is the metered peak."""

    share: float
    hours: float
    usd_per_kwh: float
    is_metered_peak: bool


class Part(NamedTuple):
    """What replicas carry of a class, and the IT power (kW) of one unit of it, with the figures of where they stand."""

    capacity: float
    kw: float
    pue_mean: float
    pue_design: float
    m3_per_kwh: float


@dataclass(frozen=True)
class PowerCosts:
    """Prices of power, levelised over the horizon, and caps on what it causes."""

    levels: tuple[Level, ...]
    mean_usd_per_kwh: float
    peak_usd_per_kw: float
    connection_usd: float
    tonnes_per_kwh: float
    usd_per_tonne: float
    usd_per_m3: float
    most_tonnes: float | None
    most_m3: float | None

    def server_usd(self, idle_kw: float, pue_mean: float, pue_design: float, m3_per_kwh: float) -> float:
        """A year of one server that idles."""
        kwh = idle_kw * HOURS
        energy = kwh * pue_mean * (self.mean_usd_per_kwh + self.tonnes_per_kwh * self.usd_per_tonne)
        return energy + kwh * m3_per_kwh * self.usd_per_m3 + idle_kw * pue_design * self.peak_usd_per_kw

    def unit_usd(self, level: Level, part: Part) -> float:
        """A year of one unit of demand at a level, above idle."""
        kwh = part.kw * level.hours
        usd = kwh * part.pue_mean * (level.usd_per_kwh + self.tonnes_per_kwh * self.usd_per_tonne)
        usd += kwh * part.m3_per_kwh * self.usd_per_m3
        return usd + (part.kw * part.pue_design * self.peak_usd_per_kw if level.is_metered_peak else 0.0)

    def caused(self, kwh: float, pue_mean: float, m3_per_kwh: float) -> tuple[float, float]:
        """Carbon (t) and water (m3) of IT energy."""
        return kwh * pue_mean * self.tonnes_per_kwh, kwh * m3_per_kwh

    def room(self, caused: tuple[float, float]) -> tuple[float, float]:
        """What the caps leave beside what is caused already; infinite without a cap."""
        most = (self.most_tonnes, self.most_m3)
        return tuple(float("inf") if cap is None else cap - used for cap, used in zip(most, caused, strict=True))  # type: ignore[return-value]


def levelised(economics: Economics, rise: float) -> float:
    """Mean of a price that rises from the second year on, weighted with the present worth of each year's payment."""
    rate, years = economics.discount_rate, economics.horizon_years
    whole = int(years)
    spans = [1.0] * whole + ([years - whole] if years > whole else [])
    paid = worth = begun = 0.0
    for year, span in enumerate(spans):
        # Payments of a year are worth what an annuity over it is worth when it begins.
        part = span if rate == 0 else (1.0 - (1.0 + rate) ** -span) / rate
        part *= (1.0 + rate) ** -begun
        paid += part * (1.0 + rise) ** year
        worth += part
        begun += span
    return paid / worth


def price_at(tariff: Tariff, month: int, place: int) -> float:
    """Energy price of an hour of the week in a month; the last period that holds it counts."""
    if tariff.hourly_usd_per_kwh is not None:
        return tariff.hourly_usd_per_kwh[place % len(tariff.hourly_usd_per_kwh)]
    found = tariff.energy_usd_per_kwh
    assert found is not None
    for one in tariff.periods:
        tests = ((one.months, month), (one.weekdays, place // 24 + 1), (one.hours, place % 24))
        if all(not listed or value in listed for listed, value in tests):
            found = one.usd_per_kwh
    return found


def power_costs(instance: Instance, catalog: Catalog) -> PowerCosts:
    """Prices of power of an instance."""
    site, economics = instance.site, instance.economics
    region = catalog.electricity[site.electricity_region or catalog.climates[site.climate].electricity_region]
    tariff = site.tariff
    rise = levelised(economics, economics.energy_escalation_fraction)
    flat = region.price_usd_per_kwh if site.electricity_usd_per_kwh is None else site.electricity_usd_per_kwh
    if tariff is None:
        assert flat is not None
        week = [flat] * WEEK
    else:
        year = sum(MONTHS)
        week = [
            sum(days / year * price_at(tariff, month, place) for month, days in enumerate(MONTHS, 1))
            for place in range(WEEK)
        ]
    grams = region.carbon_g_per_kwh if site.carbon_g_per_kwh is None else site.carbon_g_per_kwh
    assert grams is not None
    after_tax = 1.0 - economics.tax_fraction
    rise *= after_tax
    charged = tariff is not None and tariff.demand_usd_per_kw_month > 0
    return PowerCosts(
        levels=tuple(levels(instance, [usd * rise for usd in week], charged=charged)),
        mean_usd_per_kwh=rise * sum(week) / WEEK,
        peak_usd_per_kw=0.0 if tariff is None else 12.0 * rise * tariff.demand_usd_per_kw_month,
        connection_usd=0.0 if tariff is None else 12.0 * rise * tariff.fixed_usd_per_month,
        tonnes_per_kwh=grams / 1e6,
        usd_per_tonne=economics.carbon_usd_per_tonne * after_tax,
        usd_per_m3=economics.water_usd_per_m3 * after_tax,
        most_tonnes=site.carbon_tonnes_per_year,
        most_m3=site.water_m3_per_year,
    )


def levels(instance: Instance, week: Sequence[float], *, charged: bool) -> list[Level]:
    """Section 4: the levels that something is paid for, with the load-weighted price of their hours."""
    load = instance.workload.load
    mean = sum(week) / WEEK
    if load.hourly_fractions is None:
        share = 1.0 if load.mean_fraction is None else load.mean_fraction
        found = [Level(share, HOURS, mean, charged and share == 1.0)]
        return [Level(1.0, 0.0, mean, True), *found] if charged and share < 1.0 else found
    peak = max(load.hourly_fractions)
    shares = [load.hourly_fractions[place % len(load.hourly_fractions)] / peak for place in range(WEEK)]
    below = sorted({share for share in shares if share < 1.0})
    edges = None
    if len(below) > BANDS:
        width = (below[-1] - below[0]) / BANDS
        edges = {share: min(int((share - below[0]) / width), BANDS - 1) for share in below}
    result: list[Level] = []
    for group in [1.0, *(below if edges is None else range(BANDS))]:
        if group == 1.0 and not result:
            places = [place for place in range(WEEK) if shares[place] == 1.0]
        elif edges is None:
            places = [place for place in range(WEEK) if shares[place] == group]
        else:
            places = [place for place in range(WEEK) if shares[place] < 1.0 and edges[shares[place]] == group]
        if not places:
            continue
        work = sum(shares[place] for place in places)
        paid = sum(shares[place] * week[place] for place in places)
        usd = paid / work if work else sum(week[place] for place in places) / len(places)
        result.append(Level(work / len(places), HOURS / WEEK * len(places), usd, charged and not result))
    return result


class Load(NamedTuple):
    """A class at a level: how much must be served, and by what, each with its cost and use for one unit."""

    needed: float
    options: tuple[tuple[float, float, tuple[float, float]], ...]


def cheapest(costs: PowerCosts, loads: Sequence[Load], room: tuple[float, float]) -> float | None:
    """Least cost of serving every load within the room that caps leave; None where there is none.

    Without a binding cap each load takes its cheapest options first. With one, the least of cost plus a price on its
    use is the cheapest of all that use as much; that price is found by halving, and where two answers meet at it, the
    cap is reached between them.
    """

    def served(price: float, cap: int) -> tuple[float, list[float]]:
        usd, used = 0.0, [0.0, 0.0]
        for load in loads:
            left = load.needed
            order = sorted(load.options, key=lambda one: (one[1] + price * one[2][cap], one[2][cap]))
            for capacity, cost, use in order:
                part = min(left, capacity)
                usd += part * cost
                used = [total + part * each for total, each in zip(used, use, strict=True)]
                left -= part
                if left <= 0.0:
                    break
        return usd, used

    usd, used = served(0.0, 0)
    broken = [cap for cap in (0, 1) if used[cap] > room[cap] * (1.0 + 1e-9) + 1e-12]
    if not broken:
        return usd
    if len(broken) > 1:
        raise NotImplementedError("two caps at once are outside the oracle")
    (cap,) = broken
    low, high = 0.0, 1e12
    least = served(high, cap)
    if least[1][cap] > room[cap] * (1.0 + 1e-9) + 1e-12:
        return None
    for _ in range(200):
        middle = (low * high) ** 0.5 if low > 0.0 else high / 2.0
        if served(middle, cap)[1][cap] > room[cap]:
            low = middle
        else:
            high = middle
    (dear_usd, dear), (cheap_usd, cheap) = served(high, cap), served(low, cap)
    if dear[1 - cap] > room[1 - cap] * (1.0 + 1e-9):
        raise NotImplementedError("two caps at once are outside the oracle")
    share = (cheap[cap] - room[cap]) / (cheap[cap] - dear[cap]) if cheap[cap] > dear[cap] else 1.0
    return cheap_usd + min(1.0, max(0.0, share)) * (dear_usd - cheap_usd)
