"""See events fire: simulation in this process, stubs compiled against kernel headers, guests."""
