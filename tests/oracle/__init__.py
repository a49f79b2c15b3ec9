"""An independent answer to small instances: plain enumeration from docs/method.md, and random instances to ask it."""
