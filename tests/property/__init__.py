"""Invariants: what must hold between the answers to two instances that differ in one thing."""
