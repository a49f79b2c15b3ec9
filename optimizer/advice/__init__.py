"""A way out of "infeasible": which fields clash, what the least change of each is, what it then costs."""
