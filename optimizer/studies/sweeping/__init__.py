"""Sweeps: many neighbours of an instance, each solved or proven from its neighbours' solutions."""
