"""The solver layer: other solvers reach the same costs, and cases that a solver once got wrong."""
