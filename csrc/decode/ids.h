/* Numbers for keys: 0 for the first that comes, and so on; a hash table with open addressing. */
#ifndef TP_IDS_H
#define TP_IDS_H

#include <stdbool.h>
#include <stdint.h>

#define TP_NO_INDEX UINT32_MAX

struct tp_ids {
	uint64_t seed, n, room, n_places;
	uint64_t *keys;   /* by their numbers */
	uint32_t *places; /* numbers plus 1, 0 where a place is free */
};

bool tp_ids_init(struct tp_ids *ids);
void tp_ids_deinit(struct tp_ids *ids);
/* Make room for `more` keys, so that adding them cannot fail. */
bool tp_ids_reserve(struct tp_ids *ids, uint64_t more);
/* Give a key that has no number one; TP_NO_INDEX without memory. */
uint32_t tp_ids_add_new(struct tp_ids *ids, uint64_t key);

/* With a seed, keys of equal hash cannot be chosen in advance. */
static inline uint64_t tp_ids_hash(uint64_t seed, uint64_t key)
{
	uint64_t hash = (key ^ seed) * 0x9E3779B97F4A7C15ull;

	hash = (hash ^ hash >> 32 ^ seed) * 0xD1B54A32D192ED03ull;
	return hash ^ hash >> 29;
}

/* Return the number of a key, TP_NO_INDEX where it has none. */
static inline uint32_t tp_ids_find(const struct tp_ids *ids, uint64_t key)
{
	uint64_t mask = ids->n_places - 1;

	for (uint64_t place = tp_ids_hash(ids->seed, key) & mask; ids->places[place]; place = (place + 1) & mask)
		if (ids->keys[ids->places[place] - 1] == key)
			return ids->places[place] - 1;
	return TP_NO_INDEX;
}

/* Return the number of a key, a new one where it has none; TP_NO_INDEX without memory. */
static inline uint32_t tp_ids_add(struct tp_ids *ids, uint64_t key)
{
	uint32_t found = tp_ids_find(ids, key);

	return found == TP_NO_INDEX ? tp_ids_add_new(ids, key) : found;
}

#endif
