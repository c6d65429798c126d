"""Events made at run time by text: synthetic events and event probes."""
