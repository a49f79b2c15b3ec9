"""Tests of the training model."""
