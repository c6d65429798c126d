/* Numbers for keys: a hash table with open addressing. */
#include "ids.h"
#include "columns.h"

enum { FIRST_PLACES = 256 };

bool tp_ids_init(struct tp_ids *ids)
{
	*ids = (struct tp_ids){ .n_places = FIRST_PLACES, .seed = tp_hash_seed(ids) };
	ids->places = calloc(FIRST_PLACES, sizeof(*ids->places));
	return ids->places != NULL;
}

void tp_ids_deinit(struct tp_ids *ids)
{
	free(ids->keys);
	free(ids->places);
	*ids = (struct tp_ids){ 0 };
}

static void put(struct tp_ids *ids, uint64_t key, uint32_t number)
{
	uint64_t mask = ids->n_places - 1, place = tp_ids_hash(ids->seed, key) & mask;

	while (ids->places[place])
		place = (place + 1) & mask;
	ids->places[place] = number;
}

bool tp_ids_reserve(struct tp_ids *ids, uint64_t more)
{
	uint64_t n_places = ids->n_places;
	uint32_t *made;

	if (ids->n + more > INT32_MAX || !tp_grow(&ids->keys, &ids->room, ids->n + more, sizeof(*ids->keys)))
		return false;
	while (2 * (ids->n + more) > n_places)
		n_places *= 2;
	if (n_places == ids->n_places)
		return true;
	made = calloc(n_places, sizeof(*made));
	if (!made)
		return false;
	free(ids->places);
	ids->places = made;
	ids->n_places = n_places;
	for (uint64_t n = 0; n < ids->n; n++)
		put(ids, ids->keys[n], (uint32_t)n + 1);
	return true;
}

uint32_t tp_ids_add_new(struct tp_ids *ids, uint64_t key)
{
	if (!tp_ids_reserve(ids, 1))
		return TP_NO_INDEX;
	ids->keys[ids->n++] = key;
	put(ids, key, (uint32_t)ids->n);
	return (uint32_t)ids->n - 1;
}
