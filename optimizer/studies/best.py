"""The best plan of an instance without what a study does not read: no runners-up, no diagnosis."""

from pathlib import Path
from typing import TYPE_CHECKING

from optimizer.catalog import Catalog, load_catalog
from optimizer.errors import InternalError, SolverError, StoppedWithoutPlan
from optimizer.instance.model import Instance
from optimizer.plan import Plan

if TYPE_CHECKING:
    from optimizer.offer import Offer
    from optimizer.solver import Options, Outcome


def prepared(instance: Instance, instance_path: Path | None = None) -> Instance:
    """The instance with its model path read; studies solve many of its neighbours."""
    from optimizer.api import resolved

    return resolved(instance, instance_path)


def best_plan(instance: Instance, catalog: Catalog | None = None) -> Plan | None:
    """The cheapest plan, or None where nothing fits.

    A plan on the packaged catalogue is verified as that of ``api.solve`` is. One on another ``catalog`` cannot be: the
    checker knows the packaged one only.

    Raises
    ------
    SolverError: the solver failed. StoppedWithoutPlan: the instance's time limit came before any plan. InternalError:
    our own check refused the plan.
    """
    from optimizer.verify import verify

    if instance.workload.kind == "training":
        from optimizer.training.answer import best_plan as best_training_plan

        plan = best_training_plan(instance, options_of(instance), catalog)
    else:
        plan = _best_serving(instance, catalog)
    findings = verify(plan) if plan is not None and catalog is None else ()
    if findings:
        raise InternalError("a study's plan does not stand up to our own check:\n" + "\n".join(map(str, findings[:20])))
    return plan


def _best_serving(instance: Instance, catalog: Catalog | None) -> Plan | None:
    from optimizer.answer import answer, plan_of
    from optimizer.offer import Without

    options = options_of(instance)
    offer = offer_of(instance, catalog)
    found = answer(offer, options, Without())
    if found.fleet is None:
        _raise_unless_infeasible(found.outcome)
        return None
    return plan_of(offer, found, options)


def _raise_unless_infeasible(outcome: "Outcome") -> None:
    """What the end of a search without a plan means, unless that nothing fits."""
    from optimizer.solver import Reason

    if outcome.reason in (Reason.TIME_LIMIT, Reason.INTERRUPT):
        raise StoppedWithoutPlan("a study's solve was stopped before any plan was found")
    if outcome.reason is not Reason.INFEASIBLE:
        raise SolverError(f"the solver ended with {outcome.reason.value}")


def yearly_usd(plan: Plan, base: Instance) -> float:
    """Yearly cost of a plan for comparison with those of ``base``'s other neighbours.

    A run of training is paid once, and told by an annuity: always that of ``base``, so that another horizon or discount
    rate does not change what the same payments are told as.
    """
    if plan.training is None:
        return plan.bill.usd_per_year
    from optimizer.costs.finance import capital_recovery_factor

    return plan.training.usd * capital_recovery_factor(base.economics.discount_rate, base.economics.horizon_years)


def next_best_plan(instance: Instance, plan: Plan) -> Plan | None:
    """The cheapest plan without something that the best ``plan`` uses (``optimizer.ranking``); None: there is none.

    It is solved to the instance's gap and, being no answer by itself, not verified.
    """
    from optimizer.ranking import ranking

    if instance.workload.kind != "serving":
        from optimizer.training.ranking import next_best_run

        return next_best_run(instance, plan, options_of(instance))
    found = ranking(offer_of(instance), plan, 1, options_of(instance))
    return found.plans[0] if found.plans else None


def options_of(instance: Instance) -> "Options":
    """The solver's options that an instance asks for."""
    from optimizer.solver import Options

    asked = instance.solver
    return Options(gap=asked.gap, time_limit_s=asked.time_limit_s, threads=asked.threads, seed=asked.seed)


def offer_of(instance: Instance, catalog: Catalog | None = None) -> "Offer":
    """What may be chosen for a prepared instance, screened and priced, on the packaged catalogue or another one."""
    from optimizer.candidates import build_candidates
    from optimizer.models import served_model
    from optimizer.offer import make_offer
    from optimizer.performance.factors import factors_with
    from optimizer.schemes import scheme_options
    from optimizer.screen import screen
    from optimizer.setting import build_setting

    setting = build_setting(instance, load_catalog() if catalog is None else catalog)
    model = served_model(instance, setting.catalog)
    factors = factors_with(instance.workload.calibration_document())
    return make_offer(screen(build_candidates(setting, model, scheme_options(setting, model), factors)))


def server_words(count: int, server_type: str, sourcing: str, cooling: str | None) -> str:
    """Servers of one pool: 2 x h100-80gb-sxm x8 (bought, rdhx_passive)."""
    terms = {"on_demand": "on demand", "reserved_1yr": "1-year term", "reserved_3yr": "3-year term", "spot": "on spot"}
    got = "owned" if sourcing == "owned" else "bought"
    how = f"{got}, {cooling}" if cooling is not None else f"rented {terms.get(sourcing, sourcing)}"
    return f"{count} x {server_type} ({how})"


def summary(plan: Plan) -> str:
    """What is bought and rented, on one line."""
    if plan.training is not None:
        from optimizer.training.runners_up import summary as training_summary

        return training_summary(plan)
    parts = [server_words(one.servers, one.server_type, one.sourcing, one.cooling) for one in plan.servers]
    schemes = sorted(
        {one.scheme if one.recovery == "none" else f"{one.scheme}+{one.recovery}" for one in plan.deployments}
    )
    if plan.training is not None:
        schemes = sorted({job.precision for job in plan.training.jobs})
    return f"{' + '.join(parts)}, {', '.join(schemes)}"
