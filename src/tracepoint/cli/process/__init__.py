"""Commands on Python processes."""
