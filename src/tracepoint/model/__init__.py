"""The declaration model: what a human declared, as frozen values."""
