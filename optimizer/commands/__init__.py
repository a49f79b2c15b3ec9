"""The command line. Nothing heavy is imported here: every verb loads what it needs when it runs."""

from typing import Final, NoReturn

__all__ = ["main"]

#: New containers after which the collector looks for cycles: a program of a large instance has about as many.
_COLLECT_AFTER: Final = 100_000


def main() -> NoReturn:
    """Run ``optimize`` and leave with its exit code."""
    from optimizer.commands.app import app
    from optimizer.commands.talk import survive_any_terminal

    _be_brief()
    survive_any_terminal()
    app()
    raise AssertionError("the group leaves by itself")


def _be_brief() -> None:
    """Settings of a process that lives for a second: a sixth of its time goes into them otherwise.

    Modules and frozen rows are most of what it allocates and stay to the end, so the collector looks seldom, and not
    at all when everything is thrown away together. No matrix product here is large enough for a second thread, which
    would wait busily beside the solver; who sets the variable is obeyed.
    """
    import atexit
    import gc
    import os

    gc.set_threshold(_COLLECT_AFTER, 20, 100)
    atexit.register(gc.freeze)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
