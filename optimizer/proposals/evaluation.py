"""A proposal made into a plan: predicted, priced and held against every limit as the program's own plans are.

Nothing is searched but the requests in flight where the proposal leaves them open. The plan's limits may be broken; its
numbers are checked by ``optimizer.verify`` all the same.
"""

from dataclasses import replace

import numpy as np

from optimizer.candidates import Candidates, build_candidates
from optimizer.catalog import load_catalog
from optimizer.errors import InputError, InternalError, Problem
from optimizer.extract import make_plan
from optimizer.fleet import Fleet
from optimizer.instance.model import Instance
from optimizer.models import served_model
from optimizer.offer import deployment_id, make_offer, program_data
from optimizer.performance.factors import factors_with
from optimizer.plan import PackedServers, Plan
from optimizer.program_data import ALWAYS, Pair, ProgramData
from optimizer.proposals.broken import SLACK, Evaluated, is_broken, tells_a_break
from optimizer.proposals.chosen import Chosen, Run, chosen_of, chosen_of_plan, narrowed, outside
from optimizer.proposals.shape import Proposal
from optimizer.rates import Counts, serving_rates
from optimizer.schemes import SchemeOption, scheme_options
from optimizer.screen import Screened, class_demand, demand_weights, screen
from optimizer.setting import Setting, bought_pool, build_setting
from optimizer.simple_plan import by_level
from optimizer.solver import Options, Outcome, Reason, solver_name
from optimizer.verify import verify


def evaluated(instance: Instance, proposal: Proposal | Plan, options: Options, *, file: str = "proposal") -> Evaluated:
    """Predict, price and check a proposal.

    ``instance`` is resolved. Raises InputError where the proposal contradicts itself, cannot be had or does not start.
    """
    own = narrowed(instance, proposal)
    setting = build_setting(own, load_catalog())
    chosen = chosen_of_plan(proposal) if isinstance(proposal, Plan) else chosen_of(proposal, setting, file)
    setting = _with_pools(setting, chosen, file)
    candidates = _candidates(own, setting)
    rows = [_row_of(candidates, run, file) for run in chosen.runs]
    chosen, concurrency = _in_flight(_screened_for_load(candidates), chosen, rows, file)
    offer = make_offer(_at(screen(candidates), rows, concurrency), dominate=False)
    data = program_data(offer, reduce=False)
    if data is None:
        raise InternalError("a proposal that serves every class lost one")
    data = _roomy(data, chosen)
    fleet = _fleet(data, candidates, chosen, rows, concurrency)
    stopped = Outcome(Reason.INTERRUPT, float("nan"), 0.0, None, 0, 0.0)
    plan = make_plan(offer, data, fleet, stopped, options, solver_name())
    told = (*chosen.told, *_unknown_accuracy(candidates, rows))
    _checked(plan, file)
    broken = tuple(row for row in plan.headroom if is_broken(row))
    return Evaluated(plan, broken, tuple(outside(instance, chosen, setting)), chosen.is_owned, told)


def _with_pools(setting: Setting, chosen: Chosen, file: str) -> Setting:
    """The setting with the pools of the proposal alone; racks that take no server of theirs take one all the same."""
    known = {pool.id: pool for pool in setting.pools}
    pools = []
    for key, stand in chosen.stands.items():
        pool = known.get(key)
        if pool is None and stand.cooling is not None:
            types = {one.id: one for one in setting.server_types}
            server_type = types.get(key.partition("/")[0])
            if server_type is not None and server_type.server_usd is not None:
                option = setting.catalog.cooling[stand.cooling]
                made = bought_pool(setting.instance, setting.catalog, server_type, setting.fabrics, option)
                pool = replace(made, per_rack=max(1, made.per_rack))
        if pool is None:
            found = f"servers of {key}"
            raise InputError((Problem("E-PROPOSAL-503", file, found=found, allowed="must have a price here and now"),))
        pools.append(pool)
    return replace(setting, pools=tuple(pools), refusals=())


def _candidates(instance: Instance, setting: Setting) -> Candidates:
    model = served_model(instance, setting.catalog)
    schemes = tuple(_with_accuracy(one) for one in scheme_options(setting, model))
    return build_candidates(setting, model, schemes, factors_with(instance.workload.calibration_document()))


