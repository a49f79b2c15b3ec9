"""The naive choice: what one would order without a search, solved by the same path as the plan.

The rule: one accelerator type for everything; 16-bit weights and cache; tensor parallelism over as much of one server
as an engine starts, then the fewest pipeline stages, that keep every limit of a deployment; ordinary air cooling (cold
plates for servers built for liquid); bought, or rented by the hour. The cheapest type by this rule is the naive plan.
"""

from dataclasses import replace
from time import perf_counter

import numpy as np

from optimizer.answer import Stop, answer, plan_of
from optimizer.candidates import IntArray, build_candidates
from optimizer.catalog import load_catalog
from optimizer.errors import InternalError
from optimizer.instance.choices import Sourcing
from optimizer.instance.model import Instance
from optimizer.limits import limit
from optimizer.models import served_model
from optimizer.offer import Without, make_offer
from optimizer.performance.factors import factors_with
from optimizer.plan import Plan
from optimizer.schemes import scheme_options
from optimizer.screen import Screened, screen
from optimizer.setting import build_setting
from optimizer.solver import Options, Reason
from optimizer.verify import verify

RULE = (
    "one accelerator type, 16 bits, tensor parallelism over one server and the fewest pipeline stages that keep the"
    " limits, air cooling, bought or on demand"
)
_AIR, _LIQUID = "air_containment_econ", "d2c_1p"
_WAYS: tuple[Sourcing, ...] = ("buy", "on_demand")


def naive_instance(instance: Instance) -> Instance:
    """The instance with the choices of the naive rule."""
    choices = instance.choices
    ways = tuple(one for one in _WAYS if one in choices.sourcing) or choices.sourcing
    return instance.model_copy(
        update={
            "choices": choices.model_copy(
                update={
                    "schemes": ("w16a16",),
                    "kv_schemes": ("kv16",),
                    "recovery_steps": ("none",),
                    "tensor_parallel": tuple(range(1, 73)),
                    "pipeline_parallel": tuple(range(1, 33)),
                    "expert_parallel": (1,),
                    "attention_data_parallel": (1,),
                    "serving_roles": ("unified",),
                    "cooling": (_AIR, _LIQUID),
                    "sourcing": ways,
                    "max_accelerator_types": 1,
                }
            )
        }
    )


def naive_plan(instance: Instance, options: Options, stop: Stop | None = None) -> tuple[Plan | None, str]:
    """(the naive plan, "") or (None, why there is none). ``instance`` is resolved."""
    deadline = perf_counter() + options.time_limit_s
    given = naive_instance(instance)
    setting = build_setting(given, load_catalog())
    # Cold plates are for servers that take nothing else.
    setting = replace(
        setting,
        pools=tuple(
            pool
            for pool in setting.pools
            if pool.cooling is None
            or pool.cooling.id == _AIR
            or pool.server_type.accelerator.liquid_cooling == "required"
        ),
    )
    model = served_model(given, setting.catalog)
    factors = factors_with(given.workload.calibration_document())
    screened = screen(build_candidates(setting, model, scheme_options(setting, model), factors))
    kept = _only(screened, _widest_and_shortest(screened))
    left = replace(options, time_limit_s=max(1e-3, deadline - perf_counter()))
    offer = make_offer(kept)
    found = answer(offer, left, Without(), stop)
    if found.fleet is None:
        if found.outcome.reason is not Reason.INFEASIBLE:
            return None, f"stopped by {found.outcome.reason.value.replace('_', ' ')} before it was found"
        return None, _why(screened)
    plan = plan_of(offer, found, left)
    findings = verify(plan)
    if findings:
        raise InternalError("the naive plan does not stand:\n" + "\n".join(str(one) for one in findings[:20]))
    return plan, ""


def _widest_and_shortest(screened: Screened) -> IntArray:
    """Of the admissible rows of each class and server type, those with the largest TP, then the fewest stages."""
    candidates, rows = screened.candidates, screened.rows
    group = candidates.class_index[rows] * len(candidates.server_types) + candidates.server_type_index[rows]
    kept: list[int] = []
    for one in np.unique(group):
        mine = rows[group == one]
        tensor = candidates.tensor_parallel[mine]
        mine = mine[tensor == tensor.max()]
        stages = candidates.pipeline_parallel[mine]
        kept += mine[stages == stages.min()].tolist()
    return np.array(sorted(kept), dtype=np.int64)


def _only(screened: Screened, rows: IntArray) -> Screened:
    """The screening with fewer admissible rows."""
    if not rows.size:
        return replace(screened, rows=rows, prediction=screened.prediction) if not screened.rows.size else screened
    return replace(screened, rows=rows, prediction=screened.candidates.at(rows, screened.concurrency[rows]))


def _why(screened: Screened) -> str:
    """What stands in the way of every naive choice."""
    if screened.rows.size:
        return "no fleet of one type at 16 bits keeps the caps"
    kills = sorted(screened.killed_by_limit().items(), key=lambda item: (-item[1], item[0]))
    if not kills:
        return "no such server can be had, or no engine starts the model on one"
    names = ", ".join(f"{limit(name).field} ({count:,} of {screened.candidates.size:,})" for name, count in kills[:3])
    return f"at 16 bits no layout keeps its limits: {names} broken"
