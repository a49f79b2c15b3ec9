"""Why no layout of a proposal for training runs: which degree does not suit model, batch or servers."""

from collections.abc import Mapping

import numpy as np

from optimizer.performance.factors import FloatArray
from optimizer.performance.training import Layouts
from optimizer.training.jobs import Job
from optimizer.training.replicas import expert_group_replicas, width


def unsuited(
    degrees: Mapping[str, int | str],
    job: Job,
    bases: Layouts,
    held: FloatArray,
    top: FloatArray,
    domain: int,
    sites: int,
) -> tuple[str, str, str]:
    """(key, found, what is allowed) of the first degree that stands in the way; ``held`` replicas fit the servers."""
    if not bases.size:
        return _unfit(degrees, job, domain)
    replicas = degrees.get("data_parallel")
    wide = width(bases)
    if replicas is not None:
        most = int(np.minimum(held, top).max())
        if int(replicas) > most:
            why = (
                "the servers in service hold no more" if held.max() <= top.max() else "the batch has no more sequences"
            )
            return "data_parallel", f"{int(replicas):,}", f"must be <= {most:,}: {why}"
        group = int(expert_group_replicas(bases).min())
        allowed = f"must be >= {group * sites:,}: each site holds a replica"
        if group > 1:
            allowed = (
                f"must be a multiple of {group:,}, and >= {group * sites:,}: "
                "replicas x tensor x context are whole expert-parallel groups, at each site"
            )
        return "data_parallel", f"{int(replicas):,}", allowed
    if held.max() < sites:
        where = "each site" if sites > 1 else "its servers in service"
        return (
            "count",
            f"room for {int(held.max()):,} replicas",
            (f"must hold one replica at {where}: the narrowest layout takes {int(wide.min()):,} accelerators"),
        )
    group = int(expert_group_replicas(bases).min())
    room = int(np.minimum(held, top).max())
    allowed = f"must be spread over {group:,} replicas at each site; servers and batch allow {room:,}"
    return "expert_parallel", f"{int(bases.expert_parallel.min()):,}", allowed


def _unfit(degrees: Mapping[str, int | str], job: Job, domain: int) -> tuple[str, str, str]:
    """Which degree leaves no layout of one replica."""
    model = job.model
    tensor, pipeline = int(degrees.get("tensor_parallel", 1)), int(degrees.get("pipeline_parallel", 1))
    virtual, experts = int(degrees.get("virtual_stages", 1)), int(degrees.get("expert_parallel", 1))
    if tensor > domain:
        return "tensor_parallel", str(tensor), f"must be <= {domain}: it stays inside the scale-up domain"
    if model.attention_heads % tensor:
        return "tensor_parallel", str(tensor), f"must divide the {model.attention_heads} attention heads"
    if (model.experts % experts) if model.experts else experts > 1:
        allowed = f"must divide the {model.experts} experts" if model.experts else "must be 1: the model has no experts"
        return "expert_parallel", str(experts), allowed
    stage = -(-model.layers // pipeline)
    if pipeline > 1 and (pipeline - 1) * stage >= model.layers:
        return "pipeline_parallel", str(pipeline), f"must leave none of its stages of {model.layers} layers empty"
    if virtual > 1 and (pipeline == 1 or model.layers % (pipeline * virtual)):
        allowed = f"must divide the {model.layers} layers together with pipeline_parallel, which is above 1"
        return "virtual_stages", str(virtual), allowed
    if int(degrees.get("zero_stage", 1)) == 3 and pipeline > 1:
        return "zero_stage", "3", "must be <= 2 beside a pipeline: weights that are gathered every pass go without one"
    return "layout", ", ".join(f"{key} {value}" for key, value in degrees.items()), "must be degrees that go together"
