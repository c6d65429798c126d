"""A recording as CTF 1.8, for babeltrace2 and what else reads LTTng's format."""
