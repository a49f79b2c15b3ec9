"""Tests of the training calibration."""
