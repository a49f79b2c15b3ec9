"""Models and accelerators that the tests of training share."""

from optimizer.performance.training import TrainingAccelerator, TrainingModel

A100 = TrainingAccelerator("a100-80gb-sxm", "ampere", 80.0, 2039, 312, 0, 0, 300, 8, 25, 32, 400)
H100 = TrainingAccelerator("h100-80gb-sxm", "hopper", 79.65, 3350, 989.4, 1978.9, 0, 450, 8, 50, 64, 700)


def gpt(layers: int, hidden: int, heads: int, vocabulary: int = 51200) -> TrainingModel:
    """A GPT with an MLP of four widths."""
    return TrainingModel.from_shape(
        layers=layers,
        hidden_size=hidden,
        attention_heads=heads,
        ffn_size=4 * hidden,
        vocabulary=vocabulary,
        mlp_matrices=2,
    )


def llama(layers: int, hidden: int, heads: int, ffn: int) -> TrainingModel:
    """A Llama 3."""
    return TrainingModel.from_shape(
        layers=layers, hidden_size=hidden, attention_heads=heads, kv_heads=8, ffn_size=ffn, vocabulary=128256
    )


GPT_175B = gpt(96, 12288, 96)
LLAMA_8B = llama(32, 4096, 32, 14336)
LLAMA_70B = llama(80, 8192, 64, 28672)
LLAMA_405B = llama(126, 16384, 128, 53248)
