r"""Training: a job's layout fits memory and links, makes the use asked for of its accelerators, and is done in time.

    memory of the fullest stage <= vram_fraction x memory    traffic over a step <= nvlink_fraction, scale_out_fraction
    model FLOP of a step / peak >= mfu_floor_fraction       start + steps x step x production / goodput <= deadline
    accelerators <= most_accelerators                        cost of all jobs <= budget_usd

A layout's limits do not depend on the fleet, so ``optimizer.training.evaluate`` checks them for all layouts at once and
only those that keep them become choices. The deadline binds nearly always: fewer accelerators are cheaper.

Source of the physics: step-time model, memory and goodput of docs/training.md.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from optimizer.training.evaluate import Bounds, Seen
    from optimizer.training.program import TrainingProgram

LIMITS: Final = (
    "training_vram_gib",
    "training_vram_cap_gib",
    "training_nvlink",
    "training_nvlink_cap_gb_s",
    "scale_out_fraction",
    "mfu_fraction",
    "deadline_days",
    "accelerator_count",
    "budget_usd",
)


def admits(seen: "Seen", bounds: "Bounds") -> "dict[str, NDArray[np.bool_]]":
    """For each limit of a layout, whether each row keeps it."""
    return {
        "training_vram_gib": seen.memory_gib <= bounds.memory_gib,
        "training_vram_cap_gib": seen.memory_gib <= bounds.memory_cap_gib,
        "training_nvlink": seen.scale_up_fraction <= bounds.scale_up_fraction,
        "training_nvlink_cap_gb_s": seen.scale_up_gb_s <= bounds.scale_up_cap_gb_s,
        "scale_out_fraction": seen.scale_out_fraction <= bounds.scale_out_fraction,
        "mfu_fraction": seen.mfu_fraction >= bounds.mfu_fraction,
        "deadline_days": seen.days <= bounds.days,
        "accelerator_count": seen.accelerators <= bounds.accelerators,
    }


def add(model: Any, data: "TrainingProgram") -> None:
    """The row of the budget of several jobs; one job alone is checked choice by choice."""
    from pyomo.core import Constraint

    budget = data.instance.economics.budget_usd
    if budget is not None and data.is_shared:
        share = sum(usd / budget * variable for usd, variable in data.paid(model))
        model.Run_Budget = Constraint(expr=share <= 1.0, doc="all jobs within the budget")
