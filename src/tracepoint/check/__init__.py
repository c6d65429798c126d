"""Lint: rules over the declaration model, its layout and its text."""
