"""Results by what the cluster does: cost of an accelerator-hour and of a million tokens."""

from collections.abc import Iterable

from optimizer.units import HOURS_PER_YEAR, SECONDS_PER_HOUR, TOKENS_PER_MILLION


def usd_per_installed_hour(usd_per_year: float, accelerators: float, hours_per_year: float = HOURS_PER_YEAR) -> float:
    """Cost of an accelerator-hour, idle or not: ``(sum A + running) / (N H)``."""
    return usd_per_year / (accelerators * hours_per_year)


def usd_per_used_hour(usd_per_installed: float, utilization: float, goodput: float = 1.0) -> float:
    """Cost of an accelerator-hour of useful work: per installed hour over ``u g`` (share busy, share not lost)."""
    return usd_per_installed / (utilization * goodput)


def usd_per_million_tokens(usd_per_hour: float, tokens_per_s: float) -> float:
    """``c_hour / (3600 q) x 1e6`` for tokens served at ``q`` per second by what costs ``c_hour``."""
    return usd_per_hour / (SECONDS_PER_HOUR * tokens_per_s) * TOKENS_PER_MILLION


def usd_per_million_tokens_of_year(usd_per_year: float, tokens_per_year: float) -> float:
    """Yearly cost over the tokens of the year, in millions."""
    return usd_per_year / tokens_per_year * TOKENS_PER_MILLION


def usd_per_million_tokens_of_pools(
    usd_per_hour: float, prefill_tokens_per_s: float, decode_tokens_per_s: float, input_fraction: float
) -> float:
    """Cost of a million tokens of the mix where prefill and decode run apart, per accelerator rates of each pool.

    ``w c/(3600 q_pre) + (1 - w) c/(3600 q_dec)`` with ``w`` the share of input tokens.
    """
    prefill = usd_per_million_tokens(usd_per_hour, prefill_tokens_per_s)
    decode = usd_per_million_tokens(usd_per_hour, decode_tokens_per_s)
    return input_fraction * prefill + (1.0 - input_fraction) * decode


def token_revenue_usd(sold: Iterable[tuple[float, float]]) -> float:
    """Revenue of tokens sold: pairs of (tokens, USD per million tokens)."""
    return sum(tokens / TOKENS_PER_MILLION * usd for tokens, usd in sold)


def margin_over_cost(revenue_usd: float, cost_usd: float) -> float:
    """Profit per unit of cost: ``revenue / cost - 1``."""
    return revenue_usd / cost_usd - 1.0
