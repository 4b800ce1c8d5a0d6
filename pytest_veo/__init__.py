"""GPU regression testing for pytest: leaks, memory budgets and frame pacing."""

from __future__ import annotations


__version__ = "0.1.0"
