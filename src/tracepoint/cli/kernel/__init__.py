"""Commands on the running kernel."""
