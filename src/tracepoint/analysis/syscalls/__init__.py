"""The system calls of tasks: how long they took, and what they failed with."""
