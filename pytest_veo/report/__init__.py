"""Records as text and pages. Reads records, decides nothing."""
