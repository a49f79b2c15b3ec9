"""Bytes and links by hand."""

import numpy as np
import pytest

from optimizer.performance.communication import choose_links, step_communication
from optimizer.performance.factors import load_factors
from tests.performance import builders as b


def test_all_reduce_bytes() -> None:
    comm = step_communication(b.LLAMA_70B, b.deploy(b.H100, tensor_parallel=[1, 2, 8]), load_factors())
    by_hand = [0.0, 2 * 80 * 2 * (1 / 2) * 8192 * 2, 2 * 80 * 2 * (7 / 8) * 8192 * 2]
    assert comm.link_bytes_per_token == pytest.approx(by_hand)


def test_pipeline_stages_share_the_layers() -> None:
    deployments = b.deploy(b.H100, tensor_parallel=8, pipeline_parallel=[1, 2])
    comm = step_communication(b.LLAMA_70B, deployments, load_factors())
    assert comm.link_bytes_per_token[0] == pytest.approx(2 * comm.link_bytes_per_token[1])


def test_expert_exchange_replaces_the_all_reduce_of_expert_layers() -> None:
    d = b.deploy(b.H100, attention_data_parallel=8, expert_parallel=8)
    comm = step_communication(b.DEEPSEEK_V3, d, load_factors())
    assert comm.link_bytes_per_token[0] == pytest.approx(58 * 2 * 8 * 7168 * 2 * 7 / 8)


def test_experts_without_attention_data_parallel_join_in_the_all_reduce() -> None:
    with_ep, without = (
        step_communication(b.DEEPSEEK_V3, b.deploy(b.H100, tensor_parallel=8, expert_parallel=ep), load_factors())
        for ep in (8, 1)
    )
    assert with_ep.link_bytes_per_token == pytest.approx(without.link_bytes_per_token)


def test_links() -> None:
    # A mesh of eight reaches 3 of 7 links from a group of four.
    assert choose_links(b.deploy(b.MI300X, tensor_parallel=[2, 4, 8])).gb_s == pytest.approx([64, 192, 448])
    # Cards without a link go over PCIe inside the host and over the network beyond it.
    assert choose_links(b.deploy(b.L40S, tensor_parallel=[8, 16])).gb_s == pytest.approx([32, 25])
    pairs = {**b.A100, "scale_up_domain": 2}
    assert choose_links(b.deploy(pairs, tensor_parallel=[2, 4])).gb_s == pytest.approx([300, 32])


def test_larger_messages_take_the_other_kernel() -> None:
    comm = step_communication(b.LLAMA_70B, b.deploy(b.H100, tensor_parallel=8), load_factors())
    one, many = comm.milliseconds(1.0)[0], comm.milliseconds(8192.0)[0]
    assert one == pytest.approx((comm.small_fixed_ms + comm.small_per_token_ms)[0])
    assert many == pytest.approx((comm.large_fixed_ms + comm.large_per_token_ms * 8192)[0])
    # 160 all-reduces of one token take about 10 us each on this machine.
    assert one / 160 == pytest.approx(0.008, rel=0.3)


def test_never_faster_than_the_link() -> None:
    for tokens in (1.0, 100.0, 8192.0):
        comm = step_communication(b.LLAMA_70B, b.deploy(b.H100, tensor_parallel=[2, 4, 8]), load_factors())
        assert np.all(comm.link_bytes_per_token * tokens / (comm.milliseconds(tokens) * 1e-3) <= 450e9)
