"""Headroom: what each limit asks, what the plan reaches, what is left, and whether it holds the plan back."""

from collections.abc import Iterator, Mapping

import numpy as np

from optimizer.limits import limit
from optimizer.offer import Offer
from optimizer.plan import Bill, Headroom
from optimizer.program_data import Pair, ProgramData
from optimizer.screen import keeps, seen_of
from optimizer.spares import spares_needed
from optimizer.units import HOURS_PER_YEAR

#: Limits that choose among layouts and schemes: they hold a plan back when they alone keep candidates out.
_KEEP_OUT = frozenset(
    {
        "accuracy",
        "vram_gib_per_accelerator",
        "weights_gib_per_accelerator",
        "nvlink_gb_s",
        "nvlink_cap_gb_s",
        "kv_link_gb_s",
    }
)


def headroom_rows(
    offer: Offer,
    data: ProgramData,
    replicas: Mapping[Pair, int],
    servers: Mapping[str, int],
    spare: Mapping[str, int],
    busy_kwh: Mapping[str, float],
    bill: Bill,
) -> tuple[Headroom, ...]:
    """One row for each limit that the instance sets, at the place where least is left.

    ``busy_kwh`` is the energy above idle of each bought pool in a year, before PUE.
    """
    rows = [
        *deployment_headroom(offer, data, replicas),
        *fleet_headroom(data, replicas, servers, spare, busy_kwh, bill),
    ]
    return tuple(rows)


def row_of(name: str, needed: float, reached: float, *, binding: bool, where: str = "") -> Headroom:
    """A row; what is left as a share of what is needed."""
    rule = limit(name)
    left = needed - reached if rule.direction == "<=" else reached - needed
    return Headroom(
        limit=name,
        field=rule.field,
        label=rule.label,
        unit=rule.unit,
        direction=rule.direction,
        needed=needed,
        reached=reached,
        spare_fraction=left / needed if needed else left,
        binding=binding,
        where=where,
    )


def deployment_headroom(offer: Offer, data: ProgramData, replicas: Mapping[Pair, int]) -> Iterator[Headroom]:
    """Limits of one deployment, each at the deployment that has least to spare.

    A limit binds when one more request in flight would break it, or when it alone keeps other candidates out
    (accuracy).
    """
    screened = offer.screened
    positions = np.array(sorted({data.deployments[d].row for d, _ in replicas}), dtype=np.int64)
    names = {data.deployments[d].row: d for d, _ in replicas}
    rows = screened.rows[positions]
    bounds = screened.bounds.take(rows)
    quantiles = [option.accuracy.quantile for option in screened.candidates.schemes]
    accuracy = np.array([-np.inf if value is None else value for value in quantiles])[
        screened.candidates.scheme_index[rows]
    ]
    one_more = keeps(seen_of(screened.candidates.at(rows, screened.concurrency[rows] + 1), accuracy), bounds)
    seen = screened.prediction
    figures = {
        "vram_gib": (bounds.vram_gib, seen.total_gib[positions]),
        "vram_gib_per_accelerator": (np.full(rows.size, bounds.vram_gib_per_accelerator), seen.total_gib[positions]),
        "weights_gib_per_accelerator": (
            np.full(rows.size, bounds.weights_gib_per_accelerator),
            seen.weights_gib[positions],
        ),
        "tpot_ms": (bounds.tpot_ms, seen.tpot_ms[positions]),
        "ttft_ms": (bounds.ttft_ms, seen.ttft_ms[positions]),
        "latency_ms": (bounds.latency_ms, seen.latency_ms[positions]),
        "accuracy": (np.full(rows.size, bounds.accuracy), accuracy),
        "nvlink_gb_s": (bounds.nvlink_fraction * seen.nvlink_limit_gb_s[positions], seen.nvlink_gb_s[positions]),
        "nvlink_cap_gb_s": (np.full(rows.size, bounds.nvlink_cap_gb_s), seen.nvlink_gb_s[positions]),
    }
    if "disaggregated" in data.setting.instance.choices.serving_roles:
        link = bounds.kv_link_fraction * seen.kv_link_limit_gb_s[positions]
        figures["kv_link_gb_s"] = (link, seen.kv_link_gb_s[positions])
    ranks = screened.candidates.attention_data_parallel[rows]
    lengths = np.array([one.request.input_tokens + one.request.output_tokens for one in data.setting.classes])
    each = seen.kv_tokens_capacity[positions] / lengths[screened.candidates.class_index[rows]] / ranks
    # What the cache holds, whatever the engine's sequence slots and the planner allow. A last bit is no request.
    held = ranks * np.floor(each + 1e-9)
    alone = screened.killed_alone()
    for name, (needed, reached) in figures.items():
        known = np.isfinite(needed)
        if not known.any():
            continue
        sign = 1.0 if limit(name).direction == "<=" else -1.0
        left = np.full(needed.size, np.inf)
        np.divide(sign * (needed - reached), needed, out=left, where=known & (needed > 0.0))
        place = int(np.argmin(left))
        keeps_out = name in _KEEP_OUT and alone.get(name, 0) > 0
        binding = keeps_out or (name != "accuracy" and not bool(one_more[name][place]))
        if name == "vram_gib":
            # The engine's cache ends before the memory it may use: pages are whole.
            binding |= bool(screened.concurrency[rows[place]] >= held[place])
        yield row_of(
            name, float(needed[place]), float(reached[place]), binding=binding, where=names[int(positions[place])]
        )


