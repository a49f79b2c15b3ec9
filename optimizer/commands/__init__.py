"""The command line. Nothing heavy is imported here: every verb loads what it needs when it runs."""

from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run ``optimize`` and leave with its exit code."""
    from optimizer.commands.app import app
    from optimizer.commands.talk import survive_any_terminal

    survive_any_terminal()
    app()
    raise AssertionError("the group leaves by itself")
