"""Commands on kernel trees."""
