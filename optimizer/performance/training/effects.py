"""Which measured effects a prediction takes: those of its line of software, its stack, its model and configuration."""

from optimizer.performance.training.constants import LEVELS, TrainingCalibration
from optimizer.performance.training.hardware import precision_of
from optimizer.performance.training.model import TrainingModel
from optimizer.performance.training.stacks import StackTraits


def effect_keys(traits: StackTraits, model: TrainingModel, accelerator: str, precision: str) -> dict[str, str]:
    """Key of each level; an empty key has no effect. Dense models and mixtures have effects of their own."""
    kind = "dense" if model.is_dense else "moe"
    place = f"{model.signature}|{accelerator}|{precision_of(precision)}"
    return {
        "line": f"{kind}|{traits.line}" if traits.line else "",
        "stack": f"{kind}|{traits.name}" if traits.name else "",
        "model": f"{kind}|{model.signature}",
        "configuration": f"{kind}|{place}",
        "run": f"{kind}|{traits.name}|{place}" if traits.name else "",
    }


def effect_of(
    calibration: TrainingCalibration, traits: StackTraits, model: TrainingModel, accelerator: str, precision: str
) -> float:
    """The logarithm that is added to the physics: known effects, and the mean loss of stacks that nobody measured."""
    keys = effect_keys(traits, model, accelerator, precision)
    total = sum(calibration.effect(level, keys[level]) for level in LEVELS if keys[level])
    known = any(keys[level] in calibration.effects[level] for level in ("line", "stack"))
    if traits.name and not known:
        total += calibration.unknown_stack["dense" if model.is_dense else "moe"]
    return total


def evidence_of(
    calibration: TrainingCalibration, traits: StackTraits, model: TrainingModel, accelerator: str, precision: str
) -> str:
    """What stands behind a prediction: steps of this stack, of this accelerator and format, or neither."""
    keys = effect_keys(traits, model, accelerator, precision)
    if keys["stack"] and keys["stack"] in calibration.effects["stack"]:
        return "stack"
    kind, ending = keys["model"].partition("|")[0], f"|{accelerator}|{precision_of(precision)}"
    seen = any(key.startswith(kind) and key.endswith(ending) for key in calibration.effects["configuration"])
    return "accelerator" if seen else "none"
