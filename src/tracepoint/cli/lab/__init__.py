"""Commands that build and boot kernels."""
