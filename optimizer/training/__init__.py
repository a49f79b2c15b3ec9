"""The plan of training: jobs, places, options, program, answer. ``optimizer.api`` comes here by kind of work."""
