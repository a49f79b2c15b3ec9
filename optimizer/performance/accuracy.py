"""Accuracy of a quantization scheme as a distribution over models, and the chance that it meets a floor.

Recovery is the quantized score over the baseline's, in percent; loss = 100 - recovery, in points. Published
results give a scheme's mean loss and its spread over m models; what a new model will do follows Student's t
with m - 1 degrees of freedom, widened by 1 + 1/m because the mean itself is estimated.
"""

from dataclasses import dataclass
from math import inf, log10, sqrt

from optimizer.performance.student_t import student_t_cdf, student_t_quantile

_FULL = 100.0


@dataclass(frozen=True, slots=True)
class Loss:
    """Loss of one scheme in points of the baseline: mean over models, spread of a suite, models behind it.

    ``models`` below 2 means that no spread is known; ``sd_points`` is then not used.
    """

    mean_points: float
    sd_points: float
    models: int

    @property
    def recovery_mean_pct(self) -> float:
        """Expected recovery, percent; never credited above 100."""
        return min(_FULL, _FULL - self.mean_points)


def _predictive_sd(loss: Loss) -> float:
    return loss.sd_points * sqrt(1.0 + 1.0 / loss.models)


def recovery_quantile(mean_loss: float, sd: float, models: int, confidence: float) -> float:
    """Recovery (percent) that a new model reaches or exceeds with probability ``confidence`` (0..1, exclusive).

    100 - mean_loss - t(confidence; m - 1) sd sqrt(1 + 1/m), at most 100. ``mean_loss`` and ``sd`` in points.
    ValueError below two models.
    """
    if models < 2:
        raise ValueError("a quantile needs at least two models")
    spread = _predictive_sd(Loss(mean_loss, sd, models))
    return min(_FULL, _FULL - mean_loss - student_t_quantile(confidence, models - 1) * spread)


def probability_meets(floor: float, mean_loss: float, sd: float, models: int) -> float:
    """Probability (0..1) that a new model's recovery is at least ``floor`` percent.

    Without a spread (sd = 0) it is 0 or 1. ValueError below two models.
    """
    if models < 2:
        raise ValueError("a probability needs at least two models")
    allowed = _FULL - floor
    spread = _predictive_sd(Loss(mean_loss, sd, models))
    if spread == 0.0:
        return 1.0 if mean_loss <= allowed else 0.0
    return student_t_cdf((allowed - mean_loss) / spread, models - 1)


def loss_at_size(
    mean_loss: float,
    parameters_b: float,
    *,
    slope_points_per_decade: float = 0.0,
    reference_b: float = 70.0,
    largest_b: float = inf,
    smallest_b: float = 0.0,
) -> float:
    """Mean loss at a model size (billions of parameters), for schemes whose data show a size effect.

    mean + slope log10(P / reference), with P clamped to the sizes that the data cover and the loss never below
    0. ``slope_points_per_decade`` is 0 where the data show none.
    """
    if slope_points_per_decade == 0.0:
        return mean_loss
    size = min(max(parameters_b, smallest_b), largest_b)
    return max(0.0, mean_loss + slope_points_per_decade * log10(size / reference_b))


def combine_losses(first: Loss, second: Loss) -> Loss:
    """Weights and cache quantized together: means add, spreads join in quadrature, the thinner data counts."""
    models = min(first.models, second.models)
    return Loss(first.mean_points + second.mean_points, sqrt(first.sd_points**2 + second.sd_points**2), models)


def recovered_loss(loss: Loss, closure: float) -> Loss:
    """Loss after a recovery step that closes a share ``closure`` of it (a step may also do harm: below 0).

    Recovered = 100 - (1 - c) L: mean and spread shrink alike; training that improves the model beyond the
    baseline is not credited (c at most 1).
    """
    left = 1.0 - min(closure, 1.0)
    return Loss(loss.mean_points * left, loss.sd_points * left, loss.models)
