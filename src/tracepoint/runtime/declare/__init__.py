"""Events of this process: declared as functions, classes, headers or text."""
