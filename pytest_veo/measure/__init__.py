"""Around every test: glance; around a suspect: settle, confirm, judge."""
