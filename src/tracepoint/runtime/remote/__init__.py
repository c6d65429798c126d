"""Control from other processes: a socket, a client, a mount."""
