"""A kernel booted in QEMU, and work in it."""
