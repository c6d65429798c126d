/* Opens a recording with KernelShark's library and prints what it sees of every record. */
#include <stdio.h>
#include <stdlib.h>
#include "libkshark.h"

int main(int argc, char **argv)
{
	struct kshark_context *context = NULL;
	struct kshark_entry **rows = NULL;
	ssize_t count, i;
	int stream;

	if (argc != 2 || !kshark_instance(&context))
		return 2;
	stream = kshark_open(context, argv[1]);
	if (stream < 0)
		return 3;
	count = kshark_load_entries(context, stream, &rows);
	for (i = 0; i < count; i++) {
		char *name = kshark_get_event_name(rows[i]);
		char *info = kshark_get_info(rows[i]);

		printf("%d %d %lld %s %s\n", rows[i]->cpu, rows[i]->pid, (long long)rows[i]->ts, name, info);
		free(name);
		free(info);
	}
	kshark_close_all(context);
	return count < 0 ? 4 : 0;
}
