"""How long from any event to any other."""
