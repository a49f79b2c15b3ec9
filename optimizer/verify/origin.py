"""Outcome, runners-up, search counts and provenance: they must not contradict the plan that carries them."""

import hashlib
import json
from typing import Any

from pydantic import BaseModel

from optimizer.plan import Plan
from optimizer.units import HOURS_PER_YEAR
from optimizer.verify.facts import Facts
from optimizer.verify.finding import EXACT_RELATIVE, SOLVED_RELATIVE, Ledger, close


def check_origin(ledger: Ledger, facts: Facts, plan: Plan) -> None:
    """What is told about the plan."""
    _check_outcome(ledger, plan)
    _check_runners_up(ledger, plan)
    search = plan.search
    fine = 0 < search.kept <= search.admissible <= search.candidates
    shown = f"{search.candidates}, {search.admissible}, {search.kept}"
    ledger.check(fine, "V-ORIGIN", "search", shown, "falling counts", "predicted, admissible and kept candidates")
    _check_rows(ledger, facts, plan)


def _check_outcome(ledger: Ledger, plan: Plan) -> None:
    outcome, asked = plan.outcome, plan.instance.solver.gap
    yearly = outcome.objective_usd_per_hour * HOURS_PER_YEAR
    path = "outcome.objective_usd_per_hour"
    ledger.number("V-SUM", path, yearly, plan.bill.usd_per_year, "the solver's objective is the bill", SOLVED_RELATIVE)
    ledger.number("V-ORIGIN", "outcome.requested_gap", outcome.requested_gap, asked, "gap that was asked for")
    objective = outcome.objective_usd_per_hour
    gap = (objective - outcome.bound_usd_per_hour) / objective if objective else 0.0
    fine = close(outcome.gap, gap, EXACT_RELATIVE, EXACT_RELATIVE) and gap >= -SOLVED_RELATIVE
    ledger.check(fine, "V-ORIGIN", "outcome.gap", outcome.gap, gap, "(objective - bound) / objective")
    proven = outcome.holds != "proven" or gap <= asked * (1.0 + SOLVED_RELATIVE) + EXACT_RELATIVE
    ledger.check(proven, "V-ORIGIN", "outcome.holds", outcome.holds, "feasible", "the gap is above what was asked for")
    ledger.check(outcome.holds != "nothing", "V-ORIGIN", "outcome.holds", "nothing", "a plan", "a plan holds something")


def _check_runners_up(ledger: Ledger, plan: Plan) -> None:
    cost = plan.bill.usd_per_hour
    for place, other in enumerate(plan.runners_up):
        path = f"runners_up[{place}]"
        both = (other.usd_per_hour is None) == (other.extra_fraction is None)
        ledger.check(
            both, "V-ORIGIN", path, other.extra_fraction, other.usd_per_hour, "cost and difference go together"
        )
        if other.usd_per_hour is None or other.extra_fraction is None:
            continue
        extra = other.usd_per_hour / cost - 1.0 if cost else 0.0
        fine = close(other.extra_fraction, extra, EXACT_RELATIVE, EXACT_RELATIVE)
        ledger.check(fine, "V-ORIGIN", f"{path}.extra_fraction", other.extra_fraction, extra, "how much dearer it is")


def _check_rows(ledger: Ledger, facts: Facts, plan: Plan) -> None:
    tables = {name: getattr(facts.catalog, name) for name in vars(facts.catalog)}
    for place, row in enumerate(plan.catalog_rows):
        path = f"catalog_rows[{place}]"
        table = tables.get(row.table)
        known = table is not None and row.id in table
        if ledger.check(known, "V-CATALOG", path, f"{row.table}: {row.id}", "a catalogue row", "no such row") and table:
            own: BaseModel = table[row.id]
            for key, value in own.model_dump(mode="json").items():
                found = row.row.get(key)
                same = canonical(found) == canonical(value)
                ledger.check(same, "V-CATALOG", f"{path}.row.{key}", found, value, "differs from the catalogue")


def canonical(value: Any) -> str:
    """One text for equal JSON values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256(text: str) -> str:
    """Hex digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
