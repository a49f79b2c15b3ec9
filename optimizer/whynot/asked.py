"""What is asked about: ``accelerator=h100-80gb-sxm,scheme=w8a8-fp8`` as choices, and what of it is not allowed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, get_args

from optimizer.errors import Problem, UsageProblems
from optimizer.instance.checking import Found
from optimizer.instance.choices import RecoveryStepName, Sourcing
from optimizer.instance.known import named_row
from optimizer.instance.model import Instance
from optimizer.instance.problems import nearest
from optimizer.pool import Pool
from optimizer.power_states import accelerator_of
from optimizer.setting import Setting

#: Keys that name rows of the catalogue: key -> (table, field of choices).
_ROWS: Final = {
    "accelerator": ("accelerators", "accelerators"),
    "scheme": ("schemes", "schemes"),
    "kv_scheme": ("kv_schemes", "kv_schemes"),
    "cooling": ("cooling", "cooling"),
}
#: Keys with a closed list of words.
_WORDS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "sourcing": ("sourcing", get_args(Sourcing)),
    "recovery": ("recovery_steps", get_args(RecoveryStepName)),
}
#: Keys that take a degree.
_DEGREES: Final = ("tensor_parallel", "pipeline_parallel", "expert_parallel", "attention_data_parallel")
#: Short names that people use.
_SHORT: Final = {
    "tp": "tensor_parallel",
    "pp": "pipeline_parallel",
    "ep": "expert_parallel",
    "dp": "attention_data_parallel",
    "kv": "kv_scheme",
    "accelerators": "count",
}
KEYS: Final = (*_ROWS, *_WORDS, *_DEGREES, "server_type", "count", "servers")
_MOST: Final = 10**7


@dataclass(frozen=True, slots=True)
class Asked:
    """A choice that is asked about.

    ``choices`` are fields of ``instance.choices`` with the members that are forced; ``server_types`` ids of server
    types, empty: any; ``count`` accelerators and ``servers`` of the fleet, spares included, None: as many as it takes.
    """

    text: str
    choices: dict[str, tuple[str | int, ...]]
    server_types: tuple[str, ...] = ()
    count: int | None = None
    servers: int | None = None

    def forced(self, instance: Instance) -> Instance:
        """The instance that may choose nothing else."""
        update: dict[str, Any] = dict(self.choices)
        if self.server_types:
            update.setdefault("accelerators", tuple(dict.fromkeys(map(accelerator_of, self.server_types))))
        return instance.model_copy(update={"choices": instance.choices.model_copy(update=update)})

    def restricted(self, setting: Setting) -> Setting:
        """The setting with the pools that are asked about alone, whatever is owned of others."""
        from dataclasses import replace

        allowed = {
            name: {setting.catalog.resolve_accelerator(str(one)) if name == "accelerators" else one for one in members}
            for name, members in self.choices.items()
        }

        def stays(pool: Pool) -> bool:
            things = {
                "accelerators": pool.server_type.accelerator.id,
                "sourcing": pool.sourcing,
                # Rented servers are cooled elsewhere.
                **({} if pool.cooling is None else {"cooling": pool.cooling.id}),
            }
            of_type = not self.server_types or pool.server_type.id in self.server_types
            return of_type and all(thing in allowed.get(name, {thing}) for name, thing in things.items())

        return replace(setting, pools=tuple(pool for pool in setting.pools if stays(pool)))


def read_asked(text: str, instance: Instance) -> Asked:
    """Read what is asked about: ``KEY=VALUE``, several with commas, several values of one key with ``|``.

    Raises
    ------
    UsageProblems: a key, a name or a number is none; carries every problem.
    """
    problems: list[Problem] = []
    choices: dict[str, tuple[str | int, ...]] = {}
    server_types: tuple[str, ...] = ()
    counts: dict[str, int] = {}

    def fault(code: str, key: str, found: str, allowed: str, fix: str = "") -> None:
        problems.append(Problem(code, "--not", field=key, found=found, allowed=allowed, fix=fix))

    for part in text.split(","):
        key, equals, value = (one.strip() for one in part.partition("="))
        key = _SHORT.get(key, key)
        values = [one.strip() for one in value.split("|") if one.strip()]
        if not equals or not values:
            fault("E-WHYNOT-510", "", f'"{part.strip()}"', "must be KEY=VALUE, as in accelerator=h100-80gb-sxm")
        elif key not in KEYS:
            near = nearest(key, (*KEYS, *_SHORT))
            fix = f"Did you mean {near}?" if near else f"Keys: {', '.join(KEYS)}"
            fault("E-WHYNOT-511", "", f'"{key}"', "must be a key of a choice", fix)
        elif key in _ROWS:
            table, name = _ROWS[key]
            if key == "scheme" and any("+" in one for one in values):
                values = _split_schemes(values, choices)
            found, faults = _rows(table, values, instance)
            problems += [
                Problem(one.code, "--not", field=key, found=one.found, allowed=one.allowed, fix=one.fix)
                for one in faults
            ]
            choices[name] = tuple(found)
        elif key in _WORDS:
            name, words = _WORDS[key]
            for one in values:
                if one not in words:
                    near = nearest(one, words)
                    fault(
                        "E-WHYNOT-512",
                        key,
                        f'"{one}"',
                        f"must be one of {', '.join(words)}",
                        near and f"Did you mean {near}?",
                    )
            choices[name] = tuple(values)
        elif key == "server_type":
            server_types = tuple(_server_type(one, instance) for one in values)
        else:
            numbers = [int(one) for one in values if one.isdigit() and 1 <= int(one) <= _MOST]
            if len(numbers) != len(values) or (key not in _DEGREES and len(numbers) > 1):
                fault("E-WHYNOT-513", key, f'"{value}"', "must be a whole number >= 1")
            elif key in _DEGREES:
                choices[key] = tuple(numbers)
            else:
                counts[key] = numbers[0]
    if problems:
        raise UsageProblems(tuple(problems))
    return Asked(text, choices, server_types, counts.get("count"), counts.get("servers"))


def _server_type(text: str, instance: Instance) -> str:
    """Id of a server type, however its blanks are written: ``h100-80gb-sxm x8``, ``H100 80GB SXM x8``."""
    name, times, size = text.rpartition("x")
    if not times or not size.strip().isdigit():
        return text
    own = tuple(row.id for row in instance.own_rows().accelerators)
    row_id, _ = named_row("accelerators", name.strip(), own, (), "E-WHYNOT-512")
    return f"{row_id or name.strip()} x{size.strip()}"


def _split_schemes(values: list[str], choices: dict[str, tuple[str | int, ...]]) -> list[str]:
    """Parts of names such as ``w8a8-fp8+kv16+qad``: the weights' scheme; cache and step become choices of their own."""
    parts = [one.split("+") for one in values]
    kv = [row[1] for row in parts if len(row) > 1]
    steps = [row[2] for row in parts if len(row) > 2]
    if kv:
        choices["kv_schemes"] = tuple(dict.fromkeys(kv))
    if steps:
        choices["recovery_steps"] = tuple(dict.fromkeys(steps))
    return [row[0] for row in parts]


