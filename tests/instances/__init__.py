"""The shipped instances: each is read, solved, verified and equal to its expected answer."""
