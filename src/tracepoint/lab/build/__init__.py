"""Modules, stubs and kernels compiled."""
