"""Commands for declarations."""
