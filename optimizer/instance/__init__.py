"""The instance file: its shape, its reading, its defaults."""

from optimizer.instance.model import FORMAT_VERSION, Instance

__all__ = ["FORMAT_VERSION", "Instance"]
