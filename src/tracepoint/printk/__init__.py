"""What `TP_printk` means: from a print format and a record to the line the kernel prints."""
