"""What happens when an event fires: the mechanism, conversion, probes, faults."""
