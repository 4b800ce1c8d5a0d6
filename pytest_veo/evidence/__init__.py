"""Why a leak is a leak: allocations, holders, hints."""
