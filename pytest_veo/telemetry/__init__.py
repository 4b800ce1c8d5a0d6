"""The environment a run was made in."""
