"""Scenarios: instances with drawn values, what each could buy alone, and one program's data for all of them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optimizer.costs.energy import pool_idle_kw
from optimizer.errors import InputError, Problem
from optimizer.instance.field_paths import FieldPath, find_field, with_values
from optimizer.instance.model import Instance
from optimizer.instance.problems import field_name
from optimizer.instance.uncertain_paths import bad_paths
from optimizer.instance.uncertainty import UncertainField, Uncertainty
from optimizer.offer import Offer, program_data
from optimizer.pools import dominating_pools, dominating_schemes
from optimizer.program_data import ProgramData
from optimizer.studies.current_values import current_value
from optimizer.studies.robust.distributions import FloatArray, draw

#: Servers that a planner gets when the scenario is known; everything else is decided before.
RECOURSE = frozenset({"on_demand", "spot"})
#: Most scenarios named in messages.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Uncertain:
    """An uncertain field of an instance: its place, its distribution, what its figures are multiplied with."""

    field: FieldPath
    law: UncertainField
    scale: float


def uncertain_fields(instance: Instance, uncertainty: Uncertainty) -> tuple[Uncertain, ...]:
    """The uncertain fields of an instance; InputError with every one that is no number or has no value to multiply."""
    problems = [
        Problem(one.code, instance.name, field=field_name(one.path), found=one.found, allowed=one.allowed, fix=one.fix)
        for one in bad_paths(instance)
    ]
    if problems:
        raise InputError(tuple(problems))
    found = []
    for place, law in enumerate(uncertainty.fields):
        field = find_field(instance, law.field)
        now = current_value(instance, field)
        if law.is_multiple and now is None:
            where = f"uncertainty.fields[{place}].field"
            allowed = "must have a value now that can be multiplied"
            absent = f"{field.name}, which is absent"
            problems.append(
                Problem("E-UNCERTAINTY-406", instance.name, 0, 0, where, absent, allowed, "State the field")
            )
        else:
            found.append(Uncertain(field, law, float(now) if law.is_multiple else 1.0))
    if problems:
        raise InputError(tuple(problems))
    return tuple(found)


def drawn_values(uncertainty: Uncertainty, fields: Sequence[Uncertain], count: int, seed: int) -> FloatArray:
    """Values of each field (column) in each scenario (row), in the field's own unit, whole where it is a count."""
    values: FloatArray = draw(uncertainty, count, seed) * np.array([one.scale for one in fields])
    for column, one in enumerate(fields):
        if one.field.is_whole:
            values[:, column] = np.round(values[:, column])
    return values


def scenario_instances(instance: Instance, fields: Sequence[Uncertain], values: FloatArray) -> tuple[Instance, ...]:
    """The instance of each scenario.

    Raises
    ------
    InputError: some are no valid instances; the first of each field are named.
    """
    found: list[Instance] = []
    problems: dict[tuple[str, str], Problem] = {}
    counts: dict[tuple[str, str], int] = {}
    for number, row in enumerate(values):
        chosen = {
            one.field: int(value) if one.field.is_whole else float(value)
            for one, value in zip(fields, row, strict=True)
        }
        try:
            found.append(with_values(instance, chosen))
        except InputError as error:
            for one in error.problems:
                key = (one.field, one.code)
                counts[key] = counts.get(key, 0) + 1
                problems.setdefault(
                    key,
                    Problem(
                        "E-UNCERTAINTY-407",
                        instance.name,
                        field=one.field,
                        found=f"{one.found} in scenario {number}",
                        allowed=one.allowed,
                        fix="Narrow the distribution, or cut it off with low and high",
                    ),
                )
    if problems:
        raise InputError(tuple(problems.values())[: 4 * _NAMED])
    return tuple(found)


def is_recourse(data: ProgramData, pool: str) -> bool:
    """Whether servers of a pool are got when the scenario is known."""
    return data.pools[pool].sourcing in RECOURSE


def shared_data(offers: Sequence[Offer], pools_besides: Collection[str] = ()) -> tuple[ProgramData, ...]:
    """Data of each scenario's program, all with the same servers to choose from and bounds that hold for all together.

    Every scenario must have a deployment for each class. Bounds are the largest of any scenario: more servers than
    every scenario by itself could use would stand idle in all of them. A pool that one scenario runs nothing on stays
    in its data, since what was bought is paid there too; so do the pools of ``pools_besides``.
    """
    raw = []
    for offer in offers:
        data = program_data(offer, reduce=False)
        if data is None:
            raise ValueError("a scenario without a deployment for every class has no program")
        raw.append(data)
    live = {q for data in raw for q in data.pools} | set(pools_besides)
    servers = dict.fromkeys(pools_besides, 0)
    in_service: dict[str, int] = {}
    for data in raw:
        for q, count in data.max_servers.items():
            servers[q] = max(servers.get(q, 0), count)
        for key, count in data.max_in_service.items():
            in_service[key] = max(in_service.get(key, 0), count)
    result = []
    for offer, data in zip(offers, raw, strict=True):
        pools = {pool.id: pool for pool in offer.setting.pools if pool.id in live}
        for pool in pools.values():
            in_service.setdefault(pool.server_type.id, 0)
        idle = {q: pool_idle_kw(offer.setting, pool) for q, pool in pools.items() if pool.in_hall}
        wider = replace(
            data,
            pools=pools,
            max_servers={q: servers[q] for q in pools},
            max_in_service=in_service,
            idle_kw=idle,
        )
        result.append(wider.with_terms(offer.terms))
    return tuple(result)


def reduced_data(datas: Sequence[ProgramData]) -> tuple[ProgramData, ...]:
    """The same programs without pools and schemes that no best choice needs.

    One is left out where one and the same other dominates it in every scenario (the proofs of ``optimizer.pools`` move
    all servers or replicas at once, so they hold scenario by scenario); never servers on demand for ones decided
    beforehand, and only where every scenario knows the same pools and schemes.
    """
    found = list(datas)
    schemes = [{one.scheme for one in data.deployments.values()} for data in found]
    if all(one == schemes[0] for one in schemes):
        relations = [dominating_schemes(data) for data in found]
        better = {s: set.intersection(*(one[s] for one in relations)) for s in schemes[0]}
        removed = _removed(sorted(schemes[0]), better)
        found = [
            _narrowed(data, [pair for pair in data.pairs if data.deployments[pair[0]].scheme not in removed])
            for data in found
        ]
    names = [tuple(data.pools) for data in found]
    if all(set(one) == set(names[0]) for one in names):
        relations = [dominating_pools(data) for data in found]
        better = {
            a: {
                b
                for b in set.intersection(*(one[a] for one in relations))
                if is_recourse(found[0], b) or not is_recourse(found[0], a)
            }
            for a in names[0]
        }
        removed = _removed(names[0], better)
        found = [data.only_pools(q for q in data.pools if q not in removed) for data in found]
    return tuple(found)


def _removed(order: Sequence[str], better: dict[str, set[str]]) -> set[str]:
    """What is dominated by something that stays; of equal ones the first stays."""
    place = {key: number for number, key in enumerate(order)}
    removed: set[str] = set()
    for a in order:
        if any(b not in removed and not (a in better[b] and place[a] < place[b]) for b in better[a]):
            removed.add(a)
    return removed


def _narrowed(data: ProgramData, pairs: Sequence[tuple[str, str]]) -> ProgramData:
    """The same data with fewer pairs, and all its pools."""
    needed = {d for d, _ in pairs}
    deployments = {d: one for d, one in data.deployments.items() if d in needed}
    return replace(data, pairs=tuple(pairs), deployments=deployments).with_terms(data.terms)
