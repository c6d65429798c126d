"""What the rings of a guest hold, read to the end however slow the guest is."""


def drain(pipe: str, target: str) -> str:
    """Return shell commands that move what a pipe of tracefs holds to a file; recording is off.

    A read of an empty ring waits, so what `cat` had read before has been written by then.  A number of seconds
    says nothing of it: the processors of a guest may not run for that long on a busy machine.
    """
    waits = "grep -qs ring_buffer_wait /proc/$!/wchan"
    return (
        f"cat {pipe} >{target} & while [ -e /proc/$! ] && ! {waits}; do sleep 0.1; done; "
        "kill $! 2>/dev/null || :"
    )
