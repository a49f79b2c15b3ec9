"""Which replicas stand on which servers."""

from collections.abc import Mapping

from optimizer.fleet import Fleet
from optimizer.plan import (
    PackedServers,
)
from optimizer.program_data import ProgramData


def pack(data: ProgramData, fleet: Fleet) -> tuple[PackedServers, ...]:
    """Which replicas stand on which servers, like servers together; by level where servers are paid by level."""
    packed = []
    for q in fleet.servers:
        for place, level in enumerate(data.levels_of(q)):
            counts = {
                d: fleet.running[d, p][place] if q in data.elastic else count
                for (d, p), count in fleet.replicas.items()
                if p == q
            }
            packed += _packed(data, fleet, q, level, {d: count for d, count in counts.items() if count})
    return tuple(packed)


def _packed(data: ProgramData, fleet: Fleet, q: str, level: str, counts: Mapping[str, int]) -> list[PackedServers]:
    """Servers of one pool, at one level."""
    accelerators = data.pools[q].server_type.accelerators
    at = list(data.billed_levels).index(level) if q in data.elastic else None
    members = sorted(
        ((data.deployments[d].width, d, count) for d, count in counts.items()), key=lambda item: (-item[0], item[1])
    )
    packed = []
    for width, d, count in members:
        if width > accelerators:
            spans = round(data.deployments[d].servers_per_replica)
            packed.append(PackedServers(pool=q, servers=spans * count, replicas={d: count}, level=at))
    narrow = [(width, d, count) for width, d, count in members if width <= accelerators]
    if (q, level) in fleet.fillings:
        like = _into_fillings(narrow, data.patterns_by_pool[q], fleet.fillings[q, level])
    else:
        like = _nested(narrow, accelerators)
    for held, times in like:
        replicas = {d: n * times for d, n in sorted(held.items())}
        packed.append(PackedServers(pool=q, servers=times, replicas=replicas, level=at))
    return packed


Narrow = list[tuple[int, str, int]]
Held = list[tuple[dict[str, int], int]]


def _into_fillings(narrow: Narrow, fillings: tuple[dict[int, int], ...], counts: Mapping[int, int]) -> Held:
    """Replicas by server in the shapes that the program chose, like servers together."""
    left = {width: [(d, count) for w, d, count in narrow if w == width] for width, _, _ in narrow}
    like: dict[tuple[tuple[str, int], ...], int] = {}
    for number, servers in counts.items():
        for _ in range(servers):
            held: dict[str, int] = {}
            for width, slots in fillings[number].items():
                queue = left.get(width, [])
                while slots and queue:
                    d, count = queue.pop(0)
                    taken = min(slots, count)
                    held[d] = held.get(d, 0) + taken
                    slots -= taken
                    if count > taken:
                        queue.insert(0, (d, count - taken))
            if held:
                key = tuple(sorted(held.items()))
                like[key] = like.get(key, 0) + 1
    return [(dict(key), times) for key, times in like.items()]


def _nested(narrow: Narrow, accelerators: int) -> Held:
    """Replicas by server where widths nest: largest first into the first servers with room, which wastes nothing.

    Groups of like servers are filled at once, so the work does not grow with the fleet.
    """
    groups: list[tuple[int, dict[str, int], int]] = []
    for width, d, count in narrow:
        filled: list[tuple[int, dict[str, int], int]] = []
        for room, held, times in [*groups, (accelerators, {}, count)]:
            slots = room // width
            full = min(times, count // slots) if slots else 0
            rest = min(count - full * slots, slots) if slots and full < times else 0
            for servers, each in ((full, slots), (1 if rest else 0, rest)):
                if servers:
                    filled.append((room - width * each, {**held, d: held.get(d, 0) + each}, servers))
            untouched = times - full - (1 if rest else 0)
            if untouched and held:
                filled.append((room, held, untouched))
            count -= full * slots + rest
        groups = filled
    return [(held, times) for _, held, times in groups]
