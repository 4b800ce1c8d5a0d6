"""One run as one page: a single file that needs nothing else."""
