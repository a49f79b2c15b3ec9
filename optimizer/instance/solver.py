"""How the program is solved."""

from optimizer.instance.fields import Frozen, field


class SolverOptions(Frozen):
    """A closed list: some solver options give wrong answers, so none is passed through."""

    gap: float = field(
        1e-6,
        "Relative gap at which a plan counts as proven.",
        unit="fraction",
        default_source="1e-6: the solver's own 1e-4 is 10,000 USD of 100 million",
        ge=0,
        le=0.5,
    )
    time_limit_s: float = field(
        300.0,
        "Wall time after which the best verified plan is returned.",
        unit="s",
        default_source="assumed",
        gt=0,
        le=1e6,
    )
    threads: int = field(
        1, "Threads of the solver.", unit="threads", default_source="its search is serial", ge=1, le=256
    )
    seed: int = field(0, "Seed of the solver's tie-breaking.", default_source="assumed", ge=0, le=2**31 - 1)
