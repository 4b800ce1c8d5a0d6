"""Frame captures of other tools, one format a file."""
