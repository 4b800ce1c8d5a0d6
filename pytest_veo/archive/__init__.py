"""Past runs on disk."""
