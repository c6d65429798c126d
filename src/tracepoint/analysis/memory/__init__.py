"""Memory of the kernel: who allocates it, what was not freed, how long it lived."""
