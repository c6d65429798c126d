"""See it fire: rehearsal in this process, stubs compiled against kernel headers, guests."""
