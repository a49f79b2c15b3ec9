"""Whether a layout of a plan is one that the instance allows and that suits the model."""

import math
from typing import Final

from optimizer.instance.training import TrainingLayouts
from optimizer.plan_training import TrainingLayout
from optimizer.verify.finding import Ledger
from optimizer.verify.training_prediction import OwnJob

#: Degrees that an instance may limit by name.
_DEGREES: Final = (
    "tensor_parallel",
    "pipeline_parallel",
    "virtual_stages",
    "context_parallel",
    "expert_parallel",
    "micro_batch",
)


def whole_share(lay: TrainingLayout) -> int:
    """Accelerators of the least share of a run that a site holds whole.

    A replica, or as many as make a group of ranks that holds every expert once: neither spans sites.
    """
    ranks = lay.tensor_parallel * lay.context_parallel
    return ranks * lay.pipeline_parallel * (lay.expert_parallel // math.gcd(lay.expert_parallel, ranks))


def check_layout(ledger: Ledger, path: str, lay: TrainingLayout, limits: TrainingLayouts, own: OwnJob) -> None:
    """Degrees that the instance allows, and that divide what they share out."""
    for name in _DEGREES:
        allowed, degree = getattr(limits, name), getattr(lay, name)
        ledger.check(
            allowed is None or degree in allowed or degree == 1,
            "V-OFFER",
            f"{path}.{name}",
            degree,
            allowed,
            "this degree is not allowed",
        )
    ledger.check(
        lay.recompute in limits.recompute,
        "V-OFFER",
        f"{path}.recompute",
        lay.recompute,
        limits.recompute,
        "this recomputation is not allowed",
    )
    ledger.check(
        lay.zero_stage in limits.zero_stages,
        "V-OFFER",
        f"{path}.zero_stage",
        lay.zero_stage,
        limits.zero_stages,
        "this sharding is not allowed",
    )
    model = own.model
    fine = model.attention_heads % lay.tensor_parallel == 0 and (model.experts or 1) % lay.expert_parallel == 0
    stage = -(-model.layers // lay.pipeline_parallel)
    fine &= (lay.pipeline_parallel - 1) * stage < model.layers
    fine &= lay.virtual_stages == 1 or model.layers % (lay.pipeline_parallel * lay.virtual_stages) == 0
    fine &= lay.data_parallel * lay.micro_batch <= max(round(own.batch / own.sequence), 1) or lay.data_parallel == 1
    # Ranks of a stage fall into whole groups that hold every expert once.
    fine &= lay.data_parallel * lay.tensor_parallel * lay.context_parallel % lay.expert_parallel == 0
    ledger.check(fine, "V-OFFER", path, lay, "degrees that divide", "the layout does not suit the model")
