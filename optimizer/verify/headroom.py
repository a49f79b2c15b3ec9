"""Every limit by the checker's own arithmetic: it must hold, and the plan must state it as it is."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from optimizer.limits import LIMITS, limit
from optimizer.plan import Deployment, Headroom, Plan
from optimizer.verify.demand import capacity_requests_per_s
from optimizer.verify.facts import Facts, owned_servers, provider_limit
from optimizer.verify.finding import SOLVED_RELATIVE, Ledger, close
from optimizer.verify.fleet import Fleet, carbon_tonnes, water_m3
from optimizer.verify.load import class_demand

#: Limits of whole numbers: nothing is forgiven.
_WHOLE = frozenset({"racks", "supply", "provider_supply", "inventory", "accelerator_types", "spare_servers"})


@dataclass(frozen=True, slots=True)
class Reach:
    """One limit at one place: what it asks and what the plan reaches."""

    limit: str
    where: str
    needed: float
    reached: float

    @property
    def holds(self) -> bool:
        """Whether the limit is kept, within the solver's tolerance where it is not a count."""
        slack = 0.0 if self.limit in _WHOLE else SOLVED_RELATIVE * abs(self.needed)
        if limit(self.limit).direction == "<=":
            return self.reached <= self.needed + slack
        return self.reached >= self.needed - slack

    @property
    def spare(self) -> float:
        """What is left, as a share of what is needed."""
        gap = self.needed - self.reached if limit(self.limit).direction == "<=" else self.reached - self.needed
        return gap / self.needed if self.needed else gap


def own_reaches(facts: Facts, plan: Plan, fleet: Fleet, capital_usd: float, usd_per_year: float) -> list[Reach]:
    """Every limit that the instance sets, at every place where it applies."""
    reaches = [reach for one in plan.deployments for reach in _of_deployment(facts, one)]
    reaches += _throughput(facts, plan)
    reaches += _site(facts, plan, fleet)
    economics = facts.instance.economics
    if economics.budget_capex_usd is not None:
        reaches.append(Reach("budget_capex_usd", "", economics.budget_capex_usd, capital_usd))
    if economics.budget_usd_per_year is not None:
        reaches.append(Reach("budget_usd_per_year", "", economics.budget_usd_per_year, usd_per_year))
    return reaches


def _of_deployment(facts: Facts, one: Deployment) -> Iterator[Reach]:
    targets, own = facts.instance.targets, facts.classes[one.request_class].targets
    seen = one.prediction
    memory = facts.catalog.accelerators[one.accelerator].memory_gib
    bounds: tuple[tuple[str, float | None, float], ...] = (
        ("vram_gib", targets.vram_fraction * memory, seen.vram_gib),
        ("vram_gib_per_accelerator", targets.vram_gib_per_accelerator, seen.vram_gib),
        ("weights_gib_per_accelerator", targets.weights_gib_per_accelerator, seen.vram_items_gib.get("weights", 0.0)),
        ("tpot_ms", targets.tpot_ms if own.tpot_ms is None else own.tpot_ms, seen.tpot_ms),
        ("ttft_ms", targets.ttft_ms if own.ttft_ms is None else own.ttft_ms, seen.ttft_ms),
        ("latency_ms", targets.latency_ms if own.latency_ms is None else own.latency_ms, seen.latency_ms),
        ("accuracy", targets.accuracy_floor(), seen.accuracy),
        ("nvlink_gb_s", targets.nvlink_fraction * seen.nvlink_link_gb_s, seen.nvlink_gb_s),
        ("nvlink_cap_gb_s", targets.nvlink_gb_s, seen.nvlink_gb_s),
        *_kv_link(facts, one),
    )
    for name, needed, reached in bounds:
        if needed is not None:
            yield Reach(name, one.id, needed, reached)


def _kv_link(facts: Facts, one: Deployment) -> tuple[tuple[str, float | None, float], ...]:
    """Caches on the network, where two roles are allowed; replicas that do both phases send none."""
    if "disaggregated" not in facts.instance.choices.serving_roles:
        return ()
    link = facts.catalog.accelerators[one.accelerator].scale_out_gb_s
    sent = 0.0 if one.prefill is None else one.prefill.link_gb_s
    return (("kv_link_gb_s", facts.instance.targets.kv_link_fraction * link, sent),)


def _throughput(facts: Facts, plan: Plan) -> Iterator[Reach]:
    for name, one_class in facts.classes.items():
        demand = class_demand(one_class)
        members = [one for one in plan.deployments if one.request_class == name]
        reached = sum(
            demand.weight(one.prediction.latency_ms) * capacity_requests_per_s(facts, plan, one) for one in members
        )
        yield Reach("throughput_requests_per_s", name, demand.needed, reached)


