"""Requests to block devices: how long they waited and took, and what became of them."""
