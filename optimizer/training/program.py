"""The program of training: each job runs once, on one of its choices, from one day of the calendar, at least cost.

    Run[j,c,t] binary       job j does choice c from period t on
    Job_Runs[j]             sum_ct Run[j,c,t] = 1
    several jobs only:
    Fleet[q] integer        servers of a pool, spares included
    Fleet_Holds[q,t]        servers of the runs that are under way in period t <= Fleet[q]
    Power, racks, supply, types: rows over Fleet; Capital_Budget and Run_Budget over what is paid

One job alone holds exactly its own servers, so its limits were checked choice by choice (``choices``). Bought servers
of several jobs that are charged for the horizon are paid as a fleet: its price by segments between the steps of
fabric tiers and discounts, one binary a segment.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from pyomo.core import (
    Binary,
    ConcreteModel,
    Constraint,
    NonNegativeIntegers,
    NonNegativeReals,
    Objective,
    Var,
    minimize,
)

from constraints import TRAINING_FAMILIES
from optimizer.costs.servers import tier_prices
from optimizer.instance.model import Instance
from optimizer.program import linear
from optimizer.training.choices import Choice
from optimizer.training.jobs import Job
from optimizer.training.orders import bends, has_discounts
from optimizer.training.prices import RUNNING, PoolPrices
from optimizer.units import HOURS_PER_YEAR

#: Key of a run: job, choice, period.
Run = tuple[int, int, int]


@dataclass(frozen=True)
class Segment:
    """Counts of one pool at which its fleet costs ``fixed + each x count``, in yearly USD and capital."""

    first: int
    last: int
    usd_fixed: float
    usd_each: float
    capital_fixed: float
    capital_each: float


@dataclass(frozen=True)
class TrainingProgram:
    """Everything that the program needs. ``choices`` by job; ``period_days`` is the step of the calendar."""

    instance: Instance
    jobs: tuple[Job, ...]
    choices: tuple[tuple[Choice, ...], ...]
    period_days: float

    @property
    def is_shared(self) -> bool:
        """Several jobs on one fleet."""
        return len(self.jobs) > 1

    @property
    def charges_horizon(self) -> bool:
        """Bought servers are paid as a fleet over the horizon."""
        return self.is_shared and self.instance.economics.charge == "horizon"

    @cached_property
    def pools(self) -> dict[str, PoolPrices]:
        """Pools that some choice uses, by name."""
        found = {part.prices.id: part.prices for choices in self.choices for choice in choices for part in choice.parts}
        return dict(sorted(found.items()))

    @cached_property
    def runs(self) -> dict[Run, tuple[float, int]]:
        """(job, choice, period) -> (start day, periods held). A job alone starts on its earliest day."""
        found: dict[Run, tuple[float, int]] = {}
        for j, job in enumerate(self.jobs):
            for c, choice in enumerate(self.choices[j]):
                if not self.is_shared:
                    found[j, c, 0] = (job.start_day, 1)
                    continue
                first = int(np.ceil(job.start_day / self.period_days - 1e-9))
                held = int(np.ceil(choice.days / self.period_days - 1e-9))
                last = int(np.floor((job.deadline_day - choice.days) / self.period_days + 1e-9))
                for period in range(first, last + 1):
                    found[j, c, period] = (period * self.period_days, held)
        return found

    def run_usd(self, run: Run) -> float:
        """Cost of a run: everything of the job, but for what is paid as a fleet; delay from its earliest day on."""
        j, c, _ = run
        choice, job = self.choices[j][c], self.jobs[j]
        start = self.runs[run][0]
        usd = choice.usd + (start - job.start_day) * job.delay_usd_per_day
        if self.charges_horizon:
            for part in choice.parts:
                usd -= self.fleet_usd(part.prices, part.total)
        return usd

    def fleet_usd(self, prices: PoolPrices, total: int) -> float:
        """What a fleet of a pool is charged over the horizon."""
        count = np.array([total])
        terms = [term for term in prices.terms if term.component not in ("rent", *RUNNING)]
        yearly = sum(t.usd_per_year * prices.quantity(t.quantity, count, count)[0] for t in terms)
        return float(yearly) / prices.horizon_share

    @cached_property
    def most(self) -> dict[str, int]:
        """Servers of a pool that no plan exceeds: every job on its largest choice at once."""
        found = dict.fromkeys(self.pools, 0)
        for choices in self.choices:
            largest: dict[str, int] = {}
            for choice in choices:
                for part in choice.parts:
                    largest[part.prices.id] = max(largest.get(part.prices.id, 0), part.total)
            for key, count in largest.items():
                found[key] += count
        return found

    def segments(self, key: str) -> tuple[Segment, ...]:
        """Price of a pool's fleet between the steps of tiers, discounts and posts; racks rounded up are apart."""
        prices, most = self.pools[key], self.most[key]
        if not prices.pool.is_bought:
            return ()
        size = prices.pool.server_type.accelerators
        fabrics = prices.place.setting.fabrics[prices.pool.server_type.accelerator.scale_out_gb_s]
        steps = {1, *(tier[0] for tier in tier_prices(prices.pool.server_type))}
        steps |= {fabric.max_accelerators // size + 1 for fabric in fabrics[:-1]}
        if self.charges_horizon:
            steps |= _rises(prices, most)
        if has_discounts(prices.place.setting, prices.heat):
            steps |= _bends(prices, most)
        starts = sorted(step for step in steps if step <= most)
        ends = [*(start - 1 for start in starts[1:]), most]
        found = []
        for first, last in zip(starts, ends, strict=True):
            usd = [self._without_racks(prices, count) for count in (first, last)]
            capital = [self._capital_without_racks(prices, count) for count in (first, last)]
            each = [(pair[1] - pair[0]) / (last - first) if last > first else 0.0 for pair in (usd, capital)]
            found.append(Segment(first, last, usd[0] - each[0] * first, each[0], capital[0] - each[1] * first, each[1]))
        return tuple(found)

    def _without_racks(self, prices: PoolPrices, total: int) -> float:
        count = np.array([total])
        terms = [t for t in prices.terms if t.quantity[0] != "Racks" and t.component not in RUNNING]
        yearly = sum(t.usd_per_year * prices.quantity(t.quantity, count, count)[0] for t in terms)
        return float(yearly) / prices.horizon_share

    def _capital_without_racks(self, prices: PoolPrices, total: int) -> float:
        count = np.array([total])
        terms = [term for term in prices.terms if term.quantity[0] != "Racks"]
        return float(sum(t.capital_usd * prices.quantity(t.quantity, count, count)[0] for t in terms))

    def paid(self, model: Any) -> list[tuple[float, Any]]:
        """Everything that is paid: (USD, variable)."""
        found = [(self.run_usd(run), model.Run[run]) for run in self.runs]
        if self.charges_horizon:
            pieces = self.pieces
            found += [(one.usd_each, model.InSegment[key]) for key, one in pieces.items()]
            found += [(one.usd_fixed, model.Segment[key]) for key, one in pieces.items()]
            found += [(self.rack_usd(q)[0], model.Racks[q]) for q in dict.fromkeys(q for q, _ in pieces)]
        return found

    @cached_property
    def pieces(self) -> dict[tuple[str, int], Segment]:
        """Segments of the price of every bought fleet."""
        return {
            (q, number): segment
            for q, prices in self.pools.items()
            if prices.pool.is_bought
            for number, segment in enumerate(self.segments(q))
        }

    def rack_usd(self, q: str) -> tuple[float, float]:
        """(USD over the horizon, capital) of one rack of a pool."""
        terms = [one for one in self.pools[q].terms if one.quantity[0] == "Racks"]
        yearly = sum(one.usd_per_year for one in terms) / self.pools[q].horizon_share
        return yearly, sum(one.capital_usd for one in terms)


def _rises(prices: PoolPrices, most: int) -> set[int]:
    """Counts of servers at which something that comes in whole steps rises: posts, servers that manage others."""
    found: set[int] = set()
    counts = np.arange(1, most + 1)
    for key in {term.quantity for term in prices.terms if term.quantity[0] in ("Posts", "ManagementServers")}:
        amounts = prices.quantity(key, counts, counts)
        found |= {int(count) for count in counts[1:][np.diff(amounts) > 0.0]}
    return found


def _bends(prices: PoolPrices, most: int) -> set[int]:
    """Counts of servers at which a straight piece of what network and plants cost begins, discounts on them counted."""
    counts = np.arange(1, most + 1)
    paid = [term for term in prices.terms if term.component in ("network", "cooling") and term.capital_usd]
    parts = [term.capital_usd * prices.quantity(term.quantity, counts, counts) for term in paid]
    return bends(np.sum(parts, axis=0)) if parts and most > 2 else set(range(1, most + 1))


def build_program(data: TrainingProgram) -> ConcreteModel:
    """The mixed-integer program; its objective is USD per hour over the horizon, as the bill's."""
    model = ConcreteModel(name="training")
    model.Run = Var(list(data.runs), domain=Binary, doc="a job does a choice from a period on")
    by_job: dict[int, list[Run]] = {j: [] for j in range(len(data.jobs))}
    for run in data.runs:
        by_job[run[0]].append(run)
    model.Job_Runs = Constraint(
        list(by_job), rule=lambda m, j: sum(m.Run[run] for run in by_job[j]) == 1.0, doc="each job runs once"
    )
    if data.is_shared:
        _add_fleet(model, data)
        _add_fleet_price(model, data)
    for family in TRAINING_FAMILIES:
        family.add(model, data)
    share = next(iter(data.pools.values())).horizon_share / HOURS_PER_YEAR
    model.TotalCost = Objective(
        expr=linear((usd * share, variable) for usd, variable in data.paid(model)), sense=minimize, doc="USD per hour"
    )
    return model


def _add_fleet(model: Any, data: TrainingProgram) -> None:
    """Fleets that hold every run under way, and their limits."""
    model.Fleet = Var(
        list(data.pools),
        domain=NonNegativeIntegers,
        bounds=lambda _m, q: (0, data.most[q]),
        doc="servers of a pool, spares included",
    )
    held: dict[tuple[str, int], list[tuple[float, Run]]] = {}
    for run, (_, periods) in data.runs.items():
        for part in data.choices[run[0]][run[1]].parts:
            for period in range(run[2], run[2] + periods):
                held.setdefault((part.prices.id, period), []).append((float(part.total), run))

    def holds(m: Any, q: str, period: int) -> Any:
        return linear((count, m.Run[run]) for count, run in held[q, period]) <= m.Fleet[q]

    model.Fleet_Holds = Constraint(list(held), rule=holds, doc="the fleet holds the runs under way")
    _add_sites(model, data)
    instance = data.instance
    members: dict[str, list[str]] = {}
    for q, prices in data.pools.items():
        members.setdefault(prices.pool.server_type.accelerator.id, []).append(q)

    def supply(m: Any, a: str) -> Any:
        counts = ((float(data.pools[q].pool.server_type.accelerators), m.Fleet[q]) for q in members[a])
        return linear(counts) <= instance.choices.supply[a]

    limited = [a for a in members if a in instance.choices.supply]
    model.Supply_Limit = Constraint(limited, rule=supply, doc="accelerators of a type that can be had")
    most = instance.choices.max_accelerator_types
    if most is not None:
        model.TypeUsed = Var(list(members), domain=Binary, doc="an accelerator type is used")
        model.Type_Used = Constraint(
            [(a, q) for a, own in members.items() for q in own],
            rule=lambda m, a, q: m.Fleet[q] - data.most[q] * m.TypeUsed[a] <= 0.0,
            doc="servers use their type",
        )
        model.Type_Limit = Constraint(expr=sum(model.TypeUsed[a] for a in members) <= most, doc="accelerator types")


def _add_sites(model: Any, data: TrainingProgram) -> None:
    """Power and racks of each site, over all servers that stand there."""
    bought = [q for q, prices in data.pools.items() if prices.pool.is_bought]
    places = {data.pools[q].place.name: data.pools[q].place for q in bought}
    here = {name: [q for q in bought if data.pools[q].place.name == name] for name in places}
    model.Racks = Var(bought, domain=NonNegativeIntegers, doc="racks of a pool")
    model.Rack_Fill = Constraint(
        bought,
        rule=lambda m, q: m.Fleet[q] - data.pools[q].pool.per_rack * m.Racks[q] <= 0.0,
        doc="servers fill racks",
    )

    def power(m: Any, name: str) -> Any:
        limit = places[name].site.power_kw
        assert limit is not None
        return linear((float(data.pools[q].power_kw(1)) / limit, m.Fleet[q]) for q in here[name]) <= 1.0

    def racks(m: Any, name: str) -> Any:
        return sum(m.Racks[q] for q in here[name]) <= places[name].site.racks

    capped = [name for name, place in places.items() if place.site.power_kw is not None]
    model.Power_Limit = Constraint(capped, rule=power, doc="power at the meter fits the site")
    capped = [name for name, place in places.items() if place.site.racks is not None]
    model.Rack_Limit = Constraint(capped, rule=racks, doc="racks fit the site")


def _add_fleet_price(model: Any, data: TrainingProgram) -> None:
    """Segments of the price of fleets, where fleets are paid or capital is limited; the row of the capital budget."""
    limit = data.instance.economics.budget_capex_usd
    if not data.charges_horizon and limit is None:
        return
    pieces = data.pieces
    model.InSegment = Var(list(pieces), domain=NonNegativeReals, doc="servers of a fleet in a segment of its price")
    model.Segment = Var(list(pieces), domain=Binary, doc="a fleet's count lies in a segment")
    model.Segment_First = Constraint(
        list(pieces), rule=lambda m, q, n: m.InSegment[q, n] >= pieces[q, n].first * m.Segment[q, n], doc="from"
    )
    model.Segment_Last = Constraint(
        list(pieces), rule=lambda m, q, n: m.InSegment[q, n] <= pieces[q, n].last * m.Segment[q, n], doc="to"
    )
    own = {q: [key for key in pieces if key[0] == q] for q, _ in pieces}
    model.Segment_Fleet = Constraint(
        list(own), rule=lambda m, q: sum(m.InSegment[key] for key in own[q]) == m.Fleet[q], doc="a fleet's segments"
    )
    model.Segment_One = Constraint(
        list(own), rule=lambda m, q: sum(m.Segment[key] for key in own[q]) <= 1.0, doc="one segment"
    )
    if limit is not None:
        spent = [
            *((one.capital_each / limit, model.InSegment[key]) for key, one in pieces.items()),
            *((one.capital_fixed / limit, model.Segment[key]) for key, one in pieces.items()),
            *((data.rack_usd(q)[1] / limit, model.Racks[q]) for q in own),
        ]
        model.Capital_Budget = Constraint(expr=linear(spent) <= 1.0, doc="capital at the start")
