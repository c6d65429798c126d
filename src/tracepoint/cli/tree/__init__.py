"""Commands for kernel trees."""
