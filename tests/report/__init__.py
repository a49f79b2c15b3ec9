"""Tests of what plans look like to people."""