def fleet_headroom(
    data: ProgramData,
    replicas: Mapping[Pair, int],
    servers: Mapping[str, int],
    spare: Mapping[str, int],
    busy_kwh: Mapping[str, float],
    bill: Bill,
) -> Iterator[Headroom]:
    """Limits of the fleet. A cap binds when one more server of a pool in use would break it."""
    setting = data.setting
    targets, site, choices, economics = (
        setting.instance.targets,
        setting.instance.site,
        setting.instance.choices,
        setting.instance.economics,
    )
    for b, one_class in enumerate(setting.classes):
        mine = [(pair, count) for pair, count in replicas.items() if data.deployments[pair[0]].class_index == b]
        reached = sum(data.pair_capacity(*pair) * count for pair, count in mine)
        smallest = min(data.pair_capacity(*pair) for pair, count in mine if count)
        binding = reached - smallest < data.demand[b]
        yield row_of("throughput_requests_per_s", data.demand[b], reached, binding=binding, where=one_class.name)
    bought = {q: count for q, count in servers.items() if data.pools[q].in_hall}
    if site.power_kw is not None:
        kw = {q: data.pools[q].server_kw * data.pools[q].pue_design for q in bought}
        reached = sum(kw[q] * count for q, count in bought.items())
        yield row_of(
            "power_kw", site.power_kw, reached, binding=reached + min(kw.values(), default=0.0) > site.power_kw
        )
    for name, most, per_kwh in data.environment_caps:
        idle = {q: per_kwh[q] * data.idle_kw[q] * HOURS_PER_YEAR for q in bought}
        reached = sum(idle[q] * count + per_kwh[q] * busy_kwh.get(q, 0.0) for q, count in bought.items())
        yield row_of(name, most, reached, binding=reached + min(idle.values(), default=0.0) > most)
    if site.racks is not None:
        racks = sum(-(-count // data.pools[q].per_rack) for q, count in bought.items())
        yield row_of("racks", float(site.racks), float(racks), binding=racks >= site.racks)
    if site.floor_m2 is not None:
        racks = sum(-(-count // data.pools[q].per_rack) for q, count in bought.items())
        floor = racks * site.rack_floor_m2
        yield row_of("floor_m2", site.floor_m2, floor, binding=floor + site.rack_floor_m2 > site.floor_m2)
    if bought:
        from optimizer.setting import rack_limit_kw

        tightest = None
        for q, count in bought.items():
            pool = data.pools[q]
            assert pool.cooling is not None
            limit_kw = rack_limit_kw(setting.instance, pool.server_type.accelerator, pool.cooling)
            held = min(pool.per_rack, count) * pool.server_kw
            if tightest is None or (limit_kw - held) / limit_kw < (tightest[0] - tightest[1]) / tightest[0]:
                tightest = (limit_kw, held, q, held + pool.server_kw > limit_kw)
        assert tightest is not None
        yield row_of("rack_kw", tightest[0], tightest[1], binding=tightest[3], where=tightest[2])
    if economics.budget_capex_usd is not None:
        limit_usd = economics.budget_capex_usd
        yield row_of(
            "budget_capex_usd", limit_usd, bill.capital_usd, binding=_near(bill.capital_usd, limit_usd, servers)
        )
    if economics.budget_usd_per_year is not None:
        limit_usd = economics.budget_usd_per_year
        yield row_of(
            "budget_usd_per_year", limit_usd, bill.usd_per_year, binding=_near(bill.usd_per_year, limit_usd, servers)
        )
    used: dict[str, int] = {}
    for q, count in servers.items():
        row = data.pools[q].server_type
        used[row.accelerator.id] = used.get(row.accelerator.id, 0) + count * row.accelerators
    for key, most in sorted(choices.supply.items()):
        if key in used:
            smallest_server = min(
                data.pools[q].server_type.accelerators
                for q in servers
                if data.pools[q].server_type.accelerator.id == key
            )
            yield row_of("supply", float(most), float(used[key]), binding=used[key] + smallest_server > most, where=key)
    yield from _of_sources(data, servers)
    if choices.max_accelerator_types is not None:
        most = choices.max_accelerator_types
        yield row_of("accelerator_types", float(most), float(len(used)), binding=len(used) >= most)
    for type_id, members in data.server_types.items():
        own = [q for q in members if q in bought]
        if own and data.has_spares():
            stand = sum(spare.get(q, 0) for q in own)
            in_service = sum(bought[q] for q in own) - stand
            needed = spares_needed(targets, data.pools[own[0]].server_type.accelerators, in_service)
            if needed:
                yield row_of("spare_servers", float(needed), float(stand), binding=stand <= needed, where=type_id)


def _of_sources(data: ProgramData, servers: Mapping[str, int]) -> Iterator[Headroom]:
    """What providers rent out and what is owned."""
    rented: dict[tuple[str, str], int] = {}
    for q, count in servers.items():
        pool = data.pools[q]
        size = pool.server_type.accelerators
        key = (pool.provider.casefold(), pool.server_type.accelerator.id)
        if key in data.setting.provider_limits:
            rented[key] = rented.get(key, 0) + count * size
        if pool.owned is not None:
            most = pool.owned.servers
            yield row_of("inventory", float(most), float(count), binding=count >= most, where=q)
    for (provider, accelerator), count in rented.items():
        most = data.setting.provider_limits[provider, accelerator]
        size = min(
            data.pools[q].server_type.accelerators
            for q in servers
            if (data.pools[q].provider.casefold(), data.pools[q].server_type.accelerator.id) == (provider, accelerator)
        )
        where = f"{accelerator} from {provider}"
        yield row_of("provider_supply", float(most), float(count), binding=count + size > most, where=where)


def _near(reached: float, most: float, servers: Mapping[str, int]) -> bool:
    """Whether one more server, at the mean cost of those in use, would break a budget."""
    count = sum(servers.values())
    return reached + (reached / count if count else 0.0) > most
