"""The servers of a proposal for training: pools with their prices, whole servers, spares."""

from dataclasses import dataclass, replace

from optimizer.catalog import Catalog
from optimizer.errors import InputError, Problem
from optimizer.instance.model import Instance
from optimizer.proposals.training_chosen import Stand, Wanted
from optimizer.setting import Setting, bought_pool, can_cool
from optimizer.training.choices import Part
from optimizer.training.places import ONE_SITE, RENTED, Place, places_of
from optimizer.training.prices import PoolPrices, pool_prices


@dataclass(frozen=True, slots=True)
class Found:
    """Servers of each job, and the prices of all pools of the proposal."""

    prices: dict[tuple[str, str], PoolPrices]
    parts: dict[str, tuple[Part, ...]]


def servers_of(own: Instance, catalog: Catalog, wanted: tuple[Wanted, ...], file: str) -> Found:
    """Pools, counts and spares of every job, of the narrowed instance. Raises InputError with every contradiction."""
    problems: list[Problem] = []
    for one in wanted:
        problems += _uncooled(catalog, one, file, retrofit=own.choices.liquid_retrofit)
    if problems:
        raise InputError(tuple(problems))
    places = tuple(_with_refused(place) for place in places_of(own, catalog))
    prices = pool_prices(own, places)
    parts: dict[str, tuple[Part, ...]] = {}
    for one in wanted:
        mine = []
        for number, stand in enumerate(one.stands):
            where = f"parts[{number}]" if len(one.stands) > 1 else ""
            part = _part(own, prices, one, stand, where, file, problems)
            mine += [part] if part is not None else []
        parts[one.job] = tuple(mine)
    if problems:
        raise InputError(tuple(problems))
    return Found(prices, parts)


def _at(one: Wanted, where: str, key: str) -> str:
    return ".".join(part for part in (one.place, where, key) if part)


def _uncooled(catalog: Catalog, one: Wanted, file: str, *, retrofit: bool) -> list[Problem]:
    """Servers that the cooling of a proposal cannot cool."""
    row = catalog.accelerators[one.accelerator]
    found = []
    for number, stand in enumerate(one.stands):
        if stand.cooling is None or can_cool(row, catalog.cooling[stand.cooling], retrofit=retrofit):
            continue
        other = {"required": "liquid", "no": "air"}[row.liquid_cooling]
        where = f"parts[{number}]" if len(one.stands) > 1 else ""
        allowed = f"must be {other} cooling: {row.id} takes no other"
        found.append(
            Problem("E-PROPOSAL-503", file, field=_at(one, where, "cooling"), found=stand.cooling, allowed=allowed)
        )
    return found


def _with_refused(place: Place) -> Place:
    """The place with pools whose racks take no server, one in each all the same: the limit of a rack is then broken."""
    setting: Setting = place.setting
    if place.name == RENTED or "buy" not in setting.instance.choices.sourcing:
        return place
    known = {pool.id for pool in setting.pools}
    made = []
    for server_type in setting.server_types:
        row = server_type.accelerator
        if server_type.server_usd is None or server_type.accelerators != row.accelerators_per_server:
            continue
        for name in setting.instance.choices.cooling or ():
            option = setting.catalog.cooling[name]
            if f"{server_type.id}/buy/{name}" in known or not can_cool(
                row, option, retrofit=setting.instance.choices.liquid_retrofit
            ):
                continue
            pool = bought_pool(setting.instance, setting.catalog, server_type, setting.fabrics, option)
            made.append(replace(pool, per_rack=max(1, pool.per_rack)))
    return replace(place, setting=replace(setting, pools=(*setting.pools, *made))) if made else place


def _part(
    own: Instance,
    prices: dict[tuple[str, str], PoolPrices],
    one: Wanted,
    stand: Stand,
    where: str,
    file: str,
    problems: list[Problem],
) -> Part | None:
    """Servers of one stand; a contradiction is added to the problems."""

    def fault(code: str, key: str, found: str, allowed: str, fix: str = "") -> None:
        problems.append(Problem(code, file, field=_at(one, where, key), found=found, allowed=allowed, fix=fix))

    names = [site.name for site in own.sites] or [ONE_SITE]
    name = RENTED if stand.sourcing != "buy" else stand.site if stand.site is not None else names[0]
    if name != RENTED and (name not in names or (stand.site is None and len(names) > 1)):
        fault("E-PROPOSAL-505", "site", f'"{stand.site or ""}"', f"must be one of {', '.join(names)}")
        return None
    able = [
        pool
        for (place, _), pool in prices.items()
        if place == name
        and pool.pool.server_type.accelerator.id == one.accelerator
        and pool.pool.sourcing == stand.sourcing
        and (pool.pool.cooling.id if pool.pool.cooling is not None else None) == stand.cooling
    ]
    if not able:
        how = "bought" if stand.sourcing == "buy" else f"rented {stand.sourcing.replace('_', ' ')} in whole servers"
        fix = f"State a price in economics.prices.{one.accelerator} of the instance"
        fault("E-PROPOSAL-503", "sourcing", f"{one.accelerator} {how}", "must have a price", fix)
        return None
    # Offers of a term stand cheapest first; a plan names its own.
    pool = next((each for each in able if each.id == stand.pool), able[0])
    size = pool.pool.server_type.accelerators
    servers = stand.servers
    if servers is None:
        assert stand.count is not None
        if stand.count % size:
            near = sorted({max(1, stand.count // size) * size, -(-stand.count // size) * size})
            allowed = f"must be a multiple of {size}, the accelerators of one server"
            fault("E-PROPOSAL-501", "count", f"{stand.count:,}", allowed, f"Write {' or '.join(map(str, near))}")
            return None
        servers = stand.count // size
    spare = int(pool.spares(servers)) if stand.spare is None else stand.spare
    return Part(pool, servers, spare)
