"""Locks that tasks waited for."""
