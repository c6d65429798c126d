"""What TP_printk means: a print format compiled once, run on records, giving the kernel's own text."""
