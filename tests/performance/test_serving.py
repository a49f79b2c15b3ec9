"""Predictions against published points, hand arithmetic, and physics that no constants may break."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.performance.architecture import Architecture, parameter_counts
from optimizer.performance.deployments import Deployments, Traffic
from optimizer.performance.factors import GENERATIONS, load_factors
from optimizer.performance.serving import ServingPrediction, predict_serving, prepare
from tests.performance import builders as b

FACTORS = load_factors()
CHAT = Traffic(1024, 1024)


def predict(
    model: Architecture, accelerator: dict[str, Any], load: Any = 1.0, traffic: Traffic = CHAT, **layout: Any
) -> ServingPrediction:
    return predict_serving(model, b.deploy(accelerator, **layout), traffic, load, FACTORS)


def test_published_points() -> None:
    # 8B in bf16 on one H100: 5.5-8 ms a token alone in public runs of several engines.
    assert 5.2 < predict(b.LLAMA_8B, b.H100, traffic=Traffic(512, 128, engine="trtllm")).tpot_ms[0] < 8.0
    # The same on A100-80GB streams 16 GB at 1.2-1.5 TB/s.
    assert 10.0 < predict(b.LLAMA_8B, b.A100).tpot_ms[0] < 14.5
    # Llama-2-70B fp16 on four and eight A100 decodes at 25-35 and 14-22 ms.
    assert 24.0 < predict(b.LLAMA_2_70B, b.A100, tensor_parallel=4).tpot_ms[0] < 35.0
    assert 14.0 < predict(b.LLAMA_2_70B, b.A100, tensor_parallel=8).tpot_ms[0] < 22.0
    # MLPerf 4.1 offline, Llama-2-70B fp8: 3,027 output tokens/s per H100 with prompts of about 300 tokens.
    fp8 = {"precision_index": 1, "compute_tflops": 1978.9, "weight_bytes": 1.0, "kv_bytes": 1.0}
    many = predict(b.LLAMA_2_70B, {**b.H100, **fp8}, 1024.0, Traffic(300, 295, engine="trtllm"), tensor_parallel=4)
    assert many.output_tokens_per_s[0] / 4 == pytest.approx(3027, rel=0.35)


def test_identities() -> None:
    p = predict(b.LLAMA_70B, b.H100, [1.0, 16.0, 64.0], tensor_parallel=[4, 4, 4])
    assert p.latency_ms == pytest.approx(p.ttft_ms + 1023 * p.tpot_ms)
    assert p.requests_per_s == pytest.approx(np.array([1, 16, 64]) / p.latency_ms * 1e3)
    assert p.output_tokens_per_s == pytest.approx(p.requests_per_s * 1024)
    parts = p.weights_ms + p.kv_ms + p.compute_ms + p.communication_ms + p.overhead_ms + p.prefill_ms
    assert p.tpot_ms == pytest.approx(parts)
    items = p.weights_gib + p.activation_gib + p.graphs_gib + p.communication_gib + p.runtime_gib + p.reserve_gib
    assert p.total_gib == pytest.approx(items + p.kv_gib)


def test_weight_stream_by_hand() -> None:
    p = predict(b.LLAMA_8B, b.H100)
    read = (parameter_counts(b.LLAMA_8B).total - 128256 * 4096) * 2  # the embedding is looked up, not read
    rate = FACTORS.bandwidth_efficiency[b.H100["generation_index"], 0] * 3350e9
    assert p.weights_ms[0] == pytest.approx(read / rate * 1e3)


def test_few_tokens_touch_few_experts() -> None:
    p = predict(b.DEEPSEEK_V3, b.H100, [1.0, 8.0, 1024.0], tensor_parallel=[8, 8, 8], weight_bytes=1.0)
    dense = (parameter_counts(b.DEEPSEEK_V3).active - parameter_counts(b.DEEPSEEK_V3).embedding) / 8
    assert p.weights_ms[0] < 2 * dense / 3350e9 * 1e3 / 0.5
    share = 1 - (1 - 8 / 256) ** (np.array([1, 8, 1024]) * FACTORS.expert_token_spread)
    # Whatever tokens have in common, one token reads its own eight experts.
    share = np.maximum(share, 8 / 256)
    rate = min(FACTORS.expert_bandwidth_efficiency[1] * FACTORS.engine_expert_rate[0], 0.95) * 3350e9
    experts = parameter_counts(b.DEEPSEEK_V3).routed_experts / 8 * share / rate * 1e3
    assert np.diff(p.weights_ms) == pytest.approx(np.diff(experts), rel=1e-6)


def test_nvlink_share_is_the_formula() -> None:
    p = predict(b.LLAMA_70B, b.H100, 64.0, Traffic(16, 4096), tensor_parallel=8)
    decode_step = p.tpot_ms[0] - p.prefill_ms[0]
    decode = 2 * 80 * 2 * (7 / 8) * 8192 * 2 * 64 / (decode_step * 1e-3) / 1e9
    assert p.nvlink_gb_s[0] >= decode * (1 - 1e-9)
    assert p.nvlink_limit_gb_s[0] == 450.0


def test_prefix_hits_and_speculation_help() -> None:
    plain = predict(b.LLAMA_70B, b.H100, 16.0, Traffic(4096, 512), tensor_parallel=8)
    hits = predict(b.LLAMA_70B, b.H100, 16.0, Traffic(4096, 512, prefix_hit_fraction=0.8), tensor_parallel=8)
    drafts = predict(b.LLAMA_70B, b.H100, 16.0, Traffic(4096, 512, speculative_accepted_tokens=1.0), tensor_parallel=8)
    assert hits.ttft_ms < plain.ttft_ms
    assert hits.tpot_ms < plain.tpot_ms
    assert drafts.tpot_ms < plain.tpot_ms
    all_cached = predict(b.LLAMA_8B, b.H100, 4.0, Traffic(4096, 512, prefix_hit_fraction=1.0))
    assert np.isfinite(all_cached.ttft_ms[0])


def test_pipeline_keeps_the_time_of_one_token_and_shares_memory() -> None:
    one = predict(b.LLAMA_70B, b.H100, 1.0, tensor_parallel=8)
    two = predict(b.LLAMA_70B, b.H100, 1.0, tensor_parallel=8, pipeline_parallel=2)
    assert two.tpot_ms[0] == pytest.approx(one.tpot_ms[0], rel=0.05)
    assert two.weights_gib[0] < 0.6 * one.weights_gib[0]
    # With enough requests the two stages work at once.
    load = 256.0
    many_one = predict(b.LLAMA_70B, b.H100, load, tensor_parallel=8).output_tokens_per_s[0]
    many_two = predict(b.LLAMA_70B, b.H100, load, tensor_parallel=8, pipeline_parallel=2).output_tokens_per_s[0]
    assert many_two > many_one


def test_uneven_stages_cost_time() -> None:
    even = predict(b.LLAMA_405B, b.H100, 64.0, tensor_parallel=8, pipeline_parallel=3).tpot_ms[0]
    uneven = predict(b.LLAMA_405B, b.H100, 64.0, tensor_parallel=8, pipeline_parallel=4).weights_ms[0]
    assert even > 0
    # 126 layers in four stages: the heaviest has 32, so a token pays for 128.
    assert uneven > predict(b.LLAMA_405B, b.H100, 64.0, tensor_parallel=8).weights_ms[0]


def test_two_steps_agree_exactly() -> None:
    rng = np.random.default_rng(7)
    n = 20_000  # several blocks
    d = random_deployments(rng, n)
    load = rng.integers(1, 300, n).astype(float)
    whole = predict_serving(b.QWEN_235B, d, CHAT, load, FACTORS)
    prepared = prepare(b.QWEN_235B, d, CHAT, FACTORS)
    twice = prepared.at(load)
    rows = rng.permutation(n)[:500]
    some = prepared.take(rows).at(load[rows])
    table = prepared.take(rows).at(np.stack([load[rows], load[rows] + 1], axis=1))
    for field in fields(ServingPrediction):
        assert np.array_equal(getattr(whole, field.name), getattr(twice, field.name)), field.name
        assert np.array_equal(getattr(whole, field.name)[rows], getattr(some, field.name)), field.name
        assert np.array_equal(getattr(some, field.name), getattr(table, field.name)[:, 0]), field.name


def test_shapes_and_loads_are_checked() -> None:
    prepared = prepare(b.LLAMA_8B, b.deploy(b.H100, tensor_parallel=[1, 2]), CHAT, FACTORS)
    assert prepared.at(1.0).tpot_ms.shape == (2,)
    assert prepared.at(np.ones((2, 5))).tpot_ms.shape == (2, 5)
    with pytest.raises(ValueError, match="at least 1"):
        prepared.at(0.5)
    with pytest.raises(ValueError, match="at least 1"):
        prepared.at(np.nan)


def random_deployments(rng: np.random.Generator, n: int) -> Deployments:
    tp, dp = 2.0 ** rng.integers(0, 4, n), 2.0 ** rng.integers(0, 3, n)
    width = rng.choice([2.0, 1.0, 0.5625], n)
    fp16 = rng.uniform(60, 2500, n)
    precision = rng.integers(0, 4, n)
    return Deployments.of(
        generation_index=rng.integers(0, len(GENERATIONS), n),
        precision_index=precision,
        memory_gib=rng.uniform(22, 280, n),
        memory_bandwidth_gb_s=rng.uniform(300, 8000, n),
        compute_tflops=fp16 * np.array([1.0, 2.0, 2.0, 4.0])[precision],
        fp16_tflops=fp16,
        scale_up_gb_s=rng.choice([0.0, 300.0, 450.0, 900.0], n),
        scale_up_pair_gb_s=rng.choice([64.0, 900.0], n),
        scale_up_domain=rng.choice([1, 2, 8, 72], n),
        scale_out_gb_s=rng.uniform(1.0, 100.0, n),
        pcie_gb_s=rng.choice([16.0, 32.0, 64.0], n),
        tdp_w=700.0,
        accelerators_per_host=rng.choice([4, 8], n),
        tensor_parallel=tp,
        pipeline_parallel=rng.integers(1, 5, n),
        expert_parallel=np.where(rng.random(n) < 0.5, 1.0, tp * dp),
        attention_data_parallel=dp,
        weight_bytes=width,
        attention_weight_bytes=np.where(rng.random(n) < 0.5, 2.0, width),
        kv_bytes=rng.choice([2.0, 1.0, 0.5], n),
    )


MODELS = st.sampled_from([b.LLAMA_8B, b.LLAMA_405B, b.QWEN_235B, b.DEEPSEEK_V3, b.GPT_OSS_120B, b.GEMMA_2_9B])
TRAFFICS = st.builds(
    Traffic,
    input_tokens=st.floats(1, 100_000),
    output_tokens=st.floats(1, 20_000),
    max_context_tokens=st.floats(0, 200_000),
    prefix_hit_fraction=st.floats(0, 1),
    speculative_accepted_tokens=st.sampled_from([0.0, 0.8, 2.0]),
    engine=st.sampled_from(["generic", "vllm", "sglang", "trtllm"]),
)


@settings(max_examples=60, deadline=None)
@given(MODELS, TRAFFICS, st.integers(0, 2**32 - 1), st.sampled_from([1.5, 2.0, 3.0]))
def test_more_requests_never_take_less(model: Architecture, traffic: Traffic, seed: int, exponent: float) -> None:
    d = random_deployments(np.random.default_rng(seed), 64)
    loads = np.unique(np.round(2.0 ** np.linspace(0, 12, 60)))
    prepared = prepare(model, d, traffic, replace(FACTORS, blend_exponent=exponent))
    p = prepared.at(np.broadcast_to(loads, (64, loads.size)))
    for name in ("tpot_ms", "ttft_ms", "latency_ms", "total_gib", "nvlink_gb_s"):
        values = getattr(p, name)
        assert np.all(np.isfinite(values)), name
        assert np.all(np.diff(values, axis=1) >= -1e-9 * values[:, :-1]), name


@settings(max_examples=60, deadline=None)
@given(MODELS, TRAFFICS, st.integers(0, 2**32 - 1))
def test_nothing_beats_the_hardware(model: Architecture, traffic: Traffic, seed: int) -> None:
    d = random_deployments(np.random.default_rng(seed), 64)
    loads = np.array([1.0, 3.0, 17.0, 256.0, 4096.0])
    p = prepare(model, d, traffic, FACTORS).at(np.broadcast_to(loads, (64, loads.size)))
    counts = parameter_counts(model)
    tokens_per_step = 1.0 + traffic.speculative_accepted_tokens
    step_ms = (p.tpot_ms - p.prefill_ms) * tokens_per_step
    # Bandwidth: attention and MLP weights must be read once a step by one rank, at the narrower width.
    narrow = np.minimum(d.weight_bytes, d.attention_weight_bytes)
    dense_bytes = (counts.attention + counts.dense_mlp + counts.shared_experts) / d.tensor_parallel * narrow
    assert np.all(step_ms >= (dense_bytes / d.memory_bandwidth_gb_s / 1e6)[:, None])
    # Arithmetic: every token of the replica multiplies with the active parameters, on all accelerators.
    matrix = counts.active - counts.embedding - counts.norms
    peak = np.maximum(d.compute_tflops, d.fp16_tflops) * 1e9 * d.width
    assert np.all(step_ms >= 2 * matrix * tokens_per_step * loads[None, :] / peak[:, None] * (1 - 1e-9))
    # A prompt runs on one attention-data rank; its experts on all.
    new = max(traffic.input_tokens * (1 - traffic.prefix_hit_fraction), 1.0)
    head = 0 if model.tied_embeddings else counts.lm_head
    prompt = 2 * (matrix - head - counts.router) * new / (peak / d.pipeline_parallel)
    assert np.all(p.ttft_ms >= prompt[:, None])
    # Links: what is sent fits the link.
    assert np.all(p.nvlink_gb_s <= p.nvlink_limit_gb_s * (1 + 1e-9))


@settings(max_examples=40, deadline=None)
@given(MODELS, st.integers(0, 2**32 - 1), st.floats(1, 20_000), st.floats(1, 4_000), st.floats(1.0, 4.0))
def test_more_work_never_takes_less(
    model: Architecture, seed: int, inputs: float, outputs: float, times: float
) -> None:
    d = random_deployments(np.random.default_rng(seed), 64)
    less = predict_serving(model, d, Traffic(inputs, outputs), 32.0, FACTORS)
    more = predict_serving(model, d, Traffic(inputs * times, outputs), 32.0, FACTORS)
    for name in ("ttft_ms", "tpot_ms", "total_gib"):
        assert np.all(getattr(more, name) >= getattr(less, name) * (1 - 1e-9)), name


@settings(max_examples=40, deadline=None)
@given(MODELS, st.integers(0, 2**32 - 1), st.sampled_from(["memory_bandwidth_gb_s", "compute_tflops", "scale_up_gb_s"]))
def test_better_hardware_is_never_slower(model: Architecture, seed: int, quantity: str) -> None:
    d = random_deployments(np.random.default_rng(seed), 64)
    better = replace(d, **{quantity: getattr(d, quantity) * 2})
    loads = np.broadcast_to([1.0, 32.0, 512.0], (64, 3))
    slow, fast = prepare(model, d, CHAT, FACTORS).at(loads), prepare(model, better, CHAT, FACTORS).at(loads)
    assert np.all(fast.tpot_ms <= slow.tpot_ms * (1 + 1e-9))
    assert np.all(fast.ttft_ms <= slow.ttft_ms * (1 + 1e-9))
