"""Variables that replace an assignment's inputs."""
