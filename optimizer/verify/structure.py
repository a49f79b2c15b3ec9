"""What a plan may consist of: whole counts, unique names, and only what was offered (docs/method.md sections 1-2)."""

from collections.abc import Iterable
from itertools import pairwise

from optimizer.catalog.rows import Accelerator
from optimizer.performance.engine_memory import LARGE_CARD_GIB, engine_families
from optimizer.performance.layouts import check_layouts, reasons_of
from optimizer.plan import Deployment, Plan, PrefillRole, ServerGroup
from optimizer.verify.accuracy import is_certain
from optimizer.verify.facts import Facts, owned_servers, paid_by_level, rent_quote, server_quote
from optimizer.verify.finding import Ledger
from optimizer.verify.model import NO_STEP
from optimizer.verify.power_state import NO_CAP


def check_structure(ledger: Ledger, facts: Facts, plan: Plan) -> None:
    """Names, counts and offers. Nothing else can be judged where these do not hold."""
    _unique(ledger, "deployments", (f"{one.id} in {one.pool}" for one in plan.deployments))
    _unique(ledger, "servers", (one.pool for one in plan.servers))
    _unique(ledger, "plants", (one.option for one in plan.plants))
    _unique(ledger, "network", (one.fabric for one in plan.network))
    ledger.same("V-COUNT", "name", plan.name, facts.instance.name, "the plan carries the name of its instance")
    for place, group in enumerate(plan.servers):
        _check_group(ledger, facts, f"servers[{place}]", group)
    groups = {group.pool: group for group in plan.servers}
    for place, deployment in enumerate(plan.deployments):
        _check_deployment(ledger, facts, f"deployments[{place}]", deployment, groups)
    _check_power_states(ledger, facts, plan)
    used = {one.pool for one in plan.deployments}
    for place, group in enumerate(plan.servers):
        path = f"servers[{place}].in_service"
        needed = group.pool in used or group.in_service == 0
        ledger.check(
            needed, "V-COUNT", path, group.in_service, 0, "no deployment runs on this pool, so it holds spares"
        )


def _unique(ledger: Ledger, path: str, names: Iterable[str]) -> None:
    given = list(names)
    twice = sorted({name for name in given if given.count(name) > 1})
    ledger.check(not twice, "V-COUNT", path, ", ".join(twice), "each name once", "something is named twice")


def _check_group(ledger: Ledger, facts: Facts, path: str, group: ServerGroup) -> None:
    for name in ("servers", "in_service", "spare", "racks", "servers_per_rack"):
        count = getattr(group, name)
        ledger.check(count >= 0, "V-COUNT", f"{path}.{name}", count, ">= 0", "a count is never negative")
    ledger.check(group.servers >= 1, "V-COUNT", f"{path}.servers", group.servers, ">= 1", "the group is empty")
    both = group.in_service + group.spare
    ledger.same("V-COUNT", f"{path}.servers", group.servers, both, "servers are those in service and the spares")
    row = _accelerator(ledger, facts, f"{path}.accelerator", group.accelerator)
    if row is None:
        return
    size = group.accelerators_per_server
    if not ledger.check(
        size >= 1, "V-COUNT", f"{path}.accelerators_per_server", size, ">= 1", "a server has accelerators"
    ):
        return
    server_type = f"{group.accelerator}{_state_name(group)} x{size}"
    ledger.same(
        "V-COUNT", f"{path}.server_type", group.server_type, server_type, "a server type is named by what it holds"
    )
    names = (group.sourcing, group.cooling, group.provider, group.region)
    end = "/".join(name for name in names if name)
    ledger.same(
        "V-COUNT", f"{path}.pool", group.pool, f"{server_type}/{end}", "a pool is named by how its servers are got"
    )
    ways = (*facts.instance.choices.sourcing, *(("owned",) if facts.instance.inventory else ()))
    ledger.check(
        group.sourcing in ways,
        "V-OFFER",
        f"{path}.sourcing",
        group.sourcing,
        ", ".join(ways),
        "this sourcing is not allowed",
    )
    _check_by_level(ledger, facts, path, group)
    if group.sourcing == "buy":
        _check_bought(ledger, facts, path, group, row)
    elif group.sourcing == "owned":
        _check_owned(ledger, facts, path, group, row)
    else:
        _check_rented(ledger, facts, path, group)


