"""The program of training: each job runs once, on one of its choices, from one day of the calendar, at least cost.

    Run[j,c,t] binary       job j does choice c from period t on
    Job_Runs[j]             sum_ct Run[j,c,t] = 1
    several jobs only:
    Fleet[q] integer        servers of a pool, spares included
    Held[q,t] >= 0          servers that runs hold in period t: Held_Balance from one change to the next
    Fleet_Holds[q,t]        Held[q,t] <= Fleet[q]
    Whole[q,k] integer      racks, posts and other things of a fleet that come whole
    HallUsed[s,h] binary    Fleet[q] <= bound_q HallUsed[s,h],  sum_h HallUsed[s,h] <= 1     halls of a site
    Power, racks, supply, types: rows over Fleet; Capital_Budget and Run_Budget over what is paid

One job alone holds exactly its own servers, so its limits were checked choice by choice (``choices``). Bought servers
of several jobs that are charged for the horizon are paid as a fleet: its price by segments between the steps of
fabric tiers and discounts, one binary a segment.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
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
from optimizer.instance.model import Instance
from optimizer.program import linear
from optimizer.training.calendar import first_period, last_period, periods_held
from optimizer.training.choices import Choice
from optimizer.training.fleet_price import Segment, Whole, horizon_usd, segments_of, wholes_of
from optimizer.training.jobs import Job
from optimizer.training.prices import PoolPrices
from optimizer.units import HOURS_PER_YEAR

#: Key of a run: job, choice, period.
Run = tuple[int, int, int]


@dataclass(frozen=True)
class TrainingProgram:
    """Everything that the program needs. ``choices`` by job; ``period_days`` is the step of the calendar.

    ``only`` these runs may be made; None: all.
    """

    instance: Instance
    jobs: tuple[Job, ...]
    choices: tuple[tuple[Choice, ...], ...]
    period_days: float
    only: frozenset[Run] | None = None

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
                first = first_period(job.start_day, self.period_days)
                held = int(periods_held(np.array(choice.days), self.period_days))
                last = int(last_period(np.array(choice.days), job.deadline_day, self.period_days))
                for period in range(first, last + 1):
                    found[j, c, period] = (period * self.period_days, held)
        return found if self.only is None else {run: found[run] for run in found if run in self.only}

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
        key = (prices.id, total)
        if key not in self._fleet_usd:
            self._fleet_usd[key] = float(horizon_usd(prices, np.array([total]))[0])
        return self._fleet_usd[key]

    @cached_property
    def _fleet_usd(self) -> dict[tuple[str, int], float]:
        """What ``fleet_usd`` gave: many runs hold fleets of one size."""
        return {}

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

    def paid(self, model: Any) -> list[tuple[float, Any]]:
        """Everything that is paid: (USD, variable)."""
        found = [(self.run_usd(run), model.Run[run]) for run in self.runs]
        if self.charges_horizon:
            pieces = self.pieces
            found += [(one.usd_each, model.InSegment[key]) for key, one in pieces.items()]
            found += [(one.usd_fixed, model.Segment[key]) for key, one in pieces.items()]
            found += [(one.usd, model.Whole[key]) for key, one in self.wholes.items() if one.usd]
        return found

    @cached_property
    def pieces(self) -> dict[tuple[str, int], Segment]:
        """Segments of the price of every bought fleet."""
        return {
            (q, number): segment
            for q, prices in self.pools.items()
            if prices.pool.is_bought
            for number, segment in enumerate(segments_of(prices, self.most[q]))
        }

    @cached_property
    def wholes(self) -> dict[tuple[str, str], Whole]:
        """What comes whole of every bought fleet, by pool and family of quantity."""
        return {
            (q, one.key[0]): one
            for q, prices in self.pools.items()
            if prices.pool.is_bought
            for one in wholes_of(prices)
        }


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
    changes: dict[str, dict[int, list[tuple[float, Any]]]] = {q: {} for q in data.pools}
    for run, (_, periods) in data.runs.items():
        for part in data.choices[run[0]][run[1]].parts:
            of_pool, count = changes[part.prices.id], float(part.total)
            of_pool.setdefault(run[2], []).append((count, model.Run[run]))
            of_pool.setdefault(run[2] + periods, []).append((-count, model.Run[run]))
    before = {(q, now): last for q, of_pool in changes.items() for last, now in pairwise(sorted(of_pool))}
    held = [(q, period) for q, of_pool in changes.items() for period in sorted(of_pool)]
    model.Held = Var(held, domain=NonNegativeReals, doc="servers of a pool that runs hold from a period on")

    def balance(m: Any, q: str, period: int) -> Any:
        earlier = [(-1.0, m.Held[q, before[q, period]])] if (q, period) in before else []
        return linear([(1.0, m.Held[q, period]), *earlier, *((-n, run) for n, run in changes[q][period])]) == 0.0

    model.Held_Balance = Constraint(held, rule=balance, doc="runs that begin take servers, runs that end leave them")
    model.Fleet_Holds = Constraint(
        held, rule=lambda m, q, period: m.Held[q, period] - m.Fleet[q] <= 0.0, doc="the fleet holds the runs under way"
    )
    _add_sites(model, data)
    _add_halls(model, data)
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


def _filled(per_server: float, fleet: Any, whole: Any) -> Any:
    """Enough of what comes whole; in servers, so that no coefficient is small."""
    return fleet - whole / per_server <= 0.0 if per_server else whole >= 0.0


def _add_sites(model: Any, data: TrainingProgram) -> None:
    """Power and racks of each site, over all servers that stand there."""
    bought = [q for q, prices in data.pools.items() if prices.pool.is_bought]
    places = {data.pools[q].place.name: data.pools[q].place for q in bought}
    here = {name: [q for q in bought if data.pools[q].place.name == name] for name in places}
    model.Whole = Var(list(data.wholes), domain=NonNegativeIntegers, doc="racks, posts, managing servers of a pool")
    model.Whole_Fill = Constraint(
        list(data.wholes),
        rule=lambda m, q, family: _filled(data.wholes[q, family].per_server, m.Fleet[q], m.Whole[q, family]),
        doc="servers need their share of what comes whole",
    )

    def power(m: Any, name: str) -> Any:
        limit = places[name].site.power_kw
        assert limit is not None
        return linear((float(data.pools[q].power_kw(1)) / limit, m.Fleet[q]) for q in here[name]) <= 1.0

    def racks(m: Any, name: str) -> Any:
        return sum(m.Whole[q, "Racks"] for q in here[name]) <= places[name].site.racks

    capped = [name for name, place in places.items() if place.site.power_kw is not None]
    model.Power_Limit = Constraint(capped, rule=power, doc="power at the meter fits the site")
    capped = [name for name, place in places.items() if place.site.racks is not None]
    model.Rack_Limit = Constraint(capped, rule=racks, doc="racks fit the site")


def _add_halls(model: Any, data: TrainingProgram) -> None:
    """Bought servers of a site all stand in one hall, where either may be used."""
    members = [
        ((prices.place.name, prices.place.hall), q)
        for q, prices in data.pools.items()
        if prices.pool.is_bought and prices.place.is_choice
    ]
    halls = sorted({hall for hall, _ in members})
    model.HallUsed = Var(halls, domain=Binary, doc="servers of a site stand in a hall")
    model.Hall_Used = Constraint(
        [(*hall, q) for hall, q in members],
        rule=lambda m, site, hall, q: m.Fleet[q] - data.most[q] * m.HallUsed[site, hall] <= 0.0,
        doc="servers use their hall",
    )
    model.Hall_One = Constraint(
        sorted({site for site, _ in halls}),
        rule=lambda m, site: sum(m.HallUsed[one] for one in halls if one[0] == site) <= 1,
        doc="one hall at a site",
    )


def _add_fleet_price(model: Any, data: TrainingProgram) -> None:
    """Segments of the price of fleets, where fleets are paid or capital is limited; the row of the capital budget."""
    limit = data.instance.economics.budget_capex_usd
    if not data.pieces or (not data.charges_horizon and limit is None):
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
    posted = {key: one.least for key, one in data.wholes.items() if one.least}
    model.Whole_Least = Constraint(
        list(posted),
        rule=lambda m, q, family: m.Whole[q, family] >= posted[q, family] * sum(m.Segment[key] for key in own[q]),
        doc="posts that a fleet of any size needs",
    )
    if limit is not None:
        spent = [
            *((one.capital_each / limit, model.InSegment[key]) for key, one in pieces.items()),
            *((one.capital_fixed / limit, model.Segment[key]) for key, one in pieces.items()),
            *((one.capital_usd / limit, model.Whole[key]) for key, one in data.wholes.items() if one.capital_usd),
        ]
        model.Capital_Budget = Constraint(expr=linear(spent) <= 1.0, doc="capital at the start")
