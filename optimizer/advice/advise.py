"""Advice for an instance that has no plan: the clash, single changes, wider choices, and changes together.

Every change is verified by solving the changed instance to the asked gap, checking its plan and pricing it. What the
time does not suffice for is left out, and that is said.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from optimizer.advice.attempt import OutOfTime, Search
from optimizer.advice.clash import Part, smallest_clash, smallest_correction, together
from optimizer.advice.fields import Changes, Movable, Widened, movable, widenable
from optimizer.advice.least import label_of, least_change
from optimizer.answer import summary
from optimizer.diagnosis import Cause, ClashField, CombinedChange, Move, SingleChange, Widening
from optimizer.plan import Plan

Kinds = tuple[str, ...]


@dataclass(slots=True)
class Advice:
    """What was found; ``is_complete`` is False where time came first."""

    cause: Cause = "unknown"
    clash: tuple[ClashField, ...] = ()
    changes: tuple[SingleChange, ...] = ()
    widenings: tuple[Widening, ...] = ()
    combined: tuple[CombinedChange, ...] = ()
    is_complete: bool = True


def advise(search: Search, *, widen: bool = True) -> Advice:
    """Everything that leads out of an instance without a plan; ``widen=False`` keeps to its choices."""
    found = Advice()
    try:
        _fill(search, found, widenable(search.instance, search.offer.setting.catalog) if widen else ())
    except OutOfTime:
        found.is_complete = False
    return found


def _fill(search: Search, found: Advice, lists: Sequence[Widened]) -> None:
    # What is cheap to find and closest to what the planner wrote comes first: time may end the search anywhere.
    limits = movable(search.instance)
    by_limits = search.solvable(together(limits))
    if by_limits:
        found.clash = _clash(search, limits, (), by_limits=True)
        changes: list[SingleChange] = []
        for one in limits:
            single = _single(search, one)
            if single is not None:
                changes.append(single)
            found.changes = tuple(changes)
    by_lists = bool(lists) and search.solvable(together(lists))
    by_both = by_limits or by_lists or (bool(lists) and search.solvable(together([*limits, *lists])))
    if by_lists:
        found.cause = "choices"
    elif by_limits:
        found.cause = "limits"
    else:
        found.cause = "limits_and_choices" if by_both else "nothing_helps"
    if not by_both:
        return
    if not by_limits:
        found.clash = _clash(search, limits, lists, by_limits=False)
    if by_lists:
        widenings: list[Widening] = []
        for choice in lists:
            wider = _widened(search, choice)
            if wider is not None:
                widenings.append(wider)
            found.widenings = tuple(widenings)
    combined: list[CombinedChange] = []
    for several in _combined(
        search,
        limits,
        lists,
        of_limits=by_limits and not found.changes,
        of_lists=by_lists and not found.widenings,
        of_both=not by_limits and not by_lists,
    ):
        combined.append(several)
        found.combined = tuple(combined)


def _clash(
    search: Search, limits: Sequence[Movable], lists: Sequence[Widened], *, by_limits: bool
) -> tuple[ClashField, ...]:
    """The clash among the limits, the choices being as they are; among all where limits alone do not tell."""
    # What nobody wrote is left out first, then margins, then limits; demand is what the rest is there for.
    ordered = sorted(limits, key=lambda one: (one.is_demand, one.is_stated, not one.is_margin))
    parts: list[Part] = list(ordered) if by_limits else [*ordered, *lists]
    clash = smallest_clash(search, parts, {}) or ()
    everything: list[Part] = [*limits, *lists]
    order = {one.path: number for number, one in enumerate(everything)}

    def place(part: Part) -> int:
        return order[part.path]

    return tuple(
        ClashField(
            field=one.path,
            value=_number(one.now) if isinstance(one, Movable) else ", ".join(str(name) for name in one.now),
            unit=label_of(one) if isinstance(one, Movable) else "",
            is_stated=one.is_stated if isinstance(one, Movable) else True,
        )
        for one in sorted(clash, key=place)
    )


def _single(search: Search, field: Movable) -> SingleChange | None:
    """The least change of one field that suffices alone, priced."""
    needed = least_change(search, field, {})
    if needed is None or needed == field.now:
        return None
    plan = search.cheapest({field.path: needed})
    if plan is None:
        return None
    unit = label_of(field)
    return SingleChange(
        field=field.path,
        limit=field.limit,
        unit=unit,
        now=field.now,
        needed=needed,
        usd_per_hour=plan.bill.usd_per_hour,
        summary=_move_words(field, needed),
        then=summary(plan),
    )


def _move_words(field: Movable, needed: float) -> str:
    verb = "raise" if needed > field.now else "lower"
    return f"{verb} {field.path} {_number(field.now)} -> {_number(needed)} {label_of(field)}".rstrip()


def _number(value: float) -> str:
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"


def _widened(search: Search, choice: Widened) -> Widening | None:
    """The fewest members to add to one list so that a plan exists, priced."""
    needed = _least_widening(search, choice, {})
    if needed is None:
        return None
    value, plan = needed
    added = tuple(str(one) for one in value if one not in choice.now)
    return Widening(
        field=choice.path,
        added=added,
        usd_per_hour=plan.bill.usd_per_hour,
        summary=f"add {', '.join(added)} to {choice.path}",
        then=summary(plan),
    )


def _least_widening(search: Search, choice: Widened, given: Changes) -> tuple[tuple[str | int, ...], Plan] | None:
    """(members, the plan then): those that the cheapest plan of the widest list uses, less what is not needed."""
    plan = search.cheapest({**given, choice.path: choice.widest})
    if plan is None:
        return None
    used = [one for one in choice.widest if one not in choice.now and one in _used(plan, choice.path)]
    kept: list[str | int] = list(used)
    for one in used:
        rest = [other for other in kept if other != one]
        if rest != kept and search.solvable({**given, choice.path: (*choice.now, *rest)}):
            kept = rest
    value = (*choice.now, *kept)
    then = plan if kept == used else search.cheapest({**given, choice.path: value})
    return None if then is None else (value, then)


def _used(plan: Plan, path: str) -> set[str | int]:
    """Members of a list of choices that a plan uses."""
    name = path.removeprefix("choices.")
    of_servers = {"accelerators": "accelerator", "cooling": "cooling", "sourcing": "sourcing"}
    of_runs = {"schemes": "scheme", "kv_schemes": "kv_scheme", "recovery_steps": "recovery"}
    if name in of_servers:
        return {getattr(one, of_servers[name]) for one in plan.servers}
    return {getattr(one, of_runs.get(name, name)) for one in plan.deployments}


def _combined(
    search: Search,
    limits: Sequence[Movable],
    lists: Sequence[Widened],
    *,
    of_limits: bool,
    of_lists: bool,
    of_both: bool,
) -> Iterable[CombinedChange]:
    """Changes that suffice together where none does alone: of limits, of choices, or of both.

    Of the fields that must move together each is moved by the least that suffices, one after another, those not yet
    settled being let go: so none of them could be moved by less while the others are as they are said.
    """
    # Put back first what a planner least wants to give up: the work, then margins of safety.
    ordered = sorted(limits, key=lambda one: (not one.is_demand, not one.is_margin, not one.is_stated))
    if of_limits:
        found = _settled(search, ordered)
        if found is not None:
            yield found
    if of_lists:
        found = _settled(search, lists)
        if found is not None:
            yield found
    if of_both:
        found = _settled(search, [*ordered, *lists])
        if found is not None:
            yield found


def _settled(search: Search, parts: Sequence[Part]) -> CombinedChange | None:
    needed = smallest_correction(search, parts, {})
    if needed is None:
        return None
    changes: Changes = {}
    moves: list[Move] = []
    for place, one in enumerate(needed):
        open_ones = together(needed[place + 1 :])
        if isinstance(one, Movable):
            value = least_change(search, one, {**open_ones, **changes})
            if value is None:
                return None
            changes[one.path] = value
            moves.append(
                Move(
                    field=one.path,
                    unit=label_of(one),
                    now=one.now,
                    needed=value,
                    added=(),
                    summary=_move_words(one, value),
                )
            )
        else:
            wider = _least_widening(search, one, {**open_ones, **changes})
            if wider is None:
                return None
            members = wider[0]
            changes[one.path] = members
            added = tuple(str(name) for name in members if name not in one.now)
            text = f"add {', '.join(added)} to {one.path}"
            moves.append(Move(field=one.path, unit="", now=None, needed=None, added=added, summary=text))
    plan = search.cheapest(changes)
    if plan is None:
        return None
    return CombinedChange(
        moves=tuple(moves),
        usd_per_hour=plan.bill.usd_per_hour,
        summary="; ".join(move.summary for move in moves),
        then=summary(plan),
    )
