"""Traps: which vector, who raised it, and the signal that it became."""
