"""Memory, time, power and accuracy of deployments: numpy arithmetic, no I/O but the packaged constants."""
