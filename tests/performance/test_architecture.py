"""Parameter counts against published totals; cache elements against hand arithmetic."""

import pytest

from optimizer.performance import architecture as arch
from tests.performance import builders as b


@pytest.mark.parametrize(
    ("model", "published"),
    [
        (b.LLAMA_8B, 8_030_261_248),
        (b.LLAMA_70B, 70_553_706_496),
        (b.LLAMA_405B, 405_853_388_800),
        (b.QWEN_05B, 494_032_768),
        (b.QWEN_32B, 32_762_123_264),
        (b.QWEN_235B, 235_093_634_560),
        (b.GEMMA_2_9B, 9_241_705_984),
        (b.FALCON_40B, 41_303_293_952),
        (b.MIXTRAL, 46_702_792_704),
        (b.GPT_OSS_120B, 116_829_156_672),
        (b.DEEPSEEK_V3, 671_026_419_200),
        (b.LLAMA_2_70B, 68_976_648_192),
    ],
)
def test_totals_equal_published_tensor_counts(model: arch.Architecture, published: int) -> None:
    assert arch.parameter_counts(model).total == pytest.approx(published, rel=1e-6)


def test_gpt3_is_the_headline_figure() -> None:
    assert arch.parameter_counts(b.GPT_3).total == pytest.approx(174.6e9, rel=0.03)


@pytest.mark.parametrize(
    ("model", "active_b"), [(b.MIXTRAL, 12.9), (b.QWEN_235B, 22.2), (b.DEEPSEEK_V3, 37.5), (b.GPT_OSS_120B, 5.7)]
)
def test_active_parameters(model: arch.Architecture, active_b: float) -> None:
    assert arch.parameter_counts(model).active / 1e9 == pytest.approx(active_b, rel=0.01)


def test_kinds_sum_to_the_total() -> None:
    for model in (b.LLAMA_8B, b.DEEPSEEK_V3, b.GPT_OSS_120B, b.GEMMA_2_9B):
        c = arch.parameter_counts(model)
        wide = c.embedding + c.lm_head + c.router + c.norms
        assert wide + c.attention + c.dense_mlp + c.routed_experts + c.shared_experts == c.total


def test_dense_active_is_total() -> None:
    c = arch.parameter_counts(b.LLAMA_405B)
    assert c.active == c.total


def test_kv_elements_by_attention_kind() -> None:
    assert arch.kv_elements_per_token_full(b.LLAMA_70B) == 80 * 8 * 2 * 128
    assert arch.kv_elements_per_token_sliding(b.LLAMA_70B) == 0
    assert arch.kv_elements_per_token_full(b.GEMMA_2_9B) == 21 * 8 * 2 * 256
    assert arch.kv_elements_per_token_sliding(b.GEMMA_2_9B) == 21 * 8 * 2 * 256
    assert arch.kv_elements_per_token_full(b.DEEPSEEK_V3) == 61 * (512 + 64)
    assert arch.kv_elements_per_token_full(b.GPT_OSS_120B) == 18 * 8 * 2 * 64


def test_linear_attention_state_is_fixed_per_sequence() -> None:
    layer = arch.gated_delta_net(2048, 16, 32, 128, 128, 4)
    assert layer.state_bytes == 32 * 128 * 128 * 4 + (2 * 2048 + 4096) * 3 * 2
    # Projections of query, key, value and gate, of beta and decay, convolution, biases, norm, output.
    assert layer.parameters == 2048 * 12288 + 2048 * 64 + 8192 * 4 + 64 + 128 + 4096 * 2048


def test_mamba2_parameters() -> None:
    layer = arch.mamba2(8192, 256, 64, 256, 8, 4)
    inner, convolved = 16384, 16384 + 2 * 8 * 256
    expected = 8192 * (inner + convolved + 256) + convolved * 5 + 3 * 256 + inner + inner * 8192
    assert layer.parameters == expected
    assert layer.state_bytes == inner * 256 * 4 + convolved * 3 * 2
