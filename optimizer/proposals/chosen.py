"""What a proposal chooses, made definite: servers of each pool, and the replicas that run on them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from optimizer.errors import InputError, Problem
from optimizer.instance.model import Instance
from optimizer.instance.targets import Targets
from optimizer.plan import Deployment, PackedServers, Plan, PrefillRole, ServerGroup
from optimizer.proposals.shape import Group, Proposal
from optimizer.setting import ServerType, Setting
from optimizer.spares import spares_needed

#: Cooling of bought servers where a proposal names none: ordinary air, or cold plates for what is built for liquid.
AIR, LIQUID = "air_containment_econ", "d2c_1p"


@dataclass(frozen=True, slots=True)
class Run:
    """Replicas of one deployment in one pool; ``concurrency`` is None where it is still to be found.

    ``replicas_by_level`` is that of a plan whose servers are paid by level, else empty. Of units of two roles the
    degrees are of ``decode_replicas``, ``prefill_layout`` is that of ``prefill_replicas``.
    """

    place: str
    request_class: str
    server_type: str
    pool: str
    tensor_parallel: int
    pipeline_parallel: int
    expert_parallel: int
    attention_data_parallel: int
    scheme: str
    kv_scheme: str
    recovery: str
    replicas: int
    concurrency: int | None
    prefill_layout: tuple[int, int, int, int] = (0, 0, 0, 0)
    prefill_replicas: int = 0
    decode_replicas: int = 1
    replicas_by_level: tuple[int, ...] = ()

    @property
    def layout(self) -> tuple[int, int, int, int]:
        """Degrees of parallelism."""
        return self.tensor_parallel, self.pipeline_parallel, self.expert_parallel, self.attention_data_parallel

    @property
    def scheme_id(self) -> str:
        """Name of the scheme option."""
        return f"{self.scheme}+{self.kv_scheme}+{self.recovery}"


@dataclass(slots=True)
class Stand:
    """Servers of one pool, spares included; ``servers_by_level`` as of a plan that pays them by level, else empty."""

    accelerator: str
    accelerators_per_server: int
    sourcing: str
    cooling: str | None
    servers: int = 0
    spare: int = 0
    servers_by_level: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """The whole of a proposal. ``packing`` is that of a plan, which says how replicas stand on servers."""

    name: str
    is_owned: bool
    runs: tuple[Run, ...]
    stands: dict[str, Stand]
    packing: tuple[PackedServers, ...] = ()
    told: tuple[str, ...] = ()


def narrowed(instance: Instance, proposal: Proposal | Plan) -> Instance:
    """The instance whose choices are those of the proposal and no others; every limit stays."""
    roles: dict[str, tuple[object, ...]] = {"serving_roles": ("unified",)}
    prefill: tuple[PrefillRole, ...] = ()
    if isinstance(proposal, Plan):
        runs: tuple[Group | Deployment, ...] = proposal.deployments
        roles, prefill = _roles(proposal), tuple(one.prefill for one in proposal.deployments if one.prefill is not None)
        servers: tuple[Group | ServerGroup, ...] = proposal.servers
        usual: set[str] = set()
    else:
        runs = servers = proposal.groups
        usual = {AIR, LIQUID}
    cooling = usual | {one.cooling for one in servers if one.cooling is not None}

    def of(name: str, among: tuple[object, ...] = runs) -> tuple[object, ...]:
        return tuple(sorted({getattr(one, name) for one in among}))

    def degrees(name: str) -> tuple[object, ...]:
        return of(name, (*runs, *prefill))

    choices = instance.choices
    most = max((one.concurrency or 1 for one in runs), default=1)
    return instance.model_copy(
        update={
            "choices": choices.model_copy(
                update={
                    "accelerators": of("accelerator", servers),
                    "tensor_parallel": degrees("tensor_parallel"),
                    "pipeline_parallel": degrees("pipeline_parallel"),
                    "expert_parallel": degrees("expert_parallel"),
                    "attention_data_parallel": degrees("attention_data_parallel"),
                    **roles,
                    "schemes": of("scheme"),
                    "kv_schemes": of("kv_scheme"),
                    "recovery_steps": of("recovery"),
                    "sourcing": of("sourcing", servers),
                    "cooling": tuple(sorted(cooling)) or choices.cooling,
                    "max_concurrency": max(choices.max_concurrency, most),
                }
            )
        }
    )


def _degrees(one: PrefillRole) -> tuple[int, int, int, int]:
    return one.tensor_parallel, one.pipeline_parallel, one.expert_parallel, one.attention_data_parallel


def _roles(plan: Plan) -> dict[str, tuple[object, ...]]:
    """Roles that a plan has, and how many replicas its units have of each."""
    units = [(one.prefill.replicas, one.decode_replicas) for one in plan.deployments if one.prefill is not None]
    roles = [("unified", len(units) < len(plan.deployments)), ("disaggregated", bool(units))]
    return {
        "serving_roles": tuple(name for name, used in roles if used),
        "unit_replicas": tuple(sorted({count for unit in units for count in unit})) or (1,),
    }


def chosen_of_plan(plan: Plan) -> Chosen:
    """What a plan chooses."""
    runs = tuple(
        Run(
            f"deployments[{place}]",
            one.request_class,
            one.server_type,
            one.pool,
            one.tensor_parallel,
            one.pipeline_parallel,
            one.expert_parallel,
            one.attention_data_parallel,
            one.scheme,
            one.kv_scheme,
            one.recovery,
            one.replicas,
            one.concurrency,
            (0, 0, 0, 0) if one.prefill is None else _degrees(one.prefill),
            0 if one.prefill is None else one.prefill.replicas,
            one.decode_replicas,
            one.replicas_by_level,
        )
        for place, one in enumerate(plan.deployments)
    )
    stands = {one.pool: Stand(**{part.name: getattr(one, part.name) for part in fields(Stand)}) for one in plan.servers}
    return Chosen(plan.name, False, runs, stands, plan.packing)


def chosen_of(proposal: Proposal, setting: Setting, file: str) -> Chosen:
    """What a proposal chooses, with what it leaves open filled in by the rules of its fields.

    ``setting`` is that of the narrowed instance. Raises InputError with every contradiction.
    """
    found = _Filling(setting, file)
    for place, group in enumerate(proposal.groups):
        found.add(f"groups[{place}]" if len(proposal.groups) > 1 else "", group)
    found.check_classes()
    if found.problems:
        raise InputError(tuple(found.problems))
    return Chosen(proposal.name, proposal.is_owned, tuple(found.runs), found.stands, (), tuple(found.told))


@dataclass(slots=True)
class _Filling:
    setting: Setting
    file: str
    problems: list[Problem] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    stands: dict[str, Stand] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    def _fault(self, code: str, place: str, found: str, allowed: str, fix: str = "") -> None:
        self.problems.append(Problem(code, self.file, field=place, found=found, allowed=allowed, fix=fix))

    def add(self, place: str, group: Group) -> None:
        """One group: its servers, spares and replicas."""
        types = [one for one in self.setting.server_types if one.accelerator.id == group.accelerator]
        server_type = self._server_type(place, group, types)
        request_class = self._class(place, group)
        if server_type is None or request_class is None:
            return
        servers = self._servers(place, group, server_type)
        pool = self._pool(place, group, server_type)
        width = group.tensor_parallel * group.pipeline_parallel * group.attention_data_parallel
        stage = group.tensor_parallel * group.attention_data_parallel
        size = server_type.accelerators
        if servers is None or pool is None:
            return
        if stage > size:
            allowed = f"must be <= {size}: TP x attention DP stays in one server"
            self._fault("E-PROPOSAL-504", f"{place}.tensor_parallel".lstrip("."), f"{stage}", allowed)
            return
        if width > size and group.sourcing != "buy":
            allowed = f"must be <= {size}: a replica of several servers needs a network that is bought with them"
            self._fault("E-PROPOSAL-504", f"{place}.pipeline_parallel".lstrip("."), f"{width} accelerators", allowed)
            return
        per_replica = 1.0 / (size // width) if width <= size else float(-(-group.pipeline_parallel // (size // stage)))
        counted = self._counts(place, group, size, servers, per_replica)
        if counted is None:
            return
        spare, replicas = counted
        stand = self.stands.setdefault(
            pool, Stand(group.accelerator, size, group.sourcing, self._cooling(group, server_type))
        )
        stand.servers += servers
        stand.spare += spare
        self.runs.append(
            Run(
                place,
                request_class,
                server_type.id,
                pool,
                group.tensor_parallel,
                group.pipeline_parallel,
                group.expert_parallel,
                group.attention_data_parallel,
                group.scheme,
                group.kv_scheme,
                group.recovery,
                replicas,
                group.concurrency,
            )
        )

    def _server_type(self, place: str, group: Group, types: list[ServerType]) -> ServerType | None:
        """The server type meant; of rented ones the largest with a price where no size is stated."""
        term = group.sourcing
        able = [one for one in types if (one.server_usd is not None if term == "buy" else term in one.rent)]
        wanted = group.accelerators_per_server
        fitting = [one for one in able if wanted is None or one.accelerators == wanted]
        if fitting:
            return max(fitting, key=lambda one: one.accelerators)
        sizes = ", ".join(str(one.accelerators) for one in sorted(able, key=lambda one: one.accelerators))
        how = "bought" if term == "buy" else f"rented {term.replace('_', ' ')}"
        if able:
            allowed = f"must be {sizes}: so {group.accelerator} can be {how}"
            self._fault("E-PROPOSAL-503", f"{place}.accelerators_per_server".lstrip("."), str(wanted), allowed)
        else:
            fix = f"State a price in economics.prices.{group.accelerator} of the instance"
            where = f"{place}.sourcing".lstrip(".")
            self._fault("E-PROPOSAL-503", where, f"{group.accelerator} {how}", "must have a price", fix)
        return None

    def _class(self, place: str, group: Group) -> str | None:
        names = [one.name for one in self.setting.classes]
        wanted = group.request_class
        if wanted is None and len(names) == 1:
            return names[0]
        if wanted in names:
            return wanted
        found = "no class" if wanted is None else f'"{wanted}"'
        where = f"{place}.request_class".lstrip(".")
        self._fault("E-PROPOSAL-505", where, found, f"must be one of {', '.join(names)}")
        return None

    def _servers(self, place: str, group: Group, server_type: ServerType) -> int | None:
        if group.servers is not None:
            return group.servers
        assert group.count is not None
        size = server_type.accelerators
        if group.count % size:
            near = sorted({max(1, group.count // size) * size, -(-group.count // size) * size})
            allowed = f"must be a multiple of {size}, the accelerators of one server"
            fix = f"Write {' or '.join(f'{one:,}' for one in near)}"
            self._fault("E-PROPOSAL-501", f"{place}.count".lstrip("."), f"{group.count:,}", allowed, fix)
            return None
        return group.count // size

    def _cooling(self, group: Group, server_type: ServerType) -> str | None:
        if group.sourcing != "buy":
            return None
        needs = server_type.accelerator.liquid_cooling == "required"
        return group.cooling or (LIQUID if needs else AIR)

    def _pool(self, place: str, group: Group, server_type: ServerType) -> str | None:
        from optimizer.setting import can_cool

        cooling = self._cooling(group, server_type)
        if cooling is None:
            # Offers of a size and term stand cheapest first.
            rented = (one for one in self.setting.pools if one.server_type.id == server_type.id)
            return next(
                (one.id for one in rented if one.sourcing == group.sourcing), f"{server_type.id}/{group.sourcing}"
            )
        retrofit = self.setting.instance.choices.liquid_retrofit
        if not can_cool(server_type.accelerator, self.setting.catalog.cooling[cooling], retrofit=retrofit):
            other = {"required": "liquid", "no": "air"}[server_type.accelerator.liquid_cooling]
            where = f"{place}.cooling".lstrip(".")
            self._fault("E-PROPOSAL-503", where, cooling, f"must be {other} cooling: {server_type.id} takes no other")
            return None
        return f"{server_type.id}/buy/{cooling}"

    def _counts(self, place: str, group: Group, size: int, servers: int, per_replica: float) -> tuple[int, int] | None:
        """(spares, replicas); what is not stated follows from what is."""
        targets = self.setting.instance.targets
        bought = group.sourcing == "buy"
        if group.replicas is not None:
            needed = math.ceil(group.replicas * per_replica - 1e-9)
            spare = (
                group.spare_servers if group.spare_servers is not None else (max(0, servers - needed) if bought else 0)
            )
            if needed > servers - spare:
                allowed = f"must fit {servers - spare:,} servers in service; these take {needed:,}"
                where = f"{place}.replicas".lstrip(".")
                self._fault("E-PROPOSAL-502", where, f"{group.replicas:,} replicas", allowed)
                return None
            return spare, group.replicas
        spare = (
            group.spare_servers
            if group.spare_servers is not None
            else (_spares(targets, size, servers) if bought else 0)
        )
        replicas = math.floor((servers - spare) / per_replica + 1e-9)
        if replicas < 1:
            allowed = f"must be at least {math.ceil(per_replica - 1e-9):,} servers in service, for one replica"
            where = f"{place}.{'servers' if group.servers is not None else 'count'}".lstrip(".")
            self._fault("E-PROPOSAL-502", where, f"{servers - spare:,} servers in service", allowed)
            return None
        return spare, replicas

    def check_classes(self) -> None:
        """Every class is served by some group."""
        served = {one.request_class for one in self.runs}
        missing = [one.name for one in self.setting.classes if one.name not in served]
        if missing and not self.problems:
            fix = "Add a group with that request_class"
            self._fault("E-PROPOSAL-505", "", f"no group for {', '.join(missing)}", "must serve every class", fix)


def _spares(targets: Targets, accelerators: int, servers: int) -> int:
    """Spares among bought servers: as many as the targets ask for those that are left in service, if any is left."""
    for in_service in range(math.floor(servers / (1.0 + targets.spare_fraction)) + 1, 0, -1):
        if in_service + spares_needed(targets, accelerators, in_service) <= servers:
            return servers - in_service
    return 0


def outside(instance: Instance, chosen: Chosen, setting: Setting) -> Iterator[tuple[str, str]]:
    """(field, value) of what a proposal uses and the instance's own choices do not hold."""
    choices = instance.choices
    catalog = setting.catalog
    accelerators = (
        {key for key, row in catalog.accelerators.items() if row.availability == "current"}
        if choices.accelerators is None
        else {catalog.resolve_accelerator(one) for one in choices.accelerators}
    )
    cooling = (
        {key for key, row in catalog.cooling.items() if row.offered_by_default}
        if choices.cooling is None
        else set(choices.cooling)
    )
    seen: set[tuple[str, str]] = set()

    def once(field: str, value: object, allowed: bool) -> Iterator[tuple[str, str]]:
        if not allowed and (field, str(value)) not in seen:
            seen.add((field, str(value)))
            yield field, str(value)

    for stand in chosen.stands.values():
        yield from once("choices.accelerators", stand.accelerator, stand.accelerator in accelerators)
        yield from once("choices.sourcing", stand.sourcing, stand.sourcing in {"owned", *choices.sourcing})
        yield from once("choices.cooling", stand.cooling, stand.cooling is None or stand.cooling in cooling)
    for run in chosen.runs:
        stage = run.tensor_parallel * run.attention_data_parallel
        experts = (1, stage) if choices.expert_parallel is None else choices.expert_parallel
        yield from once("choices.tensor_parallel", run.tensor_parallel, run.tensor_parallel in choices.tensor_parallel)
        yield from once(
            "choices.pipeline_parallel", run.pipeline_parallel, run.pipeline_parallel in choices.pipeline_parallel
        )
        yield from once("choices.expert_parallel", run.expert_parallel, run.expert_parallel in experts)
        yield from once(
            "choices.attention_data_parallel",
            run.attention_data_parallel,
            run.attention_data_parallel in choices.attention_data_parallel,
        )
        yield from once("choices.schemes", run.scheme, choices.schemes is None or run.scheme in choices.schemes)
        yield from once("choices.kv_schemes", run.kv_scheme, run.kv_scheme in choices.kv_schemes)
        yield from once("choices.recovery_steps", run.recovery, run.recovery in choices.recovery_steps)
        most = choices.max_concurrency * run.attention_data_parallel
        yield from once("choices.max_concurrency", run.concurrency, run.concurrency is None or run.concurrency <= most)
