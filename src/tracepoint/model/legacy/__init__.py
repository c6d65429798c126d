"""Declarations in the form of 2008."""
