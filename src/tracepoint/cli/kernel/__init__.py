"""Commands for the running kernel."""
