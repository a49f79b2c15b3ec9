"""How many spare servers stand beside those in service: a share, a least count, and a target of availability.

A server is down while an accelerator of it has failed and is not replaced yet. With ``f`` failures an accelerator and
year, ``G`` accelerators and ``R`` days of repair it is down the share ``u = x / (1 + x)`` of the time, with
``x = f G R / 365.25``: mean time to repair over mean time between failures, an alternating renewal process. Of
``n + s`` servers that fail by themselves so many are up as a binomial law says, and ``s`` is the least count with

    P(at most s of n + s down) = sum_{k <= s} C(n + s, k) u^k (1 - u)^(n + s - k) >= target.
"""

import math
from functools import lru_cache
from typing import Final

from optimizer.instance.targets import Targets

DAYS_PER_YEAR: Final = 365.25
#: Slack of a share that is rounded up, for the last bit of a product.
_ROUNDING: Final = 1e-9
#: Slack of the target, for the last bits of a sum of probabilities.
_SURE: Final = 1e-12


def down_fraction(targets: Targets, accelerators: int) -> float:
    """Share of the time that a server of so many accelerators is down."""
    repairs = targets.failures_per_accelerator_year * accelerators * targets.repair_days / DAYS_PER_YEAR
    return repairs / (1.0 + repairs)


def available_probability(in_service: int, spare: int, down: float) -> float:
    """Probability that at most ``spare`` of ``in_service + spare`` servers are down."""
    total = in_service + spare
    if down <= 0.0:
        return 1.0
    # Each term from the one before it, in logarithms: (1 - u)^n alone may be too small for a number.
    term = total * math.log1p(-down)
    ratio = math.log(down) - math.log1p(-down)
    terms = [term]
    for k in range(1, spare + 1):
        term += math.log((total - k + 1) / k) + ratio
        terms.append(term)
    return math.fsum(math.exp(one) for one in terms)


@lru_cache(maxsize=4096)
def available_spares(in_service: int, down: float, target: float) -> int:
    """Least spares that keep ``in_service`` servers up with the probability ``target``; grows with ``in_service``."""
    if in_service == 0:
        return 0
    # By halves, since the probability grows with every spare: first a count that is enough.
    enough = 1
    if available_probability(in_service, 0, down) >= target - _SURE:
        return 0
    while available_probability(in_service, enough, down) < target - _SURE:
        enough *= 2
    few = enough // 2
    while enough - few > 1:
        middle = (few + enough) // 2
        if available_probability(in_service, middle, down) < target - _SURE:
            few = middle
        else:
            enough = middle
    return enough


def spares_needed(targets: Targets, accelerators: int, in_service: int) -> int:
    """Least spares of a server type in the hall: the largest of share, least count and what availability asks for."""
    asked = 0
    if targets.availability_fraction is not None and in_service > 0:
        asked = available_spares(in_service, down_fraction(targets, accelerators), targets.availability_fraction)
    return max(math.ceil(targets.spare_fraction * in_service - _ROUNDING), targets.spare_servers, asked)


def spare_steps(targets: Targets, accelerators: int, most: int) -> tuple[int, ...]:
    """Largest counts in service that 0, 1, 2 ... spares keep available, up to ``most`` servers in all.

    Empty where no availability is asked for. The last count is that with the most spares that fit beside it.
    """
    if targets.availability_fraction is None:
        return ()
    down, target = down_fraction(targets, accelerators), targets.availability_fraction
    found: list[int] = []
    count = 0
    while count + len(found) <= most:
        spare = len(found)
        # The last count that this many spares keep up, by halves.
        low, high = count, most - spare + 1
        while high - low > 1:
            middle = (low + high) // 2
            if available_spares(middle, down, target) <= spare:
                low = middle
            else:
                high = middle
        found.append(low)
        count = low
        if low >= most - spare:
            break
    return tuple(found)
