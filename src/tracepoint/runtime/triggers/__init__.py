"""What is done when an event fires: triggers and histograms."""
