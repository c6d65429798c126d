"""Events for what programs have already: log records, function calls, user_events, the environment."""
