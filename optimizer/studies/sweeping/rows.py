"""What a sweep tells of one case: the winner, its cost, what binds, or what forbids any plan."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from optimizer.costs.bill import SERVERS
from optimizer.costs.tokens import usd_per_million_tokens_of_year
from optimizer.extract import tokens_per_year
from optimizer.fleet import Fleet, at_peak, fleet_quantities
from optimizer.headroom import deployment_headroom, fleet_headroom
from optimizer.limits import limit
from optimizer.offer import Offer
from optimizer.plan import Bill, Headroom
from optimizer.program_data import ProgramData
from optimizer.studies.sweeping.solving import Counts, fleet_at

Status = Literal["optimal", "feasible", "infeasible", "unknown"]

#: Limits that bind in nearly every plan: told after the others.
_ALWAYS: Final = ("throughput_requests_per_s", "spare_servers")


@dataclass(frozen=True, slots=True)
class Row:
    """One case of a sweep.

    Attributes
    ----------
    case: number of the case, from 0, the last field moving fastest.
    values: the varied fields' values, in the order of the axes.
    status: optimal: proven and verified; feasible: verified, not proven within the gap; infeasible: proven that
        nothing fits; unknown: stopped before either.
    winner: what is bought and rented, in words; empty without a plan. It is the first in the order of
        ``optimizer.ties`` among plans of equal cost.
    schemes: how it serves. On the same servers at the same cost another layout may serve in others.
    usd_per_year, capital_usd, power_kw, accelerators, replicas, usd_per_million_output_tokens: of the plan.
    gap_fraction: how much cheaper any plan could be at most.
    binding: instance fields whose limits hold the plan back; the rarer ones first.
    forbidden_by: instance fields whose limits leave nothing, where infeasible: none of them can be left out;
        of runs those that alone keep some way out.
    proof: "solved", or "case N": taken over from that case's solution, with a proof that it is this case's too.
    """

    case: int
    values: tuple[Any, ...]
    status: Status
    winner: str = ""
    schemes: tuple[str, ...] = ()
    accelerators: int | None = None
    usd_per_year: float | None = None
    capital_usd: float | None = None
    power_kw: float | None = None
    replicas: int | None = None
    usd_per_million_output_tokens: float | None = None
    gap_fraction: float | None = None
    binding: tuple[str, ...] = ()
    forbidden_by: tuple[str, ...] = ()
    proof: str = "solved"


#: Columns of a table of rows after those of the varied fields.
COLUMNS: Final = (
    "status",
    "winner",
    "schemes",
    "accelerators",
    "usd_per_year",
    "capital_usd",
    "power_kw",
    "replicas",
    "usd_per_million_output_tokens",
    "gap_fraction",
    "binding",
    "forbidden_by",
    "proof",
)


class Teller:
    """Rows of the cases that one fleet answers; what does not change between them is worked out once."""

    def __init__(self) -> None:
        self._deployments: tuple[Any, tuple[Headroom, ...]] | None = None
        self._winner: tuple[Any, str] | None = None

    def row(
        self,
        case: int,
        values: tuple[Any, ...],
        data: ProgramData,
        counts: Counts,
        offer: Offer,
        *,
        status: Status,
        gap_fraction: float,
        proof: str,
    ) -> Row:
        """The row of a case whose data are ``data`` and whose fleet is ``counts``."""
        fleet = fleet_at(data, counts)
        quantities = fleet_quantities(data, fleet)
        yearly, capital = _totals(data, fleet, quantities)
        bill = _bill(yearly, capital)
        hall = {q: count for q, count in fleet.servers.items() if data.pools[q].in_hall}
        busy = {q: quantities["BusyKwh", q] for q in hall}
        counted = (at_peak(data, fleet), fleet.servers, fleet.spare)
        told = [*self._of_deployments(offer, data, fleet), *fleet_headroom(data, *counted, busy, bill)]
        return Row(
            case=case,
            values=values,
            status=status,
            winner=self._in_words(data, fleet),
            schemes=schemes_of(data, fleet),
            accelerators=sum(data.pools[q].server_type.accelerators * count for q, count in fleet.servers.items()),
            usd_per_year=yearly,
            capital_usd=capital,
            power_kw=math.fsum(data.pools[q].server_kw * data.pools[q].pue_design * count for q, count in hall.items()),
            replicas=sum(fleet.replicas.values()),
            usd_per_million_output_tokens=usd_per_million_tokens_of_year(yearly, tokens_per_year(data, fleet)),
            gap_fraction=gap_fraction,
            binding=binding_fields(told),
            proof=proof,
        )

    def _of_deployments(self, offer: Offer, data: ProgramData, fleet: Fleet) -> tuple[Headroom, ...]:
        key = (id(offer.screened.rows), id(offer.screened.bounds), tuple(fleet.replicas))
        if self._deployments is None or self._deployments[0] != key:
            self._deployments = (key, tuple(deployment_headroom(offer, data, fleet.replicas)))
        return self._deployments[1]

    def _in_words(self, data: ProgramData, fleet: Fleet) -> str:
        key = tuple(fleet.servers.items())
        if self._winner is None or self._winner[0] != key:
            self._winner = (key, winner(data, fleet))
        return self._winner[1]


def winner(data: ProgramData, fleet: Fleet) -> str:
    """What a fleet buys and rents, in the words of ``studies.best.summary``."""
    terms = {"on_demand": "on demand", "reserved_1yr": "1-year term", "reserved_3yr": "3-year term", "spot": "on spot"}
    parts = []
    for q, count in fleet.servers.items():
        pool = data.pools[q]
        how = (
            f"{'owned' if pool.owned is not None else 'bought'}, {pool.cooling.id}"
            if pool.cooling is not None
            else f"rented {terms.get(pool.sourcing, pool.sourcing)}"
        )
        parts.append(f"{count} x {pool.server_type.id} ({how})")
    return " + ".join(parts)


def schemes_of(data: ProgramData, fleet: Fleet) -> tuple[str, ...]:
    """Schemes of a fleet, and recovery steps where there are any."""
    schemes = set()
    for d, _ in fleet.replicas:
        scheme, _, recovery = data.deployments[d].scheme.split("+")
        schemes.add(scheme if recovery == "none" else f"{scheme}+{recovery}")
    return tuple(sorted(schemes))


def binding_fields(told: Sequence[Headroom]) -> tuple[str, ...]:
    """Instance fields whose limits hold a plan back, each once; those that always do come last."""
    names = [one.limit for one in told if one.binding]
    ordered = [*(name for name in names if name not in _ALWAYS), *(name for name in names if name in _ALWAYS)]
    return tuple(dict.fromkeys(limit(name).field for name in ordered))


def _totals(data: ProgramData, fleet: Fleet, quantities: dict[tuple[str, ...], float]) -> tuple[float, float]:
    """(USD per year, USD at the start), summed over the same lines as the bill's, so equal to it to the last bit."""
    share: dict[str, float] = {}
    for type_id, members in data.server_types.items():
        bought = [q for q in members if data.pools[q].is_bought]
        total = sum(fleet.servers.get(q, 0) for q in bought)
        if total:
            share[type_id] = sum(fleet.spare.get(q, 0) for q in bought) / total
    share.update({q: fleet.spare.get(q, 0) / count for q, count in fleet.servers.items()})
    yearly, capital = [], []
    for term in data.terms:
        quantity = quantities.get(term.quantity, 0.0)
        if quantity == 0.0 or term.usd_per_year == 0.0:
            continue
        part = share.get(term.quantity[1], 0.0) if term.component == SERVERS else 0.0
        for amount in (quantity * (1.0 - part) if part < 1.0 else 0.0, quantity * part if part > 0.0 else 0.0):
            if amount:
                yearly.append(amount * term.usd_per_year)
                capital.append(amount * term.capital_usd)
    return math.fsum(yearly), math.fsum(capital)


def _bill(yearly: float, capital: float) -> Bill:
    """A bill of which only the totals are read."""
    return Bill.model_construct(usd_per_year=yearly, capital_usd=capital)
