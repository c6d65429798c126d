"""Where the bytes are: from a declaration or an object to an `EventFormat`.

Pure: objects, BTF and format files come in as bytes or text.
"""
