"""The language of `trigger` files: commands, and the parameters of histograms."""
