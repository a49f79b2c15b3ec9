"""What the checker says of a plan: one finding a contradiction, and the ledger that collects them."""

import math
from dataclasses import dataclass, field
from typing import Final

from optimizer.errors import InternalError

#: Codes of findings and what they mean.
CODES: Final = {
    "V-COUNT": "a count is not a whole number, or counts contradict each other",
    "V-OFFER": "something that was not offered is used",
    "V-SCHEME": "a quantization scheme is not allowed, not supported or not prepared",
    "V-PREDICT": "a prediction differs from the performance model",
    "V-LEVEL": "load levels differ from the load of the instance",
    "V-RATE": "a rate does not serve the demand, or exceeds the replicas' capacity",
    "V-PACK": "replicas are not placed, or do not fit the servers they are placed in",
    "V-SPARE": "spare servers differ from what the targets ask",
    "V-RACK": "racks differ from what the servers need",
    "V-COOLING": "a cooling plant differs from the heat it must take, or a server cannot take the option",
    "V-TIER": "a price or network tier is not the one that the size reaches",
    "V-POWER": "power or energy differs",
    "V-LIMIT": "a limit does not hold, or its headroom is misstated",
    "V-PRICE": "a price differs from the catalogue and the planner's own prices",
    "V-SOURCE": "source, date or trust of a price differ from the row it comes from",
    "V-SUM": "a line, a component or a total is not what its parts make",
    "V-UNIT": "a unit differs",
    "V-CATALOG": "a catalogue row differs from the catalogue",
    "V-ORIGIN": "provenance, outcome or runners-up contradict the plan",
}

#: Relative agreement asked of predictions and of plain arithmetic.
EXACT_RELATIVE: Final = 1e-9
#: Relative agreement asked of what comes out of the solver.
SOLVED_RELATIVE: Final = 1e-6
#: Money agrees to half a cent.
CENT: Final = 0.005


@dataclass(frozen=True, slots=True)
class Finding:
    """One contradiction: a code of ``CODES``, where it is in the plan, what stands there and what must."""

    code: str
    path: str
    found: str
    expected: str
    sentence: str

    def __str__(self) -> str:
        """One line for a message."""
        return f"{self.code} {self.path}: found {self.found}, expected {self.expected}; {self.sentence}"


class VerifyError(InternalError):
    """A plan that the checker refuses: it is not written. Carries every finding."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        self.findings = findings
        super().__init__("\n".join(str(one) for one in findings))


def close(found: float, expected: float, relative: float = EXACT_RELATIVE, absolute: float = 1e-12) -> bool:
    """Whether two numbers agree; no number agrees with NaN."""
    return math.isclose(found, expected, rel_tol=relative, abs_tol=absolute)


@dataclass(slots=True)
class Ledger:
    """Collects findings in the order in which they are met."""

    findings: list[Finding] = field(default_factory=list)

    def add(self, code: str, path: str, found: object, expected: object, sentence: str) -> None:
        """Note a contradiction."""
        self.findings.append(Finding(code, path, _shown(found), _shown(expected), sentence))

    def check(self, condition: bool, code: str, path: str, found: object, expected: object, sentence: str) -> bool:
        """Note a contradiction unless ``condition`` holds; returns the condition."""
        if not condition:
            self.add(code, path, found, expected, sentence)
        return condition

    def number(
        self, code: str, path: str, found: float, expected: float, sentence: str, relative: float = EXACT_RELATIVE
    ) -> bool:
        """Note a contradiction unless the numbers agree."""
        return self.check(close(found, expected, relative), code, path, found, expected, sentence)

    def same(self, code: str, path: str, found: object, expected: object, sentence: str) -> bool:
        """Note a contradiction unless the two are equal."""
        return self.check(found == expected, code, path, found, expected, sentence)

    def numbers(
        self,
        code: str,
        path: str,
        found: "dict[str, float]",
        expected: "dict[str, float]",
        sentence: str,
        relative: float = EXACT_RELATIVE,
    ) -> bool:
        """Note a contradiction for each key that is missing, too many, or has another number."""
        fine = self.same(code, path, sorted(found), sorted(expected), f"{sentence} (the names)")
        for key in found.keys() & expected.keys():
            fine &= self.number(code, f"{path}.{key}", found[key], expected[key], sentence, relative)
        return fine


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)
