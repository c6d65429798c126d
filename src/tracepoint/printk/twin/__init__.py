"""Print programs in Python: each op as a function of the record.  This is what the ops mean."""
