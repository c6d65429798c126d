"""Commands for Python processes."""
