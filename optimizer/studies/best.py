"""The best plan of an instance without what a study does not read: no runners-up, no diagnosis."""

from pathlib import Path

from optimizer.catalog import Catalog, load_catalog
from optimizer.errors import InternalError, SolverError, StoppedWithoutPlan
from optimizer.instance.model import Instance
from optimizer.plan import Plan


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
    from optimizer.answer import answer, plan_of
    from optimizer.candidates import build_candidates
    from optimizer.models import served_model
    from optimizer.offer import Without, make_offer
    from optimizer.performance.factors import load_factors
    from optimizer.schemes import scheme_options
    from optimizer.screen import screen
    from optimizer.setting import build_setting
    from optimizer.solver import Options, Reason
    from optimizer.verify import verify

    asked = instance.solver
    options = Options(gap=asked.gap, time_limit_s=asked.time_limit_s, threads=asked.threads, seed=asked.seed)
    setting = build_setting(instance, load_catalog() if catalog is None else catalog)
    model = served_model(instance, setting.catalog)
    offer = make_offer(screen(build_candidates(setting, model, scheme_options(setting, model), load_factors())))
    found = answer(offer, options, Without())
    if found.fleet is None:
        if found.outcome.reason is Reason.INFEASIBLE:
            return None
        if found.outcome.reason in (Reason.TIME_LIMIT, Reason.INTERRUPT):
            raise StoppedWithoutPlan("a study's solve was stopped before any plan was found")
        raise SolverError(f"the solver ended with {found.outcome.reason.value}")
    plan = plan_of(offer, found, options)
    findings = verify(plan) if catalog is None else ()
    if findings:
        raise InternalError("a study's plan does not stand up to our own check:\n" + "\n".join(map(str, findings[:20])))
    return plan


def summary(plan: Plan) -> str:
    """What is bought and rented, on one line."""
    terms = {"on_demand": "on demand", "reserved_1yr": "1-year term", "reserved_3yr": "3-year term"}
    parts = []
    for group in plan.servers:
        how = (
            f"bought, {group.cooling}"
            if group.cooling is not None
            else f"rented {terms.get(group.sourcing, group.sourcing)}"
        )
        parts.append(f"{group.servers} x {group.server_type} ({how})")
    schemes = sorted(
        {one.scheme if one.recovery == "none" else f"{one.scheme}+{one.recovery}" for one in plan.deployments}
    )
    return f"{' + '.join(parts)}, {', '.join(schemes)}"
