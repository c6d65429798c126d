"""Queries of a tree."""
