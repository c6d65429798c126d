/*
 * Copies what a trace_pipe_raw file holds, page by page, and ends when it is empty.
 * Arguments: the file, the output, and the size of a page of the ring buffer.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	if (count != 4)
		return 2;
	size_t size = strtoul(arguments[3], NULL, 10);
	char *page = calloc(1, size);
	int in = open(arguments[1], O_RDONLY | O_NONBLOCK);
	FILE *out = fopen(arguments[2], "wb");
	ssize_t got;

	if (in < 0 || !out || !page)
		return 3;
	while ((got = read(in, page, size)) > 0) {
		if ((size_t)got < size)
			memset(page + got, 0, size - got);
		if (fwrite(page, size, 1, out) != 1)
			return 4;
	}
	if (got < 0 && errno != EAGAIN)
		return 5;
	return fclose(out) ? 6 : 0;
}
