"""Outcome, runners-up, search counts and provenance: they must not contradict the plan that carries them."""

import hashlib
import json
from importlib import resources
from typing import Any, Final

from optimizer.plan import Plan
from optimizer.units import HOURS_PER_YEAR
from optimizer.verify.facts import Facts
from optimizer.verify.finding import EXACT_RELATIVE, SOLVED_RELATIVE, Ledger, close

#: Plans within this share of the least cost count as equal: a plan may be chosen among them by its size.
_TIE: Final = 1.001e-6
#: Stands for a column that a row does not have.
_NOTHING: Final = "(nothing)"


def check_origin(ledger: Ledger, facts: Facts, plan: Plan) -> None:
    """What is told about the plan."""
    _check_outcome(ledger, plan)
    _check_runners_up(ledger, plan)
    search = plan.search
    fine = 0 < search.kept <= search.admissible <= search.candidates
    shown = f"{search.candidates}, {search.admissible}, {search.kept}"
    ledger.check(fine, "V-ORIGIN", "search", shown, "falling counts", "predicted, admissible and kept candidates")
    _check_rows(ledger, facts, plan)
    _check_hashes(ledger, plan)


def _check_outcome(ledger: Ledger, plan: Plan) -> None:
    outcome = plan.outcome
    objective, asked = outcome.objective_usd_per_hour, outcome.requested_gap
    path = "outcome.objective_usd_per_hour"
    yearly = objective * HOURS_PER_YEAR
    ledger.number("V-SUM", path, yearly, plan.bill.usd_per_year, "the objective is the bill", SOLVED_RELATIVE)
    option = plan.provenance.options.get("gap", -1.0)
    ledger.number("V-ORIGIN", "outcome.requested_gap", asked, option, "gap that was asked for")
    gap = max(0.0, 1.0 - outcome.bound_usd_per_hour / objective) if objective else 0.0
    fine = close(outcome.gap, gap, EXACT_RELATIVE, EXACT_RELATIVE)
    ledger.check(fine, "V-ORIGIN", "outcome.gap", outcome.gap, gap, "(objective - bound) / objective")
    path, bound = "outcome.bound_usd_per_hour", outcome.bound_usd_per_hour
    below = bound <= objective * (1.0 + EXACT_RELATIVE)
    ledger.check(below, "V-ORIGIN", path, bound, f"<= {objective!r}", "no plan can cost less than the bound")
    proven = outcome.holds != "proven" or gap <= asked + _TIE
    ledger.check(proven, "V-ORIGIN", "outcome.holds", outcome.holds, "feasible", "the gap is above what was asked for")
    done = outcome.reason != "optimal" or gap <= asked + _TIE
    sentence = "the solver proved less than this plan costs: program and bill disagree"
    ledger.check(done, "V-ORIGIN", "outcome.gap", gap, f"<= {asked!r}", sentence)
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
            own: dict[str, Any] = table[row.id].model_dump(mode="json")
            for key in sorted(own.keys() | row.row.keys()):
                found, wanted = row.row.get(key, _NOTHING), own.get(key, _NOTHING)
                ledger.same("V-CATALOG", f"{path}.row.{key}", found, wanted, "differs from the catalogue")


def _check_hashes(ledger: Ledger, plan: Plan) -> None:
    content = plan.instance.model_dump(mode="json", by_alias=True)
    content.pop("$schema", None)
    hashes = {
        "instance_sha256": hashlib.sha256(canonical(content).encode()).hexdigest(),
        "catalog_sha256": _folder_sha256("optimizer.catalog"),
        "factors_sha256": _folder_sha256("optimizer.performance"),
    }
    for name, own in hashes.items():
        path = f"provenance.{name}"
        ledger.same("V-ORIGIN", path, getattr(plan.provenance, name), own, "the plan was made from something else")


def _folder_sha256(package: str) -> str:
    """Names and bytes of a package's data files, in the order of their names."""
    digest = hashlib.sha256()
    files = (one for one in resources.files(package).joinpath("data").iterdir() if one.is_file())
    for file in sorted(files, key=lambda one: one.name):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def canonical(value: Any) -> str:
    """One text for equal JSON values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