def _with_accuracy(option: SchemeOption) -> SchemeOption:
    """A scheme of which too little is published keeps nothing, for all that is known."""
    if option.accuracy.quantile is not None:
        return option
    return replace(option, accuracy=replace(option.accuracy, quantile=0.0))


def _unknown_accuracy(candidates: Candidates, rows: list[int]) -> tuple[str, ...]:
    schemes = {candidates.schemes[int(candidates.scheme_index[row])] for row in rows}
    return tuple(
        f"too little is published of {one.id} to say what accuracy it keeps; it counts as none"
        for one in sorted(schemes, key=lambda one: one.id)
        if one.accuracy.quantile == 0.0 and one.accuracy.models == 0
    )


def _row_of(candidates: Candidates, run: Run, file: str) -> int:
    """The candidate that a run is, or InputError: no engine starts it, or the accelerator cannot run the scheme."""
    classes = [one.name for one in candidates.setting.classes]
    schemes = {one.id: place for place, one in enumerate(candidates.schemes)}
    types = {one.id: place for place, one in enumerate(candidates.server_types)}
    if run.request_class not in classes:
        raise _refused(file, run, "E-PROPOSAL-505", "request_class", run.request_class, f"must be one of {classes}")
    if run.scheme_id not in schemes:
        allowed = "must leave recovery out: there is no loss to win back"
        raise _refused(file, run, "E-PROPOSAL-503", "recovery", run.recovery, allowed)
    here = candidates.class_index == classes.index(run.request_class)
    here &= candidates.server_type_index == types.get(run.server_type, -1)
    here &= candidates.scheme_index == schemes[run.scheme_id]
    for column, degree in zip(
        (
            candidates.tensor_parallel,
            candidates.pipeline_parallel,
            candidates.expert_parallel,
            candidates.attention_data_parallel,
        ),
        run.layout,
        strict=True,
    ):
        here &= column == degree
    here &= candidates.prefill_replicas == run.prefill_replicas
    here &= candidates.decode_replicas == run.decode_replicas
    here &= (candidates.prefill_degrees == run.prefill_layout).all(axis=1)
    found = np.flatnonzero(here)
    if found.size:
        return int(found[0])
    reasons = "; ".join(_reasons(candidates, run))
    layout = "TP {} x PP {} x EP {} x attention DP {}".format(*run.layout)
    raise _refused(file, run, "E-PROPOSAL-504", "tensor_parallel", f"{layout}, {run.scheme_id}", reasons)


def _reasons(candidates: Candidates, run: Run) -> list[str]:
    """Why no engine starts a run."""
    from optimizer.candidate_columns import block_width, supported
    from optimizer.performance.layouts import check_layouts, reasons_of

    server_type = next(one for one in candidates.setting.server_types if one.id == run.server_type)
    option = next(one for one in candidates.schemes if one.id == run.scheme_id)
    row, size = server_type.accelerator, server_type.accelerators
    if not supported(row, option):
        return [f"{row.id} does not run {run.scheme_id}"]
    mask = check_layouts(
        candidates.model.architecture,
        tensor_parallel=run.tensor_parallel,
        pipeline_parallel=run.pipeline_parallel,
        expert_parallel=run.expert_parallel,
        attention_data_parallel=run.attention_data_parallel,
        scale_up_domain=min(row.scale_up_domain, size),
        accelerators_per_host=min(row.accelerators_per_host, size),
        quantization_block=block_width(candidates.model, option),
        context_tokens=candidates.setting.instance.workload.longest_context_tokens(),
    )
    return list(reasons_of(int(mask))) or ["no engine starts it here"]


def _refused(file: str, run: Run, code: str, key: str, found: str, allowed: str) -> InputError:
    field = f"{run.place}.{key}" if run.place else key
    return InputError((Problem(code, file, field=field, found=found, allowed=allowed),))


def _screened_for_load(candidates: Candidates) -> Screened:
    """The screening without the limits that do not depend on how many requests are in flight."""
    setting = candidates.setting
    update = {
        "accuracy_floor_fraction": 1e-9,
        "accuracy_floor_score": None,
        "accuracy_baseline_score": None,
        "weights_gib_per_accelerator": None,
    }
    targets = setting.instance.targets.model_copy(update=update)
    return screen(
        replace(candidates, setting=replace(setting, instance=setting.instance.model_copy(update={"targets": targets})))
    )


