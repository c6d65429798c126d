"""Commands for recorded traces."""
