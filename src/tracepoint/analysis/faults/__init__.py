"""Page faults: who, where, why, how long, and whether they had to read."""
