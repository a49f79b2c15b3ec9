"""The problem library: names, solved answers, and the record of an answer that is kept in ``instances/expected``."""

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from optimizer import api
from optimizer.diagnosis import Diagnosis
from optimizer.plan import Deployment, Plan, PrefillRole
from optimizer.plan_training import TrainingPlan
from optimizer.proposals.reading import read_proposal
from optimizer.report.training import layout_words

FOLDER: Final = Path(__file__).parents[2] / "instances"
EXPECTED: Final = FOLDER / "expected"
KEPT_EVALUATIONS: Final = FOLDER / "proposals" / "expected" / "evaluations.json"
#: Relative difference below which two figures are the same.
SAME: Final = 1e-6

Record = dict[str, Any]


def names() -> tuple[str, ...]:
    """Every shipped instance by the name of its file; answers that lie beside them are none."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json") if "." not in path.stem))


def path_of(name: str) -> Path:
    """File of an instance."""
    return FOLDER / f"{name}.json"


@cache
def solved(name: str) -> api.Solved:
    """The answer, solved once a session."""
    path = path_of(name)
    return api.solve(api.load(path), instance_path=path)


def record(answer: api.Solved) -> Record:
    """What is kept of an answer: choice, cost, what holds it back, and the figures that the README shows."""
    if answer.plan is not None:
        return {"exit_code": answer.exit_code, **_of_plan(answer.plan)}
    assert answer.diagnosis is not None
    return {"exit_code": answer.exit_code, **_of_diagnosis(answer.diagnosis)}


def _of_plan(plan: Plan) -> Record:
    bill = plan.bill
    trained = {} if plan.training is None else {"training": _of_training(plan.training)}
    counts: dict[str, int] = {}
    for group in plan.servers:
        counts[group.accelerator] = counts.get(group.accelerator, 0) + group.servers * group.accelerators_per_server
    return {
        **trained,
        "name": plan.name,
        "holds": plan.outcome.holds,
        "usd_per_hour": bill.usd_per_hour,
        "accelerators": counts,
        "servers": {
            group.pool: {"servers": group.servers, "spare": group.spare, "racks": group.racks} for group in plan.servers
        },
        "schemes": sorted({f"{one.scheme}+{one.kv_scheme}+{one.recovery}" for one in plan.deployments}),
        "binding": [
            f"{row.limit} {row.where}".strip() if row.limit == "supply" else row.limit
            for row in plan.headroom
            if row.binding
        ],
        "deployments": [_of_deployment(one) for one in plan.deployments],
        "usd_per_hour_by_component": {key: usd / 8766.0 for key, usd in sorted(bill.usd_per_year_by_component.items())},
        "usd_per_million_output_tokens": bill.usd_per_million_output_tokens,
        "capital_usd": bill.capital_usd,
        "assumed_fraction": bill.assumed_fraction,
        "power_kw": plan.power_kw,
        "pue_mean": {one.option: one.pue_mean for one in plan.plants},
        "next_best": [
            {"without": one.without, "summary": one.summary, "usd_per_hour": one.usd_per_hour, "reason": one.reason}
            for one in plan.runners_up[:1]
        ],
        "unmeasured": sorted(text.split(":")[0] for text in plan.messages if "no measured serving point" in text),
    }


def _of_training(training: TrainingPlan) -> Record:
    return {
        "usd": training.usd,
        "days": training.days,
        "energy_mwh": training.energy_mwh,
        "power_kw_by_site": {one.site: one.power_kw for one in training.sites},
        "jobs": [
            {
                "name": job.name,
                "accelerator": job.accelerator,
                "accelerators": job.accelerators_used,
                "precision": job.precision,
                "method": job.method,
                "layout": layout_words(job.layout),
                "start_day": job.start_day,
                "days": job.days,
                "days_band": list(job.days_band),
                "goodput_fraction": job.goodput_fraction,
                "mfu_fraction": job.mfu_fraction,
                "run_mfu_fraction": job.run_mfu_fraction,
                "run_tflops_per_accelerator": job.run_tflops_per_accelerator,
                "accelerator_hours": job.accelerator_hours,
                "usd": job.usd,
                "usd_per_accelerator_hour": job.usd_per_accelerator_hour,
                "evidence": job.evidence,
            }
            for job in training.jobs
        ],
    }


def layout(one: Deployment) -> str:
    """Degrees of a deployment, of both roles of a unit, in the field's shorthand."""
    if one.prefill is None:
        return _degrees(one)
    return f"[{one.prefill.replicas} prefill {_degrees(one.prefill)} + {one.decode_replicas} decode {_degrees(one)}]"


def _degrees(one: Deployment | PrefillRole) -> str:
    parts = [f"TP{one.tensor_parallel}"]
    for short, degree in (
        ("PP", one.pipeline_parallel),
        ("EP", one.expert_parallel),
        ("DP", one.attention_data_parallel),
    ):
        if degree > 1:
            parts.append(f"{short}{degree}")
    return " ".join(parts)


