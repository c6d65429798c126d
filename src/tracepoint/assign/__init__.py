"""What `TP_fast_assign` means: from leaf inputs to field values."""
