"""Questions to a tree."""
