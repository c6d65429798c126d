"""The rings of this process: their pages, their files, and saving them."""
