"""Scheduling: when threads ran, waited and slept, from the events of the scheduler."""
