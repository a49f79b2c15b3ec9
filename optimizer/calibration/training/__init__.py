"""Fitting and checking the training model: tables of steps, the packaged fit, ``validate`` and ``calibrate``."""
