"""Declarations made and written as Python."""
