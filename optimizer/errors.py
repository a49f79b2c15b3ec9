"""Every error that the product raises on purpose, and every stable code.

::

    OptimizerError                exit code
    ├── InputError                3   the instance, or a file that it names, is bad or missing
    │   └── UsageProblems         2   the same of what was asked beside the instance: paths, values, ranges
    ├── StoppedWithoutPlan        6   the time limit or an interrupt came before any verified plan
    ├── SolverError               7   the solver is missing, failed or is numerically unsound
    ├── GateFailed                8   a plan was found, but a gate that was asked for does not hold
    └── InternalError             1   our own bug

An instance that no cluster can satisfy (exit code 4) and a plan that is not proven (5) are answers, not errors.
This module imports nothing of ours and nothing heavy: an input error has to be on the screen at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple

__all__ = [
    "CODES",
    "Code",
    "GateFailed",
    "InputError",
    "InternalError",
    "OptimizerError",
    "Problem",
    "SolverError",
    "StoppedWithoutPlan",
    "UsageProblems",
    "printable",
]


def printable(text: str) -> str:
    """Make text safe for a terminal: control characters, and halves of surrogate pairs, become escapes."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape", "surrogatepass").decode() for one in text)


@dataclass(frozen=True)
class Problem:
    """One fault of the input: where it is, what was found, what is allowed, what to do."""

    code: str
    file: str
    line: int = 0
    column: int = 0
    field: str = ""
    found: str = ""
    allowed: str = ""
    fix: str = ""

    def __str__(self) -> str:
        """One line: ``error[E-TARGETS-003] my.json:14:22 targets.tpot_ms: found -5; must be > 0 ms``."""
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        where = " ".join(part for part in (place, self.field) if part)
        what = "; ".join(part for part in (f"found {self.found}" if self.found else "", self.allowed) if part)
        text = f"error[{self.code}] {where}: {what}"
        return printable(f"{text}. {self.fix}" if self.fix else text)


class OptimizerError(Exception):
    """Base of every error raised on purpose; carries the exit code of the command line."""

    exit_code: ClassVar[int] = 1


class InputError(OptimizerError):
    """The instance, or a file that it names, is bad or missing. Carries every problem, in the order of the file."""

    exit_code: ClassVar[int] = 3

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(one) for one in problems))


class UsageProblems(InputError):  # noqa: N818 - it carries problems, as its base does
    """What was asked beside the instance is bad (a path, a range, a value). Carries every problem."""

    exit_code: ClassVar[int] = 2


class StoppedWithoutPlan(OptimizerError):  # noqa: N818 - it reports how a run ended
    """The time limit or an interrupt came before any verified plan."""

    exit_code: ClassVar[int] = 6


class SolverError(OptimizerError):
    """The solver is missing, failed, or answered something that cannot be trusted."""

    exit_code: ClassVar[int] = 7


class GateFailed(OptimizerError):  # noqa: N818 - it reports how a run ended
    """A plan was found, but a gate that was asked for does not hold."""

    exit_code: ClassVar[int] = 8


class InternalError(OptimizerError):
    """Our own bug: something that the program promises never to do."""

    exit_code: ClassVar[int] = 1


class Code(NamedTuple):
    """A stable code: what it means and what to do about it."""

    code: str
    meaning: str
    remedy: str


#: Sections of an instance: section of the code -> its place in the file, and the numbers of ``FAULTS`` it can have.
SECTIONS: Final[Mapping[str, tuple[str, tuple[int, ...]]]] = MappingProxyType(
    {
        "INSTANCE": ("the top level of the instance, its sites and links", (1, 2, 3, 4, 5, 6, 7, 8)),
        "WORKLOAD": ("`workload`", (1, 2, 3, 4, 5, 6, 7, 8, 9)),
        "TARGETS": ("`targets`", (1, 2, 3)),
        "CHOICES": ("`choices`", (1, 2, 3, 5, 6, 7, 8)),
        "SITE": ("`site`", (1, 2, 3, 7)),
        "ECONOMICS": ("`economics`", (1, 2, 3, 4, 5, 6, 7, 8)),
        "INVENTORY": ("`inventory`", (1, 2, 3, 4, 6, 7)),
        "CATALOG": ("`catalog`, or the file that it names", (1, 2, 3, 4, 5, 7, 8, 9)),
        "UNCERTAINTY": ("`uncertainty`", (1, 2, 3, 4, 5, 6)),
        "SOLVER": ("`solver`", (1, 2, 3)),
        "PROPOSAL": ("a proposal", (1, 2, 3, 4, 5, 6, 7)),
    }
)

