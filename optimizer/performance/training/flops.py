"""FLOP of training, by the conventions in use.

All count a multiply and an add as two, per token and for forward plus backward:

=================  ====================================================================================
``6nd``            6 x active parameters; attention scores and the head as they happen to be in N
``8nd``            the same with every forward pass computed twice (full recomputation)
``full``           6 x what is multiplied (layers and head) + attention over all pairs of tokens
``causal``         the same with attention over the half of the pairs that causal models need
``hardware_full``  ``full`` with the layers' forward pass computed again: what the matrix units do
=================  ====================================================================================

Sources: Kaplan et al. 2020 (6ND); Narayanan et al. 2021, equations 2 and 3 (``full`` and ``hardware_full``: for two
matrices of 4h they are 72 B L s h^2 (1 + s/6h + V/12hL) and 96 B L s h^2 (1 + s/6h + V/16hL)).
"""

from typing import Final

from optimizer.performance.training.model import TrainingModel

CONVENTIONS: Final = ("6nd", "8nd", "full", "causal", "hardware_full")
#: Backward costs twice the forward; a multiply and an add are two.
_PASSES, _PAIR = 3.0, 2.0


def attention_flop_per_token(model: TrainingModel, sequence_length: float, causal: bool) -> float:
    """Scores and weighted values of all layers, forward and backward; windows see at most their width."""
    pairs = sequence_length / 2.0 if causal else sequence_length
    window = min(float(model.sliding_window), sequence_length) if model.sliding_window else sequence_length
    # Of a window only the start of a sequence sees less than all of it.
    seen = min(window - window * window / (2.0 * sequence_length), pairs) if causal else window
    return _PASSES * _PAIR * (model.score_width * pairs + model.window_score_width * seen)


def flop_per_token(model: TrainingModel, sequence_length: float, convention: str = "causal") -> float:
    """FLOP of one token in a convention of ``CONVENTIONS``. ValueError on another one."""
    if convention not in CONVENTIONS:
        raise ValueError(f"unknown FLOP convention {convention!r}; one of {', '.join(CONVENTIONS)}")
    if convention in ("6nd", "8nd"):
        return (6.0 if convention == "6nd" else 8.0) * model.active_parameters
    body = _PASSES * _PAIR * (model.mixed_parameters + model.active_routed_parameters)
    body += attention_flop_per_token(model, sequence_length, convention == "causal")
    head = _PASSES * _PAIR * model.head_parameters
    return body * (4.0 / 3.0 if convention == "hardware_full" else 1.0) + head
