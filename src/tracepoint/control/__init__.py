"""The running kernel's tracefs: events, filters, triggers, instances, and putting everything back."""
