"""The jobs of an instance as numbers: model, tokens, window of the calendar."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from optimizer.catalog import Catalog
from optimizer.catalog.rows import ModelArchitecture
from optimizer.instance.model import Instance
from optimizer.instance.training import TrainingJob, TrainingWorkload
from optimizer.instance.workload import HuggingFaceConfig
from optimizer.models import architecture_from_catalog
from optimizer.performance.training import CONVENTIONS, TrainingModel, flop_per_token
from optimizer.units import HOURS_PER_YEAR

HOURS_PER_DAY: Final = 24.0
DAYS_PER_YEAR: Final = HOURS_PER_YEAR / HOURS_PER_DAY


@dataclass(frozen=True, slots=True)
class Job:
    """One job. ``shape`` says how the model's shape was got; ``flop_by_convention`` counts the whole run.

    ``start_day`` and ``deadline_day`` bound it on the calendar; without a deadline the horizon is one.
    """

    name: str
    model: TrainingModel
    shape: str
    tokens: float
    flop_by_convention: Mapping[str, float]
    sequence_tokens: int
    batch_tokens: float
    precisions: tuple[str, ...]
    counts: tuple[int, ...] | None
    start_day: float
    deadline_day: float
    delay_usd_per_day: float

    @property
    def sequences(self) -> int:
        """Sequences of one optimizer step, whole."""
        return max(round(self.batch_tokens / self.sequence_tokens), 1)

    @property
    def window_days(self) -> float:
        """Longest time it may take."""
        return self.deadline_day - self.start_day


def training_workload(instance: Instance) -> TrainingWorkload:
    """The workload of a training instance; TypeError for another kind."""
    if not isinstance(instance.workload, TrainingWorkload):
        raise TypeError(f"a workload of kind {instance.workload.kind} is not trained")
    return instance.workload


def jobs_of(instance: Instance, catalog: Catalog) -> tuple[Job, ...]:
    """Every job of the instance, in its order."""
    workload = training_workload(instance)
    return tuple(_job(instance, workload, one, catalog) for one in workload.all_jobs())


def _job(instance: Instance, workload: TrainingWorkload, one: TrainingJob, catalog: Catalog) -> Job:
    model, shape = _model(one, catalog)
    sequence = one.sequence_tokens or workload.sequence_tokens
    per_token = {name: flop_per_token(model, float(sequence), name) for name in CONVENTIONS}
    if one.parameters_b is not None:
        # The planner's own size counts, not that of the usual shape that stands for it.
        active = (one.active_parameters_b or one.parameters_b) * 1e9
        per_token |= {"6nd": 6.0 * active, "8nd": 8.0 * active}
    tokens = one.tokens if one.tokens is not None else (one.flop or 0.0) / per_token[workload.flop_convention]
    deadline = one.deadline_days if one.deadline_days is not None else instance.targets.deadline_days
    return Job(
        name=one.name,
        model=model,
        shape=shape,
        tokens=tokens,
        flop_by_convention={name: value * tokens for name, value in per_token.items()},
        sequence_tokens=sequence,
        batch_tokens=min(one.global_batch_tokens or workload.global_batch_tokens, max(tokens, float(sequence))),
        precisions=tuple(one.precisions or workload.precisions),
        counts=one.accelerator_counts,
        start_day=one.earliest_start_day,
        deadline_day=deadline if deadline is not None else instance.economics.horizon_years * DAYS_PER_YEAR,
        delay_usd_per_day=one.delay_usd_per_day or 0.0,
    )


def _model(one: TrainingJob, catalog: Catalog) -> tuple[TrainingModel, str]:
    if one.parameters_b is not None:
        active = None if one.active_parameters_b is None else one.active_parameters_b * 1e9
        model = TrainingModel.from_parameters(one.parameters_b * 1e9, active)
        experts = f", {model.experts} experts of which {model.active_experts} are met" if model.experts else ""
        return model, (
            f"usual shape of its size: {model.layers} layers of width {model.hidden_size:,}{experts}; "
            f"{model.parameters / 1e9:.4g}e9 parameters, {model.active_parameters / 1e9:.4g}e9 active"
        )
    choice: Any = one.model
    if isinstance(choice, HuggingFaceConfig):
        from optimizer.performance.huggingface import from_hf_config

        return TrainingModel.from_architecture(from_hf_config(choice.config), choice.name), "config.json"
    row = choice if isinstance(choice, ModelArchitecture) else catalog.models[catalog.resolve_model(choice)]
    stated = "stated by the user" if isinstance(choice, ModelArchitecture) else "catalogue"
    return TrainingModel.from_architecture(architecture_from_catalog(row), row.id), stated
