"""Spans of OpenTelemetry from a trace: those that were recorded as events, and any begins and ends."""
