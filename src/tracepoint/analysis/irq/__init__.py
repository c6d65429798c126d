"""Interrupts, softirqs, timers and work: how long they ran, and how long they waited."""
