"""Functions of the kernel from function_graph: how often, how long, and from where they were called."""