def _check_by_level(ledger: Ledger, facts: Facts, path: str, group: ServerGroup) -> None:
    """Servers that are paid by level say how many run at each, and are as many as the level with most."""
    by_level = group.servers_by_level
    levels = len(facts.busy_levels) if paid_by_level(facts, group.sourcing) else 0
    path = f"{path}.servers_by_level"
    if ledger.same("V-COUNT", path, len(by_level), levels, "one count for each level that lasts") and levels:
        ledger.check(min(by_level) >= 0, "V-COUNT", path, min(by_level), ">= 0", "a count is never negative")
        ledger.same("V-COUNT", path, max(by_level), group.servers, "as many servers as the level with most")


def _check_owned(ledger: Ledger, facts: Facts, path: str, group: ServerGroup, row: Accelerator) -> None:
    whole = row.accelerators_per_server
    size = group.accelerators_per_server
    ledger.same("V-COUNT", f"{path}.accelerators_per_server", size, whole, "whole servers are owned")
    owned = owned_servers(facts, group.accelerator, group.cooling)
    names = f"{group.accelerator}, {group.cooling}"
    ledger.check(owned is not None, "V-OFFER", f"{path}.sourcing", names, "a row of the inventory", "not owned")
    refused = row.liquid_cooling == "required" and facts.catalog.cooling[group.cooling or ""].medium == "air"
    ledger.check(
        not refused, "V-COOLING", f"{path}.cooling", group.cooling, row.liquid_cooling, "the server cannot be cooled so"
    )


def _check_bought(ledger: Ledger, facts: Facts, path: str, group: ServerGroup, row: Accelerator) -> None:
    whole = row.accelerators_per_server
    size = group.accelerators_per_server
    ledger.same("V-COUNT", f"{path}.accelerators_per_server", size, whole, "only whole servers are sold")
    quote = server_quote(facts, group.accelerator)
    ledger.check(quote is not None, "V-PRICE", f"{path}.sourcing", "buy", "a server price", "nobody sells this server")
    allowed = group.cooling is not None and group.cooling in facts.cooling and group.cooling in facts.catalog.cooling
    if not ledger.check(
        allowed,
        "V-COOLING",
        f"{path}.cooling",
        group.cooling,
        ", ".join(sorted(facts.cooling)),
        "this cooling is not offered",
    ):
        return
    medium = facts.catalog.cooling[group.cooling or ""].medium
    converted = facts.instance.choices.liquid_retrofit
    refused = {"required": "air", "no": None if converted else "liquid"}.get(row.liquid_cooling)
    ledger.check(
        medium != refused, "V-COOLING", f"{path}.cooling", medium, row.liquid_cooling, "the server cannot be cooled so"
    )


def _check_rented(ledger: Ledger, facts: Facts, path: str, group: ServerGroup) -> None:
    ledger.same("V-COOLING", f"{path}.cooling", group.cooling, None, "rented servers are cooled by their owner")
    ledger.same("V-SPARE", f"{path}.spare", group.spare, 0, "rented servers have no spares")
    ledger.same("V-RACK", f"{path}.racks", group.racks, 0, "rented servers stand in no rack of the site")
    quote = rent_quote(facts, group)
    ledger.check(
        quote is not None, "V-PRICE", f"{path}.sourcing", group.sourcing, "a rental price", "nobody rents it out so"
    )


def _accelerator(ledger: Ledger, facts: Facts, path: str, name: str) -> Accelerator | None:
    known = name in facts.accelerators and name in facts.catalog.accelerators
    allowed = ", ".join(sorted(facts.accelerators))
    if not ledger.check(known, "V-OFFER", path, name, allowed, "this accelerator is not offered"):
        return None
    return facts.catalog.accelerators[name]


