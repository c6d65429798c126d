"""CTF 1.8: the metadata language TSDL, its types, packets of streams, and their records in pages."""