def _site(facts: Facts, plan: Plan, fleet: Fleet) -> Iterator[Reach]:
    site, choices = facts.instance.site, facts.instance.choices
    if site.power_kw is not None:
        yield Reach("power_kw", "", site.power_kw, fleet.meter_kw)
    if site.carbon_tonnes_per_year is not None:
        yield Reach("carbon_tonnes_per_year", "", site.carbon_tonnes_per_year, carbon_tonnes(facts, fleet))
    if site.water_m3_per_year is not None:
        yield Reach("water_m3_per_year", "", site.water_m3_per_year, water_m3(fleet))
    if site.racks is not None:
        yield Reach("racks", "", float(site.racks), float(sum(one.racks for one in plan.servers)))
    if site.floor_m2 is not None:
        yield Reach("floor_m2", "", site.floor_m2, sum(one.racks for one in plan.servers) * site.rack_floor_m2)
    for one in fleet.groups.values():
        if one.in_hall:
            # Where no rack takes a server, one alone is too much for it.
            held = min(max(1, one.per_rack), one.group.servers)
            yield Reach("rack_kw", one.group.pool, one.rack_kw, held * one.server_kw)
    for name, most in choices.supply.items():
        key = name if name in facts.catalog.accelerators else facts.catalog.resolve_accelerator(name)
        if fleet.accelerators.get(key, 0):
            yield Reach("supply", key, float(most), float(fleet.accelerators[key]))
    rented = Counter[tuple[str, str]]()
    for one in fleet.groups.values():
        rented[one.group.provider, one.group.accelerator] += one.group.servers * one.group.accelerators_per_server
        owned = owned_servers(facts, one.group.accelerator, one.group.cooling)
        if one.group.sourcing == "owned" and owned is not None:
            yield Reach("inventory", one.group.pool, float(owned.servers), float(one.group.servers))
    for (provider, accelerator), count in rented.items():
        limited = provider_limit(facts, provider, accelerator)
        if limited is not None:
            where = f"{accelerator} from {provider.casefold()}"
            yield Reach("provider_supply", where, float(limited), float(count))
    if choices.max_accelerator_types is not None:
        yield Reach("accelerator_types", "", float(choices.max_accelerator_types), float(len(fleet.accelerators)))
    spares = Counter[str]()
    for group in plan.servers:
        spares[group.server_type] += group.spare
    for name, needed in fleet.spares_needed.items():
        if needed:
            yield Reach("spare_servers", name, float(needed), float(spares[name]))


def check_limits(ledger: Ledger, plan: Plan, reaches: list[Reach]) -> None:
    """Every limit holds, and every headroom row says what the checker found."""
    own: defaultdict[str, list[Reach]] = defaultdict(list)
    for reach in reaches:
        own[reach.limit].append(reach)
        path = f"headroom[{reach.limit}]"
        sentence = limit(reach.limit).sentence
        where = f"{reach.reached!r} at {reach.where}" if reach.where else repr(reach.reached)
        ledger.check(reach.holds, "V-LIMIT", path, where, f"{limit(reach.limit).direction} {reach.needed!r}", sentence)
    for place, row in enumerate(plan.headroom):
        _check_row(ledger, f"headroom[{place}]", row, own)
    for name, places in own.items():
        tightest = min(places, key=lambda one: one.spare)
        stated = [row.spare_fraction for row in plan.headroom if row.limit == name]
        shown = any(close(spare, tightest.spare, SOLVED_RELATIVE, SOLVED_RELATIVE) for spare in stated)
        expected = f"{name}: {tightest.spare!r} at {tightest.where}"
        ledger.check(shown, "V-LIMIT", "headroom", stated, expected, "a limit is stated where it is tightest")


def _check_row(ledger: Ledger, path: str, row: Headroom, own: dict[str, list[Reach]]) -> None:
    known = {one.name for one in LIMITS}
    if not ledger.check(row.limit in known, "V-LIMIT", f"{path}.limit", row.limit, "a limit", "no such limit"):
        return
    rule = limit(row.limit)
    ledger.same("V-UNIT", f"{path}.unit", row.unit, rule.unit, "unit of the limit")
    for name in ("field", "label", "direction"):
        ledger.same("V-LIMIT", f"{path}.{name}", getattr(row, name), getattr(rule, name), "as the limit is declared")
    reaches = own.get(row.limit, [])
    if not ledger.check(bool(reaches), "V-LIMIT", path, row.limit, "no row", "the instance does not set this limit"):
        return
    named = [one for one in reaches if one.where and one.where == row.where] or reaches
    best = min(named, key=lambda one: abs(one.needed - row.needed) + abs(one.reached - row.reached))
    for name in ("needed", "reached"):
        found, wanted = getattr(row, name), getattr(best, name)
        ledger.number("V-LIMIT", f"{path}.{name}", found, wanted, f"{name} of {row.limit}", SOLVED_RELATIVE)
    left = row.needed - row.reached if rule.direction == "<=" else row.reached - row.needed
    spare = left / row.needed if row.needed else left
    sentence = f"what {row.limit} has to spare"
    ledger.number("V-LIMIT", f"{path}.spare_fraction", row.spare_fraction, spare, sentence)
