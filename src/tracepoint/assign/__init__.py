"""What `TP_fast_assign` means: from inputs to field values."""
