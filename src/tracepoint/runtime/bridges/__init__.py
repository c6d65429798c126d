"""Events for what programs have already: logs, function calls, user_events, Prometheus, the environment."""