def _in_flight(screened: Screened, chosen: Chosen, rows: list[int], file: str) -> tuple[Chosen, dict[int, int]]:
    """Requests in flight by candidate row; runs of one row must agree.

    Where a run states none: the most that keeps every limit that depends on it; where none does, the least with which
    its replicas carry their share of the demand, at most what the engine's memory holds.
    """
    stated: dict[int, int] = {}
    told = list(chosen.told)
    for run, row in zip(chosen.runs, rows, strict=True):
        if run.concurrency is not None and stated.setdefault(row, run.concurrency) != run.concurrency:
            found = f"{stated[row]} and {run.concurrency}"
            raise _refused(file, run, "E-PROPOSAL-506", "concurrency", found, "must be the same for one deployment")
    result = dict(stated)
    for row in dict.fromkeys(rows):
        if row in result:
            continue
        most = int(screened.concurrency[row])
        if most:
            result[row] = most
            continue
        replicas = sum(one.replicas for one, other in zip(chosen.runs, rows, strict=True) if other == row)
        result[row], why = _least_carrying(screened.candidates, row, replicas, _share(screened, chosen, rows, row))
        told.append(f"no number of requests in flight keeps latency, memory and links; {why}: {result[row]:,}")
    return replace(chosen, told=tuple(told)), result


def _share(screened: Screened, chosen: Chosen, rows: list[int], row: int) -> float:
    """Part of its class's demand that a deployment is to carry: by the accelerators of its replicas."""
    candidates = screened.candidates
    mine = candidates.class_index[row]
    work = [
        (other, one.replicas * int(candidates.width[other]))
        for one, other in zip(chosen.runs, rows, strict=True)
        if candidates.class_index[other] == mine
    ]
    share = sum(size for other, size in work if other == row) / sum(size for _, size in work)
    return share * class_demand(candidates)[int(mine)]


def _least_carrying(candidates: Candidates, row: int, replicas: int, demand: float) -> tuple[int, str]:
    """(requests in flight, what they are): the least that carries the demand, else the most that memory holds."""
    index = np.array([row], dtype=np.int64)
    targets, choices = candidates.setting.instance.targets, candidates.setting.instance.choices

    def carries(concurrency: int) -> bool:
        seen = candidates.at(index, np.array([concurrency], dtype=np.int64))
        weight = demand_weights(candidates, index, seen.latency_ms)
        return bool(replicas * targets.peak_utilization_fraction * weight[0] * seen.requests_per_s[0] >= demand)

    held = float(candidates.at(index, np.array([1], dtype=np.int64)).largest_concurrency[0])
    most = int(min(held, choices.max_concurrency * candidates.attention_data_parallel[row]))
    if most < 1:
        return 1, "not one fits the memory, so one is shown"
    if not carries(most):
        return most, "the most that memory and engine hold is shown"
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if carries(middle) else (middle, high)
    return high, "the least that carries the demand is shown"


def _at(screened: Screened, rows: list[int], concurrency: dict[int, int]) -> Screened:
    """The screening with the rows of the proposal alone, each at its requests in flight."""
    candidates = screened.candidates
    chosen = np.array(sorted(set(rows)), dtype=np.int64)
    at = np.zeros(candidates.size, dtype=np.int64)
    at[chosen] = [concurrency[int(row)] for row in chosen]
    return replace(screened, concurrency=at, rows=chosen, prediction=candidates.at(chosen, at[chosen]))


def _roomy(data: ProgramData, chosen: Chosen) -> ProgramData:
    """The data with room for the proposal's counts: its bounds are those of optimal plans."""
    servers = {q: max(most, chosen.stands[q].servers) for q, most in data.max_servers.items()}
    missing = chosen.stands.keys() - servers.keys()
    if missing:
        raise InternalError(f"a proposal's servers were lost: {sorted(missing)}")
    wider = replace(data, max_servers=servers)
    return wider.with_terms(data.terms)


