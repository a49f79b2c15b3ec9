"""Published whole runs: what a paid-for run takes beside the steps of a recipe, and how far that is known.

    python -m optimizer.calibration.training.runs

A run of a table has model, tokens, accelerators and hours. The recipe's time is steps x the fastest layout that fits,
over the goodput of so many accelerators; where a run published the utilisation of its own steps (MFU, or HFU x 3/4),
that stands for the layout, as after one measured step. The production factor is what the run took over that:
evaluation, slow starts, stages with other settings, stragglers, loss spikes, layouts that nobody tuned. By generation
and kind it is a mean over *all* runs against the fastest layout, those that published their utilisation too: they are
the well-tuned ones, and without them plans would be charged what the rest lost. Group ``reported`` is against the
published utilisation. Bands are from runs left out one at a time, for what a plan knows: ``dense`` and ``moe`` without
a published utilisation, ``reported`` with it. Writes
``performance/data/training_production.json``.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np

from optimizer.calibration.training.names import resolve_accelerator, resolve_model
from optimizer.catalog import Catalog, load_catalog
from optimizer.performance.factors import FloatArray
from optimizer.performance.student_t import student_t_quantile
from optimizer.performance.training.constants import TrainingCalibration, load_calibration
from optimizer.performance.training.goodput import goodput, mtbf_hours
from optimizer.performance.training.hardware import TrainingAccelerator
from optimizer.performance.training.model import TrainingModel
from optimizer.performance.training.search import enumerate_layouts
from optimizer.performance.training.step import predict_step

#: Accelerators and batch of runs that do not state them; sequence by year of the run.
_ACCELERATORS: Final = 1024
_BATCH_TOKENS: Final = {2023: 4e6, 2099: 8e6}
_SEQUENCE: Final = {2023: 2048, 2099: 4096}
#: Until then everything was recomputed in training of large models.
_RECOMPUTED_UNTIL: Final = 2022
#: How strongly a group's factor is drawn to the mean of all: as by so many runs.
_SHRINK_RUNS: Final = 2.0
LEVELS: Final = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
#: What bands are for.
BANDS: Final = ("dense", "moe", "reported")


@dataclass(frozen=True, slots=True)
class Run:
    """One published run: measured days of all its accelerators, and days by the recipe over the goodput.

    ``recipe_days`` is by the published utilisation where there is one, ``blind_days`` by the fastest layout always;
    ``group`` and ``blind_group`` are the groups of their factors.
    """

    model: str
    group: str
    blind_group: str
    accelerators: int
    measured_days: float
    recipe_days: float
    blind_days: float

    @property
    def log_factor(self) -> float:
        """Logarithm of the production factor."""
        return float(np.log(self.measured_days / self.recipe_days))

    @property
    def blind_log_factor(self) -> float:
        """The same against the fastest layout."""
        return float(np.log(self.measured_days / self.blind_days))


def _by_year(table: Mapping[int, float], year: int) -> float:
    return next(value for limit, value in table.items() if year <= limit)


def read_runs(catalog: Catalog, calibration: TrainingCalibration) -> list[Run]:
    """The packaged runs with their recipe's time."""
    text = resources.files("optimizer.calibration").joinpath("data/training_runs.csv").read_text(encoding="utf-8")
    return [_run(row, catalog, calibration) for row in csv.DictReader(text.splitlines())]


def _run(row: Mapping[str, str], catalog: Catalog, calibration: TrainingCalibration) -> Run:
    year = int(row["year"])
    reported = float(row["reported_mfu_fraction"] or "nan")
    parameters = float(row["params_b"]) * 1e9
    model = resolve_model(catalog, row["model"])
    if model is None:
        active = float(row["active_params_b"]) * 1e9 if row["active_params_b"] else None
        model = TrainingModel.from_parameters(parameters, active)
    accelerator = resolve_accelerator(catalog, row["gpu"])
    stated = int(row["gpus"]) if row["gpus"] else _ACCELERATORS
    count = 2 ** int(np.log2(max(stated, 8)))
    sequence = int(row["seq_len"] or _by_year(_SEQUENCE, year))
    batch = float(row["batch_tokens_m"]) * 1e6 if row["batch_tokens_m"] else _by_year(_BATCH_TOKENS, year)
    # Powers of two, so that usual degrees divide them: rates an accelerator hardly change within a factor of two.
    sequences = 2 ** int(np.log2(max(batch / sequence, count)))
    blind = _best_rate(row, model, accelerator, calibration, count, sequence, sequences, year) / count
    rate = blind
    if np.isfinite(reported):
        active = float(row["active_params_b"] or row["params_b"]) * 1e9
        rate = reported * accelerator.fp16_tflops * 1e12 / (6.0 * active)
    hours = mtbf_hours(accelerator.id, accelerator.generation)
    share = float(goodput(stated, mtbf_accelerator_hours=hours).goodput_fraction[0])
    work = float(row["tokens_b"]) * 1e9 / stated / share / 86400.0
    kind = "dense" if model.is_dense else "moe"
    group = kind if kind == "moe" else f"{kind}|{_era(accelerator.generation)}"
    return Run(
        model=row["model"],
        group="reported" if np.isfinite(reported) else group,
        blind_group=group,
        accelerators=stated,
        measured_days=float(row["gpu_hours"]) / stated / 24.0,
        recipe_days=work / rate,
        blind_days=work / blind,
    )


