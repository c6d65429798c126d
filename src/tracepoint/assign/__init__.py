"""What `TP_fast_assign` means: from input inputs to field values."""
