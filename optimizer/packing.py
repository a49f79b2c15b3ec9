"""Which replicas stand on which servers."""

from optimizer.fleet import Fleet
from optimizer.plan import (
    PackedServers,
)
from optimizer.program_data import ProgramData


def pack(data: ProgramData, fleet: Fleet) -> tuple[PackedServers, ...]:
    """Which replicas stand on which servers, like servers together."""
    packed = []
    for q in fleet.servers:
        accelerators = data.pools[q].server_type.accelerators
        members = sorted(
            ((data.deployments[d].width, d, count) for (d, p), count in fleet.replicas.items() if p == q),
            key=lambda item: (-item[0], item[1]),
        )
        for width, d, count in members:
            if width > accelerators:
                spans = round(data.deployments[d].servers_per_replica)
                packed.append(PackedServers(pool=q, servers=spans * count, replicas={d: count}))
        narrow = [(width, d) for width, d, count in members if width <= accelerators for _ in range(count)]
        like: dict[tuple[tuple[str, int], ...], int] = {}
        for held in _filled(narrow, accelerators, _shapes(data, fleet, q)):
            key = tuple(sorted(held.items()))
            like[key] = like.get(key, 0) + 1
        for key, times in like.items():
            packed.append(PackedServers(pool=q, servers=times, replicas={d: count * times for d, count in key}))
    return tuple(packed)


def _shapes(data: ProgramData, fleet: Fleet, q: str) -> list[dict[int, int]] | None:
    """What each server of a pool holds by width, from the program's fillings; None where widths nest."""
    if q not in fleet.fillings:
        return None
    fillings = data.patterns_by_pool[q]
    return [dict(fillings[number]) for number, count in fleet.fillings[q].items() for _ in range(count)]


def _filled(
    narrow: list[tuple[int, str]], accelerators: int, shapes: list[dict[int, int]] | None
) -> list[dict[str, int]]:
    """Replicas by server, largest first: into the shapes given, or the first with room (exact where widths nest)."""
    servers: list[dict[str, int]] = []
    room: list[int] = []
    if shapes is not None:
        servers = [{} for _ in shapes]
        for width, d in narrow:
            place = next(index for index, shape in enumerate(shapes) if shape.get(width, 0) > 0)
            shapes[place][width] -= 1
            servers[place][d] = servers[place].get(d, 0) + 1
        return [held for held in servers if held]
    for width, d in narrow:
        place = next((index for index, left in enumerate(room) if left >= width), len(room))
        if place == len(room):
            servers.append({})
            room.append(accelerators)
        servers[place][d] = servers[place].get(d, 0) + 1
        room[place] -= width
    return servers
