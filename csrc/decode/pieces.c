/*
 * Memory for what is collected: pieces of blocks that are touched as huge pages, whichever collector takes them.
 *
 * First touches of small pages took as long as all the work on the records.
 */
#include "collect.h"

#define POOL "tracepoint.pool"

enum { ALIGNMENT = 64, BLOCK_SIZE = 2 * TP_HUGE_SIZE, LARGE_PIECE = BLOCK_SIZE / 8 };

/* The block that the next piece is taken from; a block is freed with the last of its pieces. */
struct tp_pool {
	PyThread_type_lock lock;
	struct tp_block *block;
	size_t used;
};

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
