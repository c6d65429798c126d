"""Swapping and reclaim: what left memory, what came back, who waited for it."""
