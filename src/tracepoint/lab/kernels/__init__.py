"""Kernels that are supported, their packages, headers and modules."""
