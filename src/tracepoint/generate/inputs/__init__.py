"""Variables in the place of an assignment's inputs."""
