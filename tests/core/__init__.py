"""Tests of the core: from an instance to a plan."""
