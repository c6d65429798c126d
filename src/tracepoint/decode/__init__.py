"""A trace as tables: the records of each event in columns, by time, over all CPUs."""
