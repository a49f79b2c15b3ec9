"""The clash: a smallest set of fields that cannot hold together, by leaving out one after another.

Each field in turn is let go: its limit is moved to where it limits nothing. Where still no plan exists it plays no part
and stays let go; where one does, it is part of the clash. What is left is minimal: no plan exists while all of it
holds, and one exists as soon as any one of it is let go. Every step is decided by the integer program itself;
relaxations would call instances solvable that whole servers do not solve.
"""

from collections.abc import Sequence

from optimizer.advice.attempt import Search
from optimizer.advice.fields import Changes, Movable, Widened

Part = Movable | Widened


def let_go(part: Part) -> Changes:
    """The change after which a part restricts nothing."""
    return {part.path: part.loosest if isinstance(part, Movable) else part.widest}


def together(parts: Sequence[Part]) -> Changes:
    """The changes that let several parts go."""
    return {path: value for one in parts for path, value in let_go(one).items()}


def smallest_clash(search: Search, parts: Sequence[Part], given: Changes) -> tuple[Part, ...] | None:
    """A minimal clash among ``parts``; None where even letting all go gives no plan.

    ``given`` holds throughout. Those that come first are the first to be left out, so what a reader cares for most
    should come last. Raises OutOfTime where an attempt is not decided in time.
    """
    if not search.solvable({**given, **together(parts)}):
        return None
    gone: list[Part] = []
    clash: list[Part] = []
    for one in parts:
        if search.solvable({**given, **together([*gone, one])}):
            clash.append(one)
        else:
            gone.append(one)
    return tuple(clash)


def smallest_correction(search: Search, parts: Sequence[Part], given: Changes) -> tuple[Part, ...] | None:
    """A smallest set of parts that must be let go together; None where letting all go gives no plan.

    Each part is put back in turn where a plan still exists, those that come first first. None of what is left can be
    put back while the others are as they are.
    """
    if not search.solvable({**given, **together(parts)}):
        return None
    left = list(parts)
    for one in parts:
        rest = [other for other in left if other is not one]
        if search.solvable({**given, **together(rest)}):
            left = rest
    return tuple(left)
