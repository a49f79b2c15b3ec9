"""Ctrl-C on long verbs: the first one asks the search to stop and keeps what there is, the second one gives up."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from optimizer.commands import talk


@contextmanager
def interruptible(kept: str = "the best verified plan is kept") -> Iterator[Callable[[], bool]]:
    """Whether the planner asked to stop; ``kept`` is what a stop leaves, in words."""
    asked = False

    def on_interrupt(_number: int, _frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        talk.say(f"stopping: {kept}; Ctrl-C again gives up")

    try:
        before = signal.signal(signal.SIGINT, on_interrupt)
    except ValueError:  # not the main thread: whoever called there handles its own interrupts
        yield lambda: False
        return
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
