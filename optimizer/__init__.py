"""Decides which GPU cluster to buy or rent: the cheapest fleet that provably meets every limit."""

__all__ = ["__version__"]

__version__ = "0.1.0"
