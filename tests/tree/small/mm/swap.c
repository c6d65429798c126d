#include <linux/swap_path.h>

#define CREATE_TRACE_POINTS
#include <trace/events/swap.h>

EXPORT_TRACEPOINT_SYMBOL_GPL(swap_in);

/* trace_swap_never() stands in a comment only, */
static const char text[] = "and trace_swap_never() in a string";

static int read_back(unsigned long address)
{
	trace_swap_in(address, 1);
	return 0;
}

#if 0
static void gone(void)
{
	trace_swap_never("dead");
}
#endif

SYSCALL_DEFINE1(swap_back, unsigned long, address)
{
	TRACE_SWAP_PATH(enter, "/swap");
	TRACE_SWAP_PATH(leave, "/swap");
	return read_back(address);
}