def _fleet(
    data: ProgramData, candidates: Candidates, chosen: Chosen, rows: list[int], concurrency: dict[int, int]
) -> Fleet:
    names = [
        (deployment_id(candidates, row, concurrency[row]), run.pool) for run, row in zip(chosen.runs, rows, strict=True)
    ]
    replicas: dict[Pair, int] = {}
    for run, pair in zip(chosen.runs, names, strict=True):
        replicas[pair] = replicas.get(pair, 0) + run.replicas
    running, used = _stated_by_level(data, chosen, replicas, names) or by_level(data, replicas)
    always = {pair: count for pair, count in replicas.items() if pair not in running}
    return Fleet(
        {pair: max(running.get(pair, (count,))) for pair, count in replicas.items()},
        {q: max(used.get(q, (stand.servers,))) for q, stand in chosen.stands.items()},
        {q: stand.spare for q, stand in chosen.stands.items() if stand.spare},
        serving_rates(data, Counts(always, running), {q: stand.servers for q, stand in chosen.stands.items()}),
        _fillings(data, chosen.packing, {d: data.deployments[d].width for d, _ in replicas}),
        running,
        used,
    )


def _stated_by_level(
    data: ProgramData, chosen: Chosen, replicas: dict[Pair, int], names: list[Pair]
) -> tuple[dict[Pair, tuple[int, ...]], dict[str, tuple[int, ...]]] | None:
    """(replicas, servers) by level as the proposal, a plan, has them; None where it has none that carry this load.

    Which of several servers paid by level serve a level is a choice of the plan: one that is not the cheapest at the
    peak may be it in a valley.
    """
    levels = list(data.billed_levels.values())
    running: dict[Pair, tuple[int, ...]] = {}
    for run, pair in zip(chosen.runs, names, strict=True):
        if pair[1] in data.elastic:
            if len(run.replicas_by_level) != len(levels):
                return None
            before = running.get(pair, (0,) * len(levels))
            running[pair] = tuple(a + b for a, b in zip(before, run.replicas_by_level, strict=True))
    if not running:
        return None
    always = {pair: count for pair, count in replicas.items() if pair not in running}
    counts = Counts(always, running)
    for place, level in enumerate(levels):
        for b, demand in enumerate(data.demand):
            carried = sum(
                counts.at(pair, place) * data.pair_capacity(*pair)
                for pair in counts.pairs()
                if data.deployments[pair[0]].class_index == b
            )
            if carried < level.fraction * demand * (1.0 - SLACK):
                return None
    return running, {q: chosen.stands[q].servers_by_level for q in {q for _, q in running}}


def _fillings(
    data: ProgramData, packing: tuple[PackedServers, ...], widths: dict[str, int]
) -> dict[tuple[str, str], dict[int, int]]:
    """How a plan's replicas stand on the servers of each pool where widths do not nest: servers by maximal filling."""
    result: dict[tuple[str, str], dict[int, int]] = {}
    for row in packing:
        patterns = data.patterns_by_pool.get(row.pool)
        if patterns is None:
            continue
        held: dict[int, int] = {}
        for name, count in row.replicas.items():
            if widths.get(name, 0) in patterns[0]:
                held[widths[name]] = held.get(widths[name], 0) + count // row.servers
        fitting = next(
            (number for number, one in enumerate(patterns) if all(one[w] >= n for w, n in held.items())), None
        )
        if held and fitting is not None:
            level = ALWAYS if row.level is None else list(data.billed_levels)[row.level]
            counts = result.setdefault((row.pool, level), {})
            counts[fitting] = counts.get(fitting, 0) + row.servers
    return result


def _checked(plan: Plan, file: str) -> None:
    """The checker may find broken limits; it may not find wrong numbers."""
    findings = verify(plan)
    packed = [one for one in findings if one.code == "V-PACK"]
    if packed:
        raise InputError(
            (
                Problem(
                    "E-PROPOSAL-502",
                    file,
                    field="replicas",
                    found=f"replicas on {packed[0].found} servers in service",
                    allowed=f"must be {packed[0].expected}: replicas of different widths do not fill them",
                ),
            )
        )
    wrong = [one for one in findings if not tells_a_break(one)]
    if wrong:
        raise InternalError(
            "a proposal's figures do not stand up to our own check:\n" + "\n".join(str(one) for one in wrong[:20])
        )
