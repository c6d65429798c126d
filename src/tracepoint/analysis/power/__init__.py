"""Power: in which states CPUs were idle, at which frequencies they ran."""
