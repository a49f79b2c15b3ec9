"""Plans for training: jobs, sites, choices, program, plan, diagnosis."""
