"""Records: the pages that hold them, and the values of their fields."""
