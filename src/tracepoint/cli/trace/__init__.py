"""Commands on recorded traces."""
