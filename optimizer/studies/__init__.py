"""Questions that take several solves: buy or rent, which assumption moves the answer most."""
