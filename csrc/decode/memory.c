/* Memory that arrays share, and arrays that grow. */
#include "columns.h"

#include <sys/mman.h>

enum { ALIGNMENT = 64, SMALL_PAGE = 1 << 16 };

void tp_ask_huge(void *array, size_t size)
{
#ifdef MADV_HUGEPAGE
	uintptr_t step = 4096, start = ((uintptr_t)array + step - 1) & ~(step - 1);
	uintptr_t end = ((uintptr_t)array + size) & ~(step - 1);

	/* Refused where the pages of the machine are larger: then nothing is won, and nothing lost. */
	if (size >= TP_HUGE_SIZE && end > start)
		(void)madvise((void *)start, end - start, MADV_HUGEPAGE);
#else
	(void)array;
	(void)size;
#endif
}

/* Map memory that begins and ends with a huge page, or with a small one. */
static unsigned char *map_memory(size_t size, size_t *mapped)
{
	size_t rest = size % TP_HUGE_SIZE, step = rest > TP_HUGE_SIZE / 4 ? TP_HUGE_SIZE : SMALL_PAGE;
	size_t room = (size + step - 1) & ~(step - 1), before, whole = room + TP_HUGE_SIZE;
	unsigned char *bytes;

	if (whole < size)
		return NULL;
	bytes = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)bytes & (TP_HUGE_SIZE - 1);
	if (before)
		munmap(bytes, before);
	munmap(bytes + before + room, TP_HUGE_SIZE - before);
	tp_ask_huge(bytes + before, room);
	*mapped = room;
	return bytes + before;
}

bool tp_grow(void *array, uint64_t *room, uint64_t n, size_t item)
{
	uint64_t wanted = n + n / 2 + 16;
	void *made;

	if (n <= *room)
		return true;
	made = wanted > SIZE_MAX / item ? NULL : realloc(*(void **)array, wanted * item);
	if (!made)
		return false;
	tp_ask_huge(made, wanted * item);
	*(void **)array = made;
	*room = wanted;
	return true;
}

static struct tp_block *block_of(unsigned char *bytes, size_t size, size_t mapped)
{
	struct tp_block *block = bytes ? malloc(sizeof(*block)) : NULL;

	if (block)
		*block = (struct tp_block){ 1, size, mapped, bytes };
	else if (mapped)
		munmap(bytes, mapped);
	else
		free(bytes);
	return block;
}

struct tp_block *tp_block_create(size_t size)
{
	size_t alignment = size < TP_HUGE_SIZE ? ALIGNMENT : TP_HUGE_SIZE;
	void *bytes;

	if (posix_memalign(&bytes, alignment, size ? size : 1))
		return NULL;
	tp_ask_huge(bytes, size);
	return block_of(bytes, size, 0);
}

struct tp_block *tp_block_map(size_t size)
{
	size_t mapped = 0;
	unsigned char *bytes;

	if (size < TP_HUGE_SIZE)
		return tp_block_create(size);
	bytes = map_memory(size, &mapped);
	return block_of(bytes, size, mapped);
}

struct tp_block *tp_block_adopt(unsigned char *bytes, size_t size)
{
	struct tp_block *block = bytes ? malloc(sizeof(*block)) : tp_block_create(0);

	if (block && bytes)
		*block = (struct tp_block){ 1, size, 0, bytes };
	return block;
}

struct tp_block *tp_block_get(struct tp_block *block)
{
	__atomic_add_fetch(&block->n_references, 1, __ATOMIC_RELAXED);
	return block;
}

void tp_block_put(struct tp_block *block)
{
	if (!block || __atomic_sub_fetch(&block->n_references, 1, __ATOMIC_ACQ_REL))
		return;
	if (block->mapped)
		munmap(block->bytes, block->mapped);
	else
		free(block->bytes);
	free(block);
}
