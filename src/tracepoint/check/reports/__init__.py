"""Findings as text, JSON, SARIF, and for CI systems."""
