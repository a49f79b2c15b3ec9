"""Spare servers that the targets ask for, by the checker's own sum of a binomial law (docs/method.md section 5)."""

import math

from optimizer.instance.targets import Targets
from optimizer.verify.facts import ROUNDING


def needed_spares(targets: Targets, accelerators: int, in_service: int) -> int:
    """Largest of the share, the least count and what the availability asks for."""
    found = max(math.ceil(targets.spare_fraction * in_service - ROUNDING), targets.spare_servers)
    if targets.availability_fraction is None or in_service <= 0:
        return found
    up_days = 365.25 / (targets.failures_per_accelerator_year * accelerators or 1e-300)
    up = up_days / (up_days + targets.repair_days)
    spare = 0
    while enough_up(in_service, spare, up) < targets.availability_fraction - 1e-12:
        spare += 1
    return max(found, spare)


def enough_up(in_service: int, spare: int, up: float) -> float:
    """Probability that at least ``in_service`` of all servers are up, each up with probability ``up``."""
    if up >= 1.0:
        return 1.0
    total = in_service + spare
    odds = [
        math.lgamma(total + 1)
        - math.lgamma(count + 1)
        - math.lgamma(total - count + 1)
        + count * math.log(up)
        + (total - count) * math.log(1.0 - up)
        for count in range(in_service, total + 1)
    ]
    return math.fsum(math.exp(one) for one in odds)
