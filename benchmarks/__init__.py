"""The measured promises: `python -m benchmarks` prints one line each."""
