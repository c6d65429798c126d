"""What mypy takes `char_array` for: it refuses a number in brackets wherever it knows the name."""

from typing import Any

char_array: Any
