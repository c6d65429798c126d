"""Text to tokens to macro tree: knows C text, not tracing.

Pure: takes text, returns values.  Reading included files is asked of a loader that the caller
hands in.
"""
