"""Commands on declarations."""
