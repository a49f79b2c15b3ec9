"""What an evaluation finds of any kind of work: the proposal as a plan, and the limits that it breaks."""

from dataclasses import dataclass

from optimizer.limits import LIMITS, limit
from optimizer.plan import Headroom, Plan
from optimizer.verify import Finding

#: Where the checker says that a limit is broken.
_LIMIT_PATHS = frozenset(f"headroom[{one.name}]" for one in LIMITS)
#: Relative slack of limits, as the checker's; counts have none.
SLACK = 1e-6
_COUNTS = frozenset({"racks", "supply", "accelerator_types", "spare_servers"})


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A proposal as a plan, the limits it breaks, and what it uses outside the instance's choices (field, value)."""

    plan: Plan
    broken: tuple[Headroom, ...]
    outside: tuple[tuple[str, str], ...]
    is_owned: bool
    told: tuple[str, ...]


def is_broken(row: Headroom) -> bool:
    """Whether a limit does not hold."""
    slack = 0.0 if row.limit in _COUNTS else SLACK * abs(row.needed)
    over = row.reached - row.needed if limit(row.limit).direction == "<=" else row.needed - row.reached
    return over > slack


def tells_a_break(finding: Finding) -> bool:
    """Whether a finding says that a limit is broken, and not that a number is wrong."""
    return (
        (finding.code == "V-LIMIT" and finding.path in _LIMIT_PATHS)
        or (finding.code == "V-RATE" and finding.path.startswith("levels["))
        or finding.code in ("V-SPARE", "V-RACK")
    )
