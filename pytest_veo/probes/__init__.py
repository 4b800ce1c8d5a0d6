"""Sources of counters, one file each. Probes read; they never decide."""
