"""The index of a kernel tree, and where it is kept."""
