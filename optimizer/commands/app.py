"""The group ``optimize``: its verbs, its default verb, and what happens to an error that nobody caught."""

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, NamedTuple, NoReturn

import click

from optimizer import __version__
from optimizer.commands import talk
from optimizer.errors import InputError, InternalError, OptimizerError, Problem

DEFAULT_VERB: Final = "solve"

#: Exit code of an interrupt outside a solve, and of a reader that went away, as shells know them.
_INTERRUPTED: Final = 130
_PIPE_CLOSED: Final = 141

#: What a write says when the place it goes to is full or gone.
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})


class Verb(NamedTuple):
    """A verb: the attribute of its module that is the command, and its line in the help."""

    attribute: str
    summary: str


#: The module of a verb is imported when the verb runs; the help must not wait for all of them.
VERBS: Final = MappingProxyType(
    {
        "solve": Verb("solve", "Find the cheapest cluster that meets every limit."),
        "check": Verb("check", "Read an instance; say what would be searched and what was defaulted."),
        "explain": Verb("explain", "Explain an error code, why nothing fits, or why not this choice."),
        "evaluate": Verb("evaluate", "Check a plan that someone else made: every limit, the bill, the distance."),
        "report": Verb("report", "Show or write a plan's bill of materials and bill by year."),
        "compare": Verb("compare", "Compare buying with renting, and where one overtakes the other."),
        "sweep": Verb("sweep", "Solve an instance at many values of its fields."),
        "tornado": Verb("tornado", "Rank the assumptions that move an instance's cost most."),
        "frontier": Verb("frontier", "Find what a tighter limit costs: plans that no other beats."),
        "tipping": Verb("tipping", "Find the values of a field at which the best choice flips."),
        "map": Verb("decision_map", "Draw which choice is best over two fields."),
        "limits-price": Verb("limits_price", "Price each limit by solving with it moved."),
        "robust": Verb("robust", "Choose what to buy when prices, demand or speed are uncertain."),
        "estimate": Verb("estimate", "Predict one deployment: memory, latency, throughput, power."),
        "validate": Verb("validate", "Compare predictions with a table of measurements."),
        "calibrate": Verb("calibrate", "Fit the constants to your own measurements."),
        "equivalents": Verb("equivalents", "Count a fleet in units of another accelerator."),
        "catalog": Verb("catalog", "Show the catalogue's tables."),
        "new": Verb("new", "Print a template to start from."),
        "schema": Verb("schema", "Print the JSON Schema of what goes in and what comes out."),
        "doctor": Verb("doctor", "Show versions and solvers, and test the installation."),
    }
)


def module_of(verb: str) -> str:
    """Module of a verb; ``map`` would hide Python's own word there."""
    return {"map": "decision_map"}.get(verb, verb.replace("-", "_"))


class _Group(click.Group):
    """Loads verbs late, takes ``solve`` as understood, and turns errors into messages and exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is click's
        """Every verb, the usual one first."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - the signature is click's
        """Load a verb."""
        verb = VERBS.get(cmd_name)
        if verb is None:
            return None
        command: click.Command = getattr(import_module(f"optimizer.commands.{module_of(cmd_name)}"), verb.attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """List the verbs without loading them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, verb.summary) for name, verb in VERBS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """``optimize my.json`` is ``optimize solve my.json``, wherever its options stand."""
        own = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        at = 0
        while at < len(args) and args[at] in own:
            at += 1
        if at < len(args) and args[at] not in VERBS:
            args = [*args[:at], DEFAULT_VERB, *args[at:]]
        return super().parse_args(ctx, args)

    def main(  # type: ignore[override]  # click's overloads tell its two modes apart; here there is one
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run and leave with the exit code that the documentation promises."""
        given = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        try:
            # Without its standalone mode click returns what the verb returned, or the code of an early exit.
            result = super().main(given, prog_name or "optimize", **extra)
            code = result if isinstance(result, int) else 0
        except talk.ReaderGone:
            # The interpreter must not complain when it flushes at the end.
            talk.silence_stdout()
            code = _PIPE_CLOSED
        except (click.Abort, KeyboardInterrupt):
            talk.say("interrupted")
            code = _INTERRUPTED
        except click.ClickException as error:
            error.show()
            code = error.exit_code
        except InputError as error:
            talk.problems(error.problems)
            code = error.exit_code
        except InternalError as error:
            code = _our_bug(error, given)
        except OptimizerError as error:
            talk.error(str(error))
            code = error.exit_code
        except OSError as error:
            # A full disk or a device that went away, under an output that the shell redirected: not our bug.
            if error.errno not in _NO_ROOM:
                code = _our_bug(error, given)
            else:
                talk.silence_stdout()
                talk.problems(
                    (
                        Problem(
                            "E-OUTPUT-002",
                            "standard output",
                            found=error.strerror or str(error),
                            allowed="must be a file that can be written",
                        ),
                    )
                )
                code = InputError.exit_code
        except Exception as error:  # noqa: BLE001 - whatever it is, a planner gets words and not a traceback
            code = _our_bug(error, given)
        sys.exit(code)


def _our_bug(error: Exception, args: list[str]) -> int:
    """Own up to a bug: what to send, to whom; the traceback only for those who asked."""
    if "--debug" in args or os.environ.get("OPTIMIZE_DEBUG"):
        import traceback

        talk.say("".join(traceback.format_exception(error)))
    from optimizer.commands.doctor import versions

    talk.error(f"this is our bug, not yours: {type(error).__name__}: {error}")
    talk.say("Please report it with the lines below and the instance, if it may be shown.")
    talk.say("The traceback is shown with OPTIMIZE_DEBUG=1.\n")
    talk.say(f"  command   optimize {' '.join(args)}")
    for name, version in versions():
        talk.say(f"  {name:<9} {version}")
    return InternalError.exit_code


@click.group(
    cls=_Group,
    subcommand_metavar="[VERB] ...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="`optimize my.json` is `optimize solve my.json`. `optimize VERB --help` tells more.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of a bug.")
@click.version_option(__version__, message="optimize %(version)s (gpu-cluster-optimizer)")
def app(debug: bool) -> None:
    """Decides which GPU cluster to buy or rent: the cheapest fleet that provably meets every limit of an instance.

    \b
    Exit codes: 0 proven plan; 1 our bug; 2 wrong usage; 3 bad or missing
    input; 4 nothing fits (diagnosis written); 5 stopped early with a verified
    plan; 6 stopped with none; 7 solver missing or unsound; 8 a gate failed.
    """
