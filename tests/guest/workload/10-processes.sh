for part in processes priority signals timers memory sockets rings counters; do /lab/bin/events $part; done
