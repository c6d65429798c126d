/* Fires trace_swap_enter() and its like; the name of the event is pasted together. */
#define TRACE_SWAP_PATH(type, ...)			\
	do {						\
		if (trace_swap_##type##_enabled())	\
			trace_swap_##type(__VA_ARGS__);	\
	} while (0)