def _best_rate(
    row: Mapping[str, str],
    model: TrainingModel,
    accelerator: TrainingAccelerator,
    calibration: TrainingCalibration,
    count: int,
    sequence: int,
    sequences: int,
    year: int,
) -> float:
    """Tokens/s of the fastest layout that fits."""
    layouts = enumerate_layouts(
        model,
        count,
        sequence_length=sequence,
        sequences=sequences,
        scale_up_domain=min(accelerator.scale_up_domain, 8),
        recompute=(2,) if year <= _RECOMPUTED_UNTIL else (0, 1, 2),
    )
    assert layouts is not None
    found = predict_step(
        model,
        layouts,
        accelerator,
        sequence_length=sequence,
        global_batch_tokens=sequences * sequence,
        precision="fp8" if "fp8" in row["precision"] and accelerator.fp8_tflops else "bf16",
        stack=row["stack"],
        calibration=calibration,
    )
    usable = (found.fits if found.fits.any() else found.can_run) & found.divides
    return float(found.tokens_per_s[usable].max())


def _era(generation: str) -> str:
    return "ampere" if generation in ("volta", "ampere", "tpu") else "hopper"


def factors(runs: Sequence[Run]) -> dict[str, float]:
    """Log of the production factor by group, drawn towards the median of all runs; ``all`` for other groups."""
    whole = float(np.median([run.blind_log_factor for run in runs]))
    found = {"all": whole}
    for group in sorted({run.blind_group for run in runs}):
        found[group] = _drawn([run.blind_log_factor for run in runs if run.blind_group == group], whole)
    mixed = float(np.median([run.log_factor for run in runs]))
    found["reported"] = _drawn([run.log_factor for run in runs if run.group == "reported"], mixed)
    return found


def _drawn(logs: Sequence[float], whole: float) -> float:
    if not logs:
        return whole
    share = len(logs) / (len(logs) + _SHRINK_RUNS)
    return share * float(np.median(logs)) + (1.0 - share) * whole


def left_out(runs: Sequence[Run], *, blind: bool = False) -> FloatArray:
    """Log of predicted days of each run by the factors of all others; ``blind``: no run tells its utilisation."""
    found = []
    for index, run in enumerate(runs):
        others = factors([*runs[:index], *runs[index + 1 :]])
        days, group = (run.blind_days, run.blind_group) if blind else (run.recipe_days, run.group)
        found.append(np.log(days) + others.get(group, others["all"]))
    return np.array(found)


def band(runs: Sequence[Run], name: str) -> FloatArray:
    """Quantiles at ``LEVELS`` of log(measured / predicted days) of a run that is not among ``runs``.

    ``name``: ``dense``, ``moe`` (no run tells its utilisation) or ``reported`` (runs that do). Quantiles of n misses
    are taken at the rank of n + 1, rounded outwards: a new run then lies inside at least as often as they say (split
    conformal prediction, Vovk et al. 2005). Mixtures are too few for ranks: Student's t around 0 with the mean
    square of their misses, drawn to that of all runs.
    """
    logs = np.log([run.measured_days for run in runs])
    miss = logs - left_out(runs, blind=name != "reported")
    groups = [run.group if name == "reported" else run.blind_group.partition("|")[0] for run in runs]
    own = miss[np.array(groups) == name]
    if name == "moe":
        freedom = own.size + _SHRINK_RUNS
        square = (float((own**2).sum()) + _SHRINK_RUNS * float((miss**2).mean())) / freedom
        return np.array([student_t_quantile(level, freedom - 1.0) * square**0.5 for level in LEVELS])
    places = np.round(np.array(LEVELS) * (own.size + 1), 9)
    ranks = np.where(np.array(LEVELS) < 0.5, np.floor(places), np.ceil(places))
    found: FloatArray = np.sort(own)[np.clip(ranks, 1, own.size).astype(np.int64) - 1]
    found[LEVELS.index(0.5)] = np.median(own)
    return found


def in_band(runs: Sequence[Run], names: Sequence[str] = ("dense", "moe")) -> dict[str, list[bool]]:
    """Whether each run lies in the band (10 % to 90 %) that factors and misses of all others give, by ``names``."""
    found: dict[str, list[bool]] = {name: [] for name in names}
    for name in names:
        miss = np.log([run.measured_days for run in runs]) - left_out(runs, blind=name != "reported")
        for index, run in enumerate(runs):
            if name in (run.group, run.blind_group.partition("|")[0]):
                others = [*runs[:index], *runs[index + 1 :]]
                low, high = np.interp((0.1, 0.9), LEVELS, band(others, name))
                found[name].append(bool(low <= miss[index] <= high))
    return found


def production_document(runs: Sequence[Run]) -> dict[str, Any]:
    """Factors, and quantiles of log(measured / predicted days) by what is known of a run."""
    return {
        "version": 2,
        "source": "published runs of 2020-2025 (addresses in the packaged table training_runs.csv, figures only)",
        "as_of": "2026-12",
        "runs": len(runs),
        "log_factor": {name: round(value, 4) for name, value in factors(runs).items()},
        "levels": list(LEVELS),
        "log_error": {name: [round(float(one), 4) for one in band(runs, name)] for name in BANDS},
    }


def main() -> None:
    """Write the packaged production factors."""
    runs = read_runs(load_catalog(), load_calibration())
    path = Path(__file__).parents[2] / "performance" / "data" / "training_production.json"
    path.write_text(json.dumps(production_document(runs), indent=1) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
