"""Snapshots, their differences, and what they mean. Pure: values in, values out."""
