"""The kernel's event filter language: text to predicate tree, predicate tree to a program for one record."""
