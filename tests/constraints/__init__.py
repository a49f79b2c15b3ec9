"""Tests of the limits, one module a family."""
