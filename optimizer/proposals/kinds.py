"""The evaluation of each kind of work; what a kind needs is loaded for it alone."""

from collections.abc import Callable
from typing import Any

from optimizer.errors import InputError, Problem
from optimizer.instance.model import Instance
from optimizer.plan import Plan
from optimizer.proposals.broken import Evaluated
from optimizer.proposals.shape import Proposal
from optimizer.proposals.training_shape import TrainingProposal
from optimizer.solver import Options

Stop = Callable[[], bool]


def evaluated(
    instance: Instance, proposal: Proposal | TrainingProposal | Plan, options: Options, *, file: str = "proposal"
) -> Evaluated:
    """Predict, price and check a proposal or a plan. ``instance`` is resolved.

    Raises InputError where the proposal is for another kind of work, contradicts itself, cannot be had or does not
    start.
    """
    kind = instance.workload.kind
    found = proposal.instance.workload.kind if isinstance(proposal, Plan) else _kind(proposal)
    if kind != found:
        problem = Problem("E-PROPOSAL-400", file, found=f"what is for {found}", allowed=f"must be for {kind}")
        raise InputError((problem,))
    if kind == "training":
        from optimizer.proposals.training_evaluation import evaluated_training

        assert not isinstance(proposal, Proposal)
        return evaluated_training(instance, proposal, options, file=file)
    from optimizer.proposals.evaluation import evaluated as evaluated_serving

    assert not isinstance(proposal, TrainingProposal)
    return evaluated_serving(instance, proposal, options, file=file)


def _kind(proposal: Proposal | TrainingProposal) -> str:
    return "training" if isinstance(proposal, TrainingProposal) else "serving"


def naive(instance: Instance, options: Options, stop: Stop | None) -> tuple[Plan | None, str, str]:
    """(the naive plan or None, the rule it follows, why there is none). ``instance`` is resolved."""
    if instance.workload.kind == "training":
        from optimizer.proposals import training_naive

        return training_naive.naive_plan(instance, options, stop)
    from optimizer.proposals.naive import RULE, naive_plan

    found, reason = naive_plan(instance, options, stop)
    return found, RULE, reason


def schema() -> dict[str, Any]:
    """JSON Schema of a proposal for any kind of work."""
    from optimizer.proposals.shape import schema as of_serving
    from optimizer.proposals.training_shape import training_schema

    serving, training = of_serving(), training_schema()
    return {
        **serving,
        "anyOf": [*serving["anyOf"], *training["anyOf"]],
        "$defs": {**serving["$defs"], **training["$defs"]},
    }


def summary_of(plan: Plan) -> str:
    """What a plan of any kind of work uses, in a few words."""
    if plan.training is not None:
        from optimizer.training.runners_up import summary as of_training

        return of_training(plan)
    from optimizer.answer import summary

    return summary(plan)
