"""Texts that a change of the program must change with intent."""
