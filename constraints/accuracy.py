r"""Accuracy: the quantized model keeps enough of the unquantized model's score.

    quantile_p(recovery of scheme, KV scheme and recovery step) >= accuracy floor

Recovery is a distribution over models (t distribution over the published ones); p is ``targets.accuracy_confidence``.
At 0.5 the expected model must keep the floor, at 0.9 nine models of ten. Binds below 8 bits, and at 8 bits when the
confidence is high; a recovery step (fine-tuning after quantization) can be bought to close a part of the loss.

What a scheme costs once (calibration, verification, fine-tuning) is paid when it is used:

    Scheme_Used[d,q]       Replicas[d,q] <= bound_d SchemePrepared[s]
    Scheme_Routed[s,b,l]   share of a class's demand served in scheme s at level l <= SchemePrepared[s]

Source: published accuracy of quantized models, by scheme (docs/method.md section 7).
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from optimizer.program_data import ProgramData
    from optimizer.screen import Bounds, Seen

LIMITS: Final = ("accuracy",)


def admits(seen: "Seen", bounds: "Bounds") -> "dict[str, NDArray[np.bool_]]":
    """For the one limit, whether each row keeps it."""
    return {"accuracy": seen.accuracy >= bounds.accuracy}


def add(model: Any, data: "ProgramData") -> None:
    """Variables and rows of schemes that cost something to prepare."""
    from pyomo.core import Binary, Constraint, Var

    priced = sorted({key[1] for key in data.yearly_by_quantity if key[0] == "SchemePrepared"})
    if not priced:
        return
    model.SchemePrepared = Var(priced, domain=Binary, doc="a scheme is calibrated, verified and recovered once")
    using = [(d, q) for d, q in data.pairs if data.deployments[d].scheme in priced]

    def used(m: Any, d: str, q: str, level: str) -> Any:
        replicas = data.replicas(m, d, q, level)
        return replicas - data.max_replicas[d] * m.SchemePrepared[data.deployments[d].scheme] <= 0.0

    counted = [(d, q, level) for d, q in using for level in data.levels_of(q)]
    model.Scheme_Used = Constraint(counted, rule=used, doc="replicas need their scheme")
    running = {name: level for name, level in data.billed_levels.items() if level.fraction > 0.0}

    def routed(m: Any, s: str, b: int, name: str) -> Any:
        rates = (
            (data.deployments[d].demand_weight / data.demand[b] / running[name].fraction, m.Rate[d, q, name])
            for d, q in using
            if data.deployments[d].scheme == s and data.deployments[d].class_index == b
        )
        return sum(weight * rate for weight, rate in rates) - m.SchemePrepared[s] <= 0.0

    served = {(data.deployments[d].scheme, data.deployments[d].class_index) for d, _ in using}
    # Implied by the rows above for whole plans; tight for fractional ones: the share of demand that a scheme serves.
    routes = [(s, b, name) for s, b in sorted(served) for name in running]
    model.Scheme_Routed = Constraint(routes, rule=routed, doc="demand is served in prepared schemes")
