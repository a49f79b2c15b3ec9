"""Why not this: what a choice that the plan does not make would break, or how much more it would cost."""