#: Faults that any section can have: number -> (meaning, remedy).
FAULTS: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {
        1: ("A key is not known there.", "Use the nearest name that the message gives, or remove the key."),
        2: (
            "A value has the wrong JSON type.",
            "Write the type that the message names; numbers go without quotes and unit.",
        ),
        3: (
            "A number is outside its range.",
            "Write a number in the range that the message names, in the unit of the key.",
        ),
        4: ("A required key is missing.", "Add the key."),
        5: ("A value is not one of the allowed words.", "Write one of the words that the message lists."),
        6: (
            "A list or text is empty, too short or too long.",
            "Leave the key out to get its default, or correct its length.",
        ),
        7: (
            "A name is not in the catalogue.",
            "Use the nearest name that the message gives, or add an own row in `catalog`.",
        ),
        8: ("A list names the same thing twice.", "Remove the repetition."),
        9: ("A value contradicts others beside it, or has not the form asked for.", "Correct what the message says."),
    }
)

_OWN: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "E-FILE-001",
        "The file does not exist.",
        "Check the path; a path inside an instance is relative to the instance file.",
    ),
    ("E-FILE-002", "The path is a directory or another thing that is no file.", "Give the path of a JSON file."),
    ("E-FILE-003", "The file cannot be read.", "Check its permissions."),
    ("E-FILE-004", "The file is larger than any instance.", "Check that it is the right file."),
    ("E-FILE-005", "The file is not UTF-8 text.", "Save it as UTF-8."),
    ("E-FILE-006", "The file is empty.", "Start from a template: `optimize new`."),
    ("E-FILE-007", "The file is not JSON.", "Correct the place that the message names."),
    ("E-FILE-008", "Brackets are nested deeper than any instance nests them.", "Check that it is the right file."),
    ("E-FILE-009", "The file holds more values than any instance.", "Check that it is the right file."),
    ("E-FILE-010", "A key is written twice in one object.", "Remove one of the two."),
    (
        "E-FILE-011",
        "A number is not finite, or too long to be a figure.",
        "Write a finite number; leave the key out for no limit.",
    ),
    ("E-FILE-012", "The top level is not an object.", "Put the whole instance in braces."),
    ("E-FILE-013", "A text holds half of a Unicode surrogate pair.", "Remove or complete the escape."),
    (
        "E-INSTANCE-020",
        "The file is valid for its schema, but the program's own check refuses it.",
        "Correct what the message says.",
    ),
    ("E-WORKLOAD-020", "Demand is not given in exactly one unit.", "Keep one of the three units."),
    ("E-WORKLOAD-021", "A think time stands without concurrent users.", "Give both or neither."),
    ("E-WORKLOAD-022", "The load below the peak is described twice.", "Keep the mean or the profile."),
    (
        "E-WORKLOAD-023",
        "A load profile has neither 24 nor 168 values.",
        "Give one value for each hour of a day or of a week.",
    ),
    ("E-WORKLOAD-024", "A load profile is zero all the time.", "At least one hour must carry load."),
    (
        "E-WORKLOAD-025",
        "Request classes stand beside a single request and demand, or neither stands.",
        "Keep one of the two forms.",
    ),
    (
        "E-WORKLOAD-026",
        "The longest request is shorter than the mean request.",
        "Raise max_context_tokens or leave it out.",
    ),
    (
        "E-WORKLOAD-030",
        "The model's config.json does not exist.",
        "Check the path; it is relative to the instance file.",
    ),
    ("E-WORKLOAD-031", "The model's config.json cannot be read.", "Give the path of a Hugging Face config.json."),
    (
        "E-WORKLOAD-032",
        "The model's config.json describes a model that is not understood.",
        "Give the architecture inline.",
    ),
    (
        "E-WORKLOAD-700",
        "A training job has no size or two, or no amount or two.",
        "Give each job, or the workload around it, exactly one of model and parameters_b, and one of tokens and flop.",
    ),
    (
        "E-WORKLOAD-701",
        "A training job may start no earlier than it must be done.",
        "Move earliest_start_day or the deadline.",
    ),
    (
        "E-WORKLOAD-702",
        "Something stands beside a training run that its plan does not read.",
        "Remove it: owned servers, spot instances and the supply of single providers are for serving.",
    ),
    (
        "E-TARGETS-700",
        "A target belongs to the other kind of workload.",
        "Remove it, or state the kind of workload it belongs to.",
    ),
    (
        "E-ECONOMICS-700",
        "A budget belongs to the other kind of workload.",
        "Serving has budget_usd_per_year, training budget_usd for all jobs.",
    ),
    (
        "E-SITE-700",
        "Sites are given twice, or for serving; or a yearly cap or a choice of halls stands beside a training run.",
        "Keep `site`, or `sites` for training; remove the cap; state which hall.",
    ),
    ("E-SITE-701", "A link between sites names what is no site.", "Use the names of `sites`, two different ones."),
    (
        "E-TARGETS-020",
        "One half of an absolute accuracy floor is missing.",
        "Give the floor and the baseline, or neither.",
    ),
    ("E-TARGETS-021", "The accuracy floor is given twice.", "Keep the relative or the absolute floor."),
    ("E-TARGETS-022", "The accuracy floor is above the unquantized model.", "Lower the floor."),
    ("E-TARGETS-023", "The first token may come later than the whole answer.", "Lower ttft_ms or raise latency_ms."),
    ("E-TARGETS-024", "Weights may take more memory than everything together.", "Lower one or raise the other."),
    ("E-SITE-100", "A tariff has no energy price, or two.", "Give one price, or a value for each hour."),
    ("E-SITE-101", "Hourly energy prices have a wrong length.", "Give 24 values for a day or 168 for a week."),
    ("E-SITE-102", "A tariff has periods beside hourly prices.", "Keep one of the two forms."),
    ("E-SITE-103", "Electricity has one price for all charges and a tariff.", "Keep one of the two."),
    (
        "E-SITE-110",
        "Own weather is incomplete, or stated twice.",
        "Give bins with their hours, or every hour of a year.",
    ),
    ("E-SITE-111", "Own weather contradicts itself.", "Follow the message: rising bins, hours for each, a whole year."),
    ("E-SITE-104", "No price of electricity is known for the region.", "State a price or a tariff."),
    (
        "E-CHOICES-020",
        "No chosen accelerator can be had in any chosen way.",
        "Add a price, an accelerator or a way of sourcing.",
    ),
    (
        "E-ECONOMICS-100",
        "Management servers have a count without a price, or a price without a count.",
        "Give both, or neither.",
    ),
    (
        "E-CHOICES-200",
        "Spot servers are allowed without their availability.",
        "State spot_availability_fraction, or leave spot out.",
    ),
    (
        "E-INVENTORY-200",
        "Two rows of the inventory describe the same servers.",
        "Add up the counts of servers that stand in the same cooling.",
    ),
    (
        "E-INVENTORY-201",
        "The owned server cannot be cooled by the option it is said to stand in.",
        "Name the cooling option that it stands in.",
    ),
    (
        "E-INVENTORY-202",
        "Neither upkeep nor the price of a new server is known for owned servers, or one of them is needed.",
        "State upkeep_usd_per_server_year, a life that lasts the horizon, or economics.prices.ID.server_usd.",
    ),
    (
        "E-ECONOMICS-020",
        "Quantity discounts are out of order.",
        "Sort them: counts must rise, discounts must not fall.",
    ),
    (
        "E-UNCERTAINTY-401",
        "A distribution lacks one of its parameters, or has one of another distribution.",
        "Give the parameters that the message lists.",
    ),
    ("E-UNCERTAINTY-402", "Least, likeliest and largest value are out of order.", "Write low < high, mode between."),
    ("E-UNCERTAINTY-403", "Probabilities do not belong to the values.", "Give one for each value; they sum to 1."),
    ("E-UNCERTAINTY-404", "A field is uncertain twice.", "Keep one distribution a field."),
    (
        "E-UNCERTAINTY-405",
        "A correlation is not between two uncertain fields, or correlations contradict each other.",
        "Name two uncertain fields, each pair once; move correlations towards 0.",
    ),
    (
        "E-UNCERTAINTY-406",
        "An uncertain field is no number of the instance, or has no value now to be multiplied.",
        "Use the nearest name that the message gives, or state the field.",
    ),
    (
        "E-UNCERTAINTY-407",
        "A scenario that was drawn is no valid instance.",
        "Narrow the distribution, or cut it off with low and high.",
    ),
    ("E-UNCERTAINTY-408", "Nothing is uncertain.", "Name fields with their distributions in `uncertainty.fields`."),
    ("E-UNCERTAINTY-409", "Hardly any scenario has a plan.", "Narrow the distributions, or loosen the limits."),
    (
        "E-OUTPUT-001",
        "The output file exists and is not a plan of this instance.",
        "Choose another path, or pass --force.",
    ),
    ("E-OUTPUT-002", "The output file cannot be written.", "Check the folder and its permissions."),
    ("E-STUDY-401", "A range is no rising range of numbers.", "Write PATH=LOW:HIGH, as in targets.tpot_ms=100:300."),
    ("E-STUDY-402", "A resolution is out of proportion to its range.", "Write one within the bounds of the message."),
    ("E-STUDY-405", "A study does not know this kind of work.", "Use a study that does; docs/studies.md says which."),
    ("E-STUDY-403", "What is traded does not begin with cost and a limit.", "Write cost,targets.tpot_ms."),
    ("E-STUDY-404", "A field cannot be traded against cost.", "Name a limit of the message, each once."),
    (
        "E-SWEEP-301",
        "What is varied is not written as PATH=VALUES.",
        "Write a field and its values, as in targets.tpot_ms=100:300:21.",
    ),
    ("E-SWEEP-302", "No instance has the field that is varied.", "Use the nearest name that the message gives."),
    (
        "E-SWEEP-303",
        "The values of a field cannot be read.",
        "Write 100:300:21, -30%..30%:7, x0.5..x2:7 or a,b,c; `optimize sweep --help` lists the forms.",
    ),
    (
        "E-SWEEP-304",
        "A change in percent or a multiple is asked of a field that has no number now.",
        "Write values, or state the field in the instance.",
    ),
    ("E-SWEEP-305", "Linked fields have different counts of values.", "Give each the same count, or drop --link."),
    ("E-SWEEP-306", "There are more cases than a sweep takes.", "Ask for fewer values."),
    (
        "E-SWEEP-308",
        "The Dask scheduler cannot be used.",
        "Check its address, and that the extra `distributed` is installed.",
    ),
    (
        "E-SWEEP-309",
        "Another sweep that is not finished lies beside the output file.",
        "Finish that one with its own command, choose another output, or pass --force.",
    ),
    ("E-SWEEP-310", "Parquet cannot be written.", "Install the extra `parquet`, or write .csv or .json."),
    ("E-SWEEP-307", "A field is varied twice.", "Name it once."),
    (
        "E-PROPOSAL-500",
        "The servers of a group are not counted in exactly one way.",
        "Give count (accelerators) or servers.",
    ),
    (
        "E-PROPOSAL-501",
        "The accelerators of a group do not make whole servers.",
        "Give a multiple of what one server holds, or accelerators_per_server.",
    ),
    (
        "E-PROPOSAL-502",
        "Counts of a group contradict each other.",
        "Make servers, spares and replicas fit together.",
    ),
    (
        "E-PROPOSAL-503",
        "The servers of a group cannot be had or cooled as it says.",
        "Choose another way, or state a price in economics.prices of the instance.",
    ),
    ("E-PROPOSAL-504", "No engine starts the layout of a group.", "Choose degrees that the message allows."),
    (
        "E-PROPOSAL-505",
        "The classes of requests and the groups do not go together.",
        "Name a class of the instance in each group, and serve each class by one.",
    ),
    (
        "E-PROPOSAL-506",
        "Two groups describe the same deployment differently.",
        "Give them the same requests in flight.",
    ),
    (
        "E-PROPOSAL-400",
        "A plan is held against an instance of another kind of work.",
        "Evaluate a plan for training against an instance that trains, and one for serving against one that serves.",
    ),
    (
        "E-PROPOSAL-401",
        "The layout of a job does not suit its model, its batch or its servers.",
        "Choose degrees that the message allows, or leave the degree out: then the quickest one is taken.",
    ),
    (
        "E-PROPOSAL-402",
        "A job of a proposal starts on a day on which it cannot.",
        "Choose a day that the message allows, or leave start_day out.",
    ),
    ("E-PROPOSAL-507", "The plan in place of a proposal cannot be read.", "Solve its instance again."),
    (
        "E-WHYNOT-510",
        "What is asked about is not written as KEY=VALUE.",
        "Write accelerator=h100-80gb-sxm, or give the file of a proposal.",
    ),
    (
        "E-WHYNOT-511",
        "A key of what is asked about is not known.",
        "Use the nearest name that the message gives; `optimize explain --help` lists the keys.",
    ),
    ("E-WHYNOT-512", "A name in what is asked about is not known.", "Use the nearest name that the message gives."),
    ("E-WHYNOT-513", "A number in what is asked about is none.", "Write one whole number from 1 on."),
    (
        "E-TABLE-001",
        "A table of measurements, a calibration, or a name on the command line of a prediction cannot be used.",
        "Correct what the message names; `optimize validate --help` lists the columns.",
    ),
)


def _all_codes() -> Mapping[str, Code]:
    codes = [Code(*row) for row in _OWN]
    for section, (place, numbers) in SECTIONS.items():
        for number in numbers:
            meaning, remedy = FAULTS[number]
            codes.append(Code(f"E-{section}-{number:03d}", f"In {place}: {meaning[0].lower()}{meaning[1:]}", remedy))
    return MappingProxyType({one.code: one for one in sorted(codes, key=lambda one: one.code)})


#: Every stable code. A code is never given another meaning; a code out of use stays reserved.
CODES: Final[Mapping[str, Code]] = _all_codes()