def _of_deployment(one: Deployment) -> Record:
    seen = one.prediction
    return {
        "request_class": one.request_class,
        "accelerator": one.accelerator,
        "layout": layout(one),
        "scheme": f"{one.scheme}+{one.kv_scheme}+{one.recovery}",
        "replicas": one.replicas,
        "accelerators_per_replica": one.accelerators_per_replica,
        "concurrency": one.concurrency,
        "tpot_ms": seen.tpot_ms,
        "ttft_ms": seen.ttft_ms,
        "vram_gib": seen.vram_gib,
        "weights_gib": seen.vram_items_gib["weights"],
        "nvlink_gb_s": seen.nvlink_gb_s,
        "accuracy": seen.accuracy,
        "accuracy_probability": seen.accuracy_probability,
    }


def _of_diagnosis(diagnosis: Diagnosis) -> Record:
    return {
        "name": diagnosis.name,
        "stage": diagnosis.stage,
        "kills": {one.limit: one.kills for one in diagnosis.kills},
        "nearest": None if diagnosis.nearest is None else diagnosis.nearest.model_dump(mode="json"),
        "cause": diagnosis.cause,
        "clash": [one.model_dump(mode="json") for one in diagnosis.clash],
        "changes": [one.model_dump(mode="json") for one in diagnosis.changes],
        "widenings": [one.model_dump(mode="json") for one in diagnosis.widenings],
        "combined": [one.model_dump(mode="json") for one in diagnosis.combined],
    }


#: Shipped proposals, with the instances that they are held against.
PROPOSALS: Final[Mapping[str, tuple[str, ...]]] = {
    "a100-2000": ("dense-600b-a100", "dense-600b-a100-median"),
    "a100-2000-sharded": ("dense-600b-a100", "dense-600b-12gib"),
    "a100-25000-run": ("train-63-million", "train-25000-a100"),
}


def proposal_path(name: str) -> Path:
    """File of a proposal."""
    return FOLDER / "proposals" / f"{name}.json"


@cache
def evaluated(proposal: str, instance: str) -> Record:
    """What is kept of a shipped proposal's evaluation."""
    given = api.load(path_of(instance))
    plan = solved(instance).plan
    found = api.evaluate(given, read_proposal(proposal_path(proposal), given), optimum=False)
    assert plan is not None
    bill = found.plan.bill
    if found.plan.training is not None:
        what: Record = {"messages": list(found.messages[:2]), "training": _of_training(found.plan.training)}
    else:
        (one,) = found.plan.deployments
        what = {"deployment": _of_deployment(one)}
    return {
        "name": found.proposal,
        "keeps_every_limit": found.keeps_every_limit,
        "broken": [row.summary for row in found.broken],
        "outside": [f"{row.field} {row.value}" for row in found.outside],
        "accelerators": found.plan.accelerators,
        "usd_per_hour": bill.usd_per_hour,
        "capital_usd": bill.capital_usd,
        "power_kw": found.plan.power_kw,
        "extra_fraction": bill.usd_per_hour / plan.bill.usd_per_hour - 1.0,
        **what,
    }


def evaluations() -> Record:
    """Every shipped evaluation, by proposal and instance."""
    return {name: {other: evaluated(name, other) for other in others} for name, others in PROPOSALS.items()}


def expected_evaluations() -> Record:
    """The evaluations that are kept."""
    result: Record = json.loads(KEPT_EVALUATIONS.read_text(encoding="utf-8"))
    return result


def expected_path(name: str) -> Path:
    """File of the expected answer."""
    return EXPECTED / f"{name}.json"


def expected(name: str) -> Record:
    """The answer that is kept."""
    result: Record = json.loads(expected_path(name).read_text(encoding="utf-8"))
    return result


def keep(name: str) -> bool:
    """Solve and keep the answer; whether it differs from the one kept before. An equal one is left as it stands."""
    now = record(solved(name))
    path = expected_path(name)
    if path.exists() and not list(differences(expected(name), now)):
        return False
    EXPECTED.mkdir(exist_ok=True)
    path.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
    return True


def keep_evaluations() -> None:
    """Evaluate the shipped proposals and keep what comes out, where it differs."""
    now = evaluations()
    if KEPT_EVALUATIONS.exists() and not list(differences(expected_evaluations(), now)):
        return
    KEPT_EVALUATIONS.parent.mkdir(exist_ok=True)
    KEPT_EVALUATIONS.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")


def differences(before: Any, now: Any, where: str = "") -> Iterator[str]:
    """Where two records differ: figures beyond ``SAME``, everything else exactly.

    Words about the next best plan are not compared: among plans that cost the same the solver may name another.
    """
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted({*before, *now}):
            if key not in before or key not in now:
                yield f"{where}.{key}: only {'now' if key in now else 'before'}"
            elif not (where.startswith(".next_best") and key != "usd_per_hour"):
                yield from differences(before[key], now[key], f"{where}.{key}")
    elif isinstance(before, list) and isinstance(now, list):
        if len(before) != len(now):
            yield f"{where}: {len(before)} entries before, {len(now)} now"
        else:
            for index, (one, other) in enumerate(zip(before, now, strict=True)):
                yield from differences(one, other, f"{where}[{index}]")
    elif isinstance(before, float) or isinstance(now, float):
        numbers = isinstance(before, float | int) and isinstance(now, float | int)
        if not (numbers and math.isclose(before, now, rel_tol=SAME, abs_tol=1e-9)):
            yield f"{where}: {before} before, {now} now"
    elif before != now:
        yield f"{where}: {before!r} before, {now!r} now"
