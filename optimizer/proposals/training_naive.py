"""The naive run: what one would order without a search, solved by the same path as the plan.

The rule: one accelerator type for everything; 16 bits; tensor parallelism as wide as a server of it goes, then the
fewest pipeline stages with which a layout keeps its limits; ordinary air cooling (cold plates for servers built for
liquid); bought, or rented by the hour. The cheapest type by this rule is the naive plan.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from optimizer.catalog import load_catalog
from optimizer.errors import InternalError
from optimizer.instance.model import Instance
from optimizer.limits import limit
from optimizer.plan import Plan
from optimizer.proposals.chosen import AIR, LIQUID
from optimizer.setting import ServerType
from optimizer.solver import Options, Reason, solver_name
from optimizer.training.answer import Searched, Stop, answer
from optimizer.training.choices import choices_of
from optimizer.training.evaluate import Evaluator
from optimizer.training.extract import make_plan
from optimizer.training.jobs import Job, jobs_of, training_workload
from optimizer.training.layouts import base_layouts
from optimizer.training.options import Options as JobOptions
from optimizer.training.options import searched_options
from optimizer.training.places import SiteGroup, groups_of, places_of, training_accelerator
from optimizer.training.prices import pool_prices
from optimizer.verify import verify

RULE: Final = (
    "one accelerator type, 16 bits, tensor parallelism over one server and the fewest pipeline stages that keep the"
    " limits, air cooling, bought or on demand"
)


def naive_instance(instance: Instance) -> Instance:
    """The instance with the choices of the naive rule; the layouts are those that a type's widest server gives."""
    workload, choices = training_workload(instance), instance.choices
    ways = tuple(one for one in ("buy", "on_demand") if one in choices.sourcing) or choices.sourcing
    layouts = workload.layouts.model_copy(update={"tensor_parallel": None, "pipeline_parallel": None})
    jobs = tuple(one.model_copy(update={"precisions": ("bf16",)}) for one in workload.jobs)
    own: dict[str, Any] = {"precisions": ("bf16",), "layouts": layouts, "jobs": jobs}
    return instance.model_copy(
        update={
            "choices": choices.model_copy(
                update={"cooling": (AIR, LIQUID), "sourcing": ways, "max_accelerator_types": 1}
            ),
            "workload": workload.model_copy(update=own),
        }
    )


def naive_plan(instance: Instance, options: Options, stop: Stop | None = None) -> tuple[Plan | None, str, str]:
    """(the naive plan or None, the rule, why there is none). ``instance`` is resolved."""
    given = naive_instance(instance)
    searched = _searched(given)
    found = answer(searched.program(), options, stop)
    if found.runs is None:
        if found.outcome.reason is not Reason.INFEASIBLE:
            return None, RULE, f"stopped by {found.outcome.reason.value.replace('_', ' ')} before it was found"
        return None, RULE, _why(searched)
    plan = make_plan(searched, found, options, solver_name())
    findings = verify(plan)
    if findings:
        raise InternalError("the naive plan does not stand:\n" + "\n".join(str(one) for one in findings[:20]))
    return plan, RULE, ""


def _searched(given: Instance) -> Searched:
    catalog = load_catalog()
    jobs = jobs_of(given, catalog)
    # Cold plates are for servers that take nothing else.
    prices = {
        key: one
        for key, one in pool_prices(given, places_of(given, catalog)).items()
        if one.pool.cooling is None
        or one.pool.cooling.id == AIR
        or one.pool.server_type.accelerator.liquid_cooling == "required"
    }
    types = {one.pool.server_type.id: one.pool.server_type for one in prices.values()}
    options, choices = [], []
    for job in jobs:
        own = tuple(one for _, each in sorted(types.items()) for one in _options(given, job, each))
        options.append(own)
        choices.append(choices_of(given, list(own), prices, alone_here=len(jobs) == 1))
    return Searched(given, jobs, prices, tuple(options), tuple(choices))


def _options(given: Instance, job: Job, server_type: ServerType) -> Iterator[JobOptions]:
    """The options of a job by the rule, on one site and over each set of linked ones."""
    accelerator = training_accelerator(server_type.accelerator)
    bases = base_layouts(given, job, accelerator)
    bases = bases.take(bases.tensor_parallel <= server_type.accelerators)
    if accelerator.peak_tflops("bf16") <= 0.0 or not bases.size:
        return
    bases = bases.take(bases.tensor_parallel == bases.tensor_parallel.max())
    several = training_workload(given).multi_site.methods
    ways: list[tuple[SiteGroup | None, str]] = [
        (None, "synchronous"),
        *((group, method) for group in groups_of(given) for method in several),
    ]
    plain = Evaluator(given, job, accelerator, "bf16")
    for group, method in ways:
        evaluator = replace(plain, group=group, method=method)
        found = None
        for stages in np.unique(bases.pipeline_parallel).tolist():
            found = searched_options(evaluator, server_type, bases.take(bases.pipeline_parallel == stages))
            if found.admissible:
                break
        if found is not None:
            yield found


def _why(searched: Searched) -> str:
    """What stands in the way of every naive choice."""
    tried = [one for options in searched.options for one in options]
    if not tried:
        return "no such server can be had, or no layout of 16 bits suits the model"
    if all(any(one.admissible for one in options) for options in searched.options):
        return "no fleet of one type at 16 bits keeps the caps"
    broken: dict[str, int] = {}
    for one in tried:
        for name, count in one.broken.items():
            broken[name] = broken.get(name, 0) + count
    ranked = sorted(((count, name) for name, count in broken.items() if count), reverse=True)[:3]
    total = sum(one.tried for one in tried)
    names = ", ".join(f"{limit(name).field} ({count:,} of {total:,})" for count, name in ranked)
    return f"at 16 bits no layout keeps its limits: {names} broken"
