"""The bill of a plan for training: by component and by job. A run of months has no years to spread it over."""

import json
import math
from dataclasses import asdict, dataclass

from optimizer.plan import Plan
from optimizer.report.csv_tables import as_csv, to_cents
from optimizer.report.words import percent, significant, usd

_TOKENS_PER_MILLION = 1e6


@dataclass(frozen=True, slots=True)
class Cost:
    """One component of the bill: what all jobs are charged, and what is paid at the start for it."""

    component: str
    usd: float
    capital_usd: float


def costs(plan: Plan) -> tuple[Cost, ...]:
    """Every component, in the order of the bill; their sum is ``training.usd``."""
    assert plan.training is not None
    scale = plan.training.usd / plan.bill.usd_per_year if plan.bill.usd_per_year else 0.0
    found = []
    for component in dict.fromkeys(line.component for line in plan.bill.lines):
        lines = [line for line in plan.bill.lines if line.component == component]
        yearly = math.fsum(line.usd_per_year for line in lines)
        found.append(Cost(component, yearly * scale, math.fsum(line.capital_usd for line in lines)))
    return tuple(found)


def bill_csv(plan: Plan) -> str:
    """Component, USD, capital; with a last row ``total``."""
    found = costs(plan)
    money, capital = to_cents([one.usd for one in found]), to_cents([one.capital_usd for one in found])
    rows = [[one.component, *pair] for one, pair in zip(found, zip(money, capital, strict=True), strict=True)]
    return as_csv(("component", "usd", "capital_usd"), [*rows, ["total", sum(money), sum(capital)]])


def bill_json(plan: Plan) -> str:
    """Components, jobs and costs per unit, in full precision."""
    assert plan.training is not None
    jobs = [
        {
            "name": job.name,
            "usd": job.usd,
            "usd_per_accelerator_hour": job.usd_per_accelerator_hour,
            "accelerator_hours": job.accelerator_hours,
            "usd_per_million_tokens": job.usd / job.tokens * _TOKENS_PER_MILLION,
        }
        for job in plan.training.jobs
    ]
    content = {"name": plan.name, "components": [asdict(one) for one in costs(plan)], "jobs": jobs}
    return f"{json.dumps(content, indent=1, ensure_ascii=False)}\n"


def bill_text(plan: Plan) -> str:
    """Components and jobs, for people."""
    assert plan.training is not None
    total = plan.training.usd
    lines = [f"  {'Component':<24}{'all jobs':>14}{'share':>10}{'at start':>14}"]
    lines += [
        f"  {one.component:<24}{usd(one.usd):>14}{percent(one.usd / total):>10}{usd(one.capital_usd):>14}"
        for one in costs(plan)
    ]
    lines += [f"  {'total':<24}{usd(total):>14}{'':>10}{usd(plan.bill.capital_usd):>14}", ""]
    lines.append(f"  {'Job':<24}{'cost':>14}{'a GPU-hour':>14}{'million GPU-h':>16}{'a million tokens':>18}")
    for job in plan.training.jobs:
        tokens = job.usd / job.tokens * _TOKENS_PER_MILLION
        hours = significant(job.accelerator_hours / 1e6)
        each = usd(job.usd_per_accelerator_hour)
        lines.append(f"  {job.name[:23]:<24}{usd(job.usd):>14}{each:>14}{hours:>16}{usd(tokens):>18}")
    return "\n".join(lines) + "\n"