def _check_deployment(ledger: Ledger, facts: Facts, path: str, one: Deployment, groups: dict[str, ServerGroup]) -> None:
    known = sorted(facts.classes)
    ledger.check(
        one.request_class in facts.classes,
        "V-COUNT",
        f"{path}.request_class",
        one.request_class,
        known,
        "no such class",
    )
    group = groups.get(one.pool)
    if not ledger.check(
        group is not None, "V-COUNT", f"{path}.pool", one.pool, sorted(groups), "no such pool of servers"
    ):
        return
    assert group is not None
    ledger.same(
        "V-COUNT", f"{path}.server_type", one.server_type, group.server_type, "its pool has another server type"
    )
    cap, stated = one.power_cap_fraction, group.power_cap_fraction
    ledger.same("V-COUNT", f"{path}.power_cap_fraction", cap, stated, "its pool runs in another power state")
    ledger.same(
        "V-COUNT", f"{path}.accelerator", one.accelerator, group.accelerator, "its pool has another accelerator"
    )
    ledger.check(one.replicas >= 1, "V-COUNT", f"{path}.replicas", one.replicas, ">= 1", "a deployment has replicas")
    levels = len(facts.busy_levels)
    rates = len(one.rates_requests_per_s)
    ledger.same("V-RATE", f"{path}.rates_requests_per_s", rates, levels, "one rate for each level that lasts")
    by_level = one.replicas_by_level
    wanted = levels if paid_by_level(facts, group.sourcing) else 0
    path_level = f"{path}.replicas_by_level"
    if ledger.same("V-COUNT", path_level, len(by_level), wanted, "one count for each level that lasts") and wanted:
        ledger.check(min(by_level) >= 0, "V-COUNT", path_level, min(by_level), ">= 0", "a count is never negative")
        ledger.same("V-COUNT", path_level, max(by_level), one.replicas, "as many replicas as the level with most")
    row = _accelerator(ledger, facts, f"{path}.accelerator", one.accelerator)
    if row is None:
        return
    ranks = max(one.attention_data_parallel, 1)
    most = facts.instance.choices.max_concurrency * ranks
    ledger.check(
        1 <= one.concurrency <= most, "V-OFFER", f"{path}.concurrency", one.concurrency, f"1..{most}", "not allowed"
    )
    slots = _sequence_slots(facts, row) * ranks
    ledger.check(
        one.concurrency <= slots, "V-OFFER", f"{path}.concurrency", one.concurrency, f"<= {slots}", "no slots for more"
    )
    _check_layout(ledger, facts, path, one, group, row)
    _check_scheme(ledger, facts, path, one, row)


def _sequence_slots(facts: Facts, row: Accelerator) -> int:
    """Sequences that the engine schedules at once on one rank: as it is told to, or its default on the card."""
    told = facts.instance.choices.sequence_slots
    if told is not None:
        return told
    engine = facts.instance.workload.engine
    family = engine_families()[-1]
    for one in engine_families():
        if one.engine == ("trtllm" if engine == "tensorrt-llm" else engine):
            family = one
    large = row.memory_gib >= LARGE_CARD_GIB and row.generation != "ampere"
    return int(family.sequence_slots[0 if large else 1])


def _check_layout(
    ledger: Ledger, facts: Facts, path: str, one: Deployment, group: ServerGroup, row: Accelerator
) -> None:
    choices, size = facts.instance.choices, group.accelerators_per_server
    wanted = "unified" if one.prefill is None else "disaggregated"
    allowed = choices.serving_roles
    ledger.check(wanted in allowed, "V-OFFER", f"{path}.prefill", wanted, allowed, "these roles are not allowed")
    given = one.accelerators_per_replica
    widths = [(1, _width(one))] if one.prefill is None else [(one.decode_replicas, _width(one))]
    _check_degrees(ledger, facts, path, one, one.scheme, size, row)
    if one.prefill is not None:
        role = one.prefill
        widths.append((role.replicas, _width(role)))
        _check_degrees(ledger, facts, f"{path}.prefill", role, one.scheme, size, row)
        for name, count in (("prefill.replicas", role.replicas), ("decode_replicas", one.decode_replicas)):
            counts = choices.unit_replicas
            ledger.check(count in counts, "V-OFFER", f"{path}.{name}", count, counts, "a unit has not so many")
        narrow = sorted(width for _, width in widths if width <= size)
        even = all(large % small == 0 for small, large in pairwise([*narrow, size]))
        ledger.check(even, "V-PACK", f"{path}.prefill", narrow, size, "roles divide the server and each other")
        beside = sum(count * each for count, each in widths if each <= size)
        alone = all(each <= size for _, each in widths) and beside <= size
        filled = size % beside == 0 if alone else beside % size == 0
        ledger.check(filled, "V-PACK", f"{path}.prefill", beside, size, "a unit fills servers without a gap")
    else:
        ledger.same("V-COUNT", f"{path}.decode_replicas", one.decode_replicas, 1, "a replica does both phases")
    width = sum(count * each for count, each in widths)
    ledger.same("V-COUNT", f"{path}.accelerators_per_replica", given, width, "TP x PP x attention DP of all replicas")
    whole = width <= size or group.sourcing in ("buy", "owned")
    sentence = "a replica of several servers needs a network that stands or is bought with them"
    ledger.check(whole, "V-PACK", f"{path}.accelerators_per_replica", width, f"<= {size}", sentence)


def _width(one: Deployment | PrefillRole) -> int:
    return one.tensor_parallel * one.pipeline_parallel * one.attention_data_parallel


