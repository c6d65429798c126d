static void probe(void *data, unsigned long address, int major)
{
}

static int start(void)
{
	return register_trace_swap_in(probe, 0);
}
