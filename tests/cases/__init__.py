"""Cases of people who sized clusters, and engine logs, against the product."""
