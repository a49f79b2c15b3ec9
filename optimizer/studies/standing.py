"""How far something long is: what a study tells whoever started it, so that a screen can show it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Standing:
    """Steps done of those asked for (None: unknown), the best so far in words, and how far from the best it may be.

    ``gap_fraction`` is the largest relative gap of what was solved; None where nothing is known of it.
    """

    done: int
    total: int | None
    best: str = ""
    gap_fraction: float | None = None


#: Told of every standing, perhaps a thousand times a second: it must be quick.
Tell = Callable[[Standing], None]
