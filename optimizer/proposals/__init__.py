"""Plans that someone else made: their format, and what the planner's limits and prices make of them."""
