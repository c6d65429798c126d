"""SQL over a trace and what analyses made of it, with the names of Perfetto's SQL library."""
