"""What a plan looks like to people. Reads a plan or a diagnosis and nothing else."""