def _check_degrees(
    ledger: Ledger, facts: Facts, path: str, one: Deployment | PrefillRole, scheme: str, size: int, row: Accelerator
) -> None:
    """Degrees of one role are allowed and an engine starts them."""
    choices = facts.instance.choices
    stage = one.tensor_parallel * one.attention_data_parallel
    degrees = {
        "tensor_parallel": choices.tensor_parallel,
        "pipeline_parallel": choices.pipeline_parallel,
        "expert_parallel": (1, stage) if choices.expert_parallel is None else choices.expert_parallel,
        "attention_data_parallel": choices.attention_data_parallel,
    }
    for name, allowed in degrees.items():
        degree = getattr(one, name)
        ledger.check(degree in allowed, "V-OFFER", f"{path}.{name}", degree, allowed, "this degree is not allowed")
    inside = 0 < stage <= size
    ledger.check(inside, "V-PACK", f"{path}.tensor_parallel", stage, f"<= {size}", "a group does not fit one server")
    if scheme not in facts.catalog.schemes:
        return
    native = facts.model.native_block_width if facts.model.native_scheme == scheme else 1
    broken = check_layouts(
        facts.model.architecture,
        tensor_parallel=one.tensor_parallel,
        pipeline_parallel=one.pipeline_parallel,
        expert_parallel=one.expert_parallel,
        attention_data_parallel=one.attention_data_parallel,
        scale_up_domain=min(row.scale_up_domain, size),
        accelerators_per_host=min(row.accelerators_per_host, size),
        quantization_block=max(native, facts.catalog.schemes[scheme].block_width),
        context_tokens=facts.instance.workload.longest_context_tokens(),
    )
    reasons = "; ".join(reasons_of(int(broken)))
    ledger.check(
        not reasons, "V-OFFER", f"{path}.tensor_parallel", reasons, "a layout that starts", "no engine starts this"
    )


def _check_scheme(ledger: Ledger, facts: Facts, path: str, one: Deployment, row: Accelerator) -> None:
    choices, catalog = facts.instance.choices, facts.catalog
    known = one.scheme in facts.schemes and one.scheme in catalog.schemes
    allowed = ", ".join(sorted(facts.schemes))
    if ledger.check(known, "V-SCHEME", f"{path}.scheme", one.scheme, allowed, "this scheme is not allowed"):
        support = catalog.schemes[one.scheme].support(row.generation)
        ledger.check(
            support != "none", "V-SCHEME", f"{path}.scheme", support, row.generation, "the accelerator lacks the format"
        )
    known = one.kv_scheme in choices.kv_schemes and one.kv_scheme in catalog.kv_schemes
    if ledger.check(
        known, "V-SCHEME", f"{path}.kv_scheme", one.kv_scheme, choices.kv_schemes, "this KV scheme is not allowed"
    ):
        support = catalog.kv_schemes[one.kv_scheme].support(row.generation)
        path_kv = f"{path}.kv_scheme"
        ledger.check(
            support != "none", "V-SCHEME", path_kv, support, row.generation, "the accelerator lacks the format"
        )
    steps = choices.recovery_steps
    ledger.check(one.recovery in steps, "V-SCHEME", f"{path}.recovery", one.recovery, steps, "this step is not allowed")
    idle = one.recovery == NO_STEP or not is_certain(facts, one.scheme, one.kv_scheme)
    ledger.check(idle, "V-SCHEME", f"{path}.recovery", one.recovery, NO_STEP, "there is no loss to win back")


def _check_power_states(ledger: Ledger, facts: Facts, plan: Plan) -> None:
    """Caps are among those allowed in the hall, none stands elsewhere, and a type has one."""
    allowed = facts.instance.choices.power_cap_fractions
    found: dict[str, float] = {}
    for place, group in enumerate(plan.servers):
        path, cap = f"servers[{place}].power_cap_fraction", group.power_cap_fraction
        if group.sourcing in ("buy", "owned"):
            ledger.check(cap in allowed, "V-OFFER", path, cap, allowed, "this power cap is not allowed")
            same = found.setdefault(group.accelerator, cap)
            ledger.same("V-OFFER", path, cap, same, "servers of a type run in one power state")
        else:
            ledger.same("V-OFFER", path, cap, NO_CAP, "rented servers run as they are")


def _state_name(group: ServerGroup) -> str:
    """What the name of a server type says of the cap."""
    return "" if group.power_cap_fraction == NO_CAP else f"@{group.power_cap_fraction * 100.0:.6g}%"
