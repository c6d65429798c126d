/*
 * Memory for what is collected: pieces of blocks that are touched as huge pages, whichever collector takes them.
 *
 * First touches of small pages took as long as all the work on the records.
 */
#include "collect.h"

#include <sys/mman.h>

#define POOL "tracepoint.pool"

enum { ALIGNMENT = 64, SMALL_PAGE = 1 << 16, BLOCK_SIZE = 2 * TP_HUGE_SIZE, LARGE_PIECE = BLOCK_SIZE / 8 };

/* The block that the next piece is taken from; a block is freed with the last of its pieces. */
struct tp_pool {
	PyThread_type_lock lock;
	struct tp_block *block;
	size_t used;
};

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
static void *map_memory(size_t size, size_t *mapped)
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

void *tp_memory(size_t size, size_t *mapped)
{
	size_t alignment = size < TP_HUGE_SIZE ? ALIGNMENT : TP_HUGE_SIZE;
	void *bytes;

	/* What malloc() gets back it may keep: the many blocks of a pool would stay with the process. */
	if (mapped && size >= TP_HUGE_SIZE)
		return map_memory(size, mapped);
	if (mapped)
		*mapped = 0;
	if (posix_memalign(&bytes, alignment, size ? size : 1))
		return NULL;
	tp_ask_huge(bytes, size);
	return bytes;
}

void tp_memory_free(void *bytes, size_t mapped)
{
	if (mapped)
		munmap(bytes, mapped);
	else
		free(bytes);
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

static void pool_free(PyObject *capsule)
{
	struct tp_pool *pool = tp_pool_of(capsule);

	tp_block_put(pool->block);
	PyThread_free_lock(pool->lock);
	free(pool);
}

struct tp_pool *tp_pool_of(PyObject *capsule)
{
	return PyCapsule_GetPointer(capsule, POOL);
}

PyObject *tp_make_pool(PyObject *module, PyObject *args)
{
	struct tp_pool *pool = calloc(1, sizeof(*pool));
	PyObject *made = NULL;

	(void)module;
	(void)args;
	if (pool)
		pool->lock = PyThread_allocate_lock();
	if (pool && pool->lock)
		made = PyCapsule_New(pool, POOL, pool_free);
	else
		PyErr_NoMemory();
	if (pool && !made) {
		if (pool->lock)
			PyThread_free_lock(pool->lock);
		free(pool);
	}
	return made;
}

/* Take a part of the pool's block, or of a new one: give its bytes and a reference to the block. */
static unsigned char *take_part(struct tp_pool *pool, size_t size, struct tp_block **block)
{
	unsigned char *bytes = NULL;

	PyThread_acquire_lock(pool->lock, WAIT_LOCK);
	if (!pool->block || pool->block->size - pool->used < size) {
		tp_block_put(pool->block);
		pool->block = tp_block_map(BLOCK_SIZE);
		pool->used = 0;
	}
	if (pool->block) {
		*block = tp_block_get(pool->block);
		bytes = pool->block->bytes + pool->used;
		pool->used += size;
	}
	PyThread_release_lock(pool->lock);
	return bytes;
}

struct tp_piece *tp_piece_create(struct tp_pool *pool, size_t size)
{
	size_t whole = (sizeof(struct tp_piece) + size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	struct tp_block *block = NULL;
	struct tp_piece *piece;

	if (whole < size)
		return NULL;
	if (whole <= LARGE_PIECE) {
		piece = (struct tp_piece *)take_part(pool, whole, &block);
	} else {
		block = tp_block_map(whole);
		piece = block ? (struct tp_piece *)block->bytes : NULL;
	}
	if (piece)
		*piece = (struct tp_piece){ .block = block, .size = whole - sizeof(*piece) };
	return piece;
}

void tp_free_pieces(struct tp_piece *piece)
{
	while (piece) {
		struct tp_piece *next = piece->next;

		tp_block_put(piece->block);
		piece = next;
	}
}