def _rows(table: str, values: list[str], instance: Instance) -> tuple[list[str], list[Found]]:
    own = tuple(row.id for row in getattr(instance.own_rows(), table, ()))
    found: list[str] = []
    faults: list[Found] = []
    for value in values:
        row_id, wrong = named_row(table, value, own, (), "E-WHYNOT-512")
        if row_id is not None:
            found.append(row_id)
        if wrong is not None:
            faults.append(wrong)
    return found, faults


def left_out(instance: Instance, asked: Asked, setting: Setting) -> Iterator[tuple[str, str]]:
    """(field, value) of what is asked about and the instance's own choices do not hold."""
    choices, catalog = instance.choices, setting.catalog
    held: dict[str, set[str | int]] = {
        "accelerators": {key for key, row in catalog.accelerators.items() if row.availability == "current"},
        "schemes": set(catalog.schemes),
        "cooling": {key for key, row in catalog.cooling.items() if row.offered_by_default},
    }
    if choices.accelerators is not None:
        held["accelerators"] = {catalog.resolve_accelerator(one) for one in choices.accelerators}
    for name, members in asked.forced(instance).choices.model_dump().items():
        if name not in asked.choices and not (name == "accelerators" and asked.server_types):
            continue
        own = getattr(choices, name)
        if own is None and name not in held:
            continue  # expert parallelism: 1, and the whole stage
        allowed = held[name] if own is None or name == "accelerators" else set(own)
        yield from ((f"choices.{name}", str(one)) for one in members or () if one not in allowed)
