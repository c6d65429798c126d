"""Records: the pages they stand in, and the values of their fields."""
