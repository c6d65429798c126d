"""Probes for LTTng."""
