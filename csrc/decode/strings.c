/* A string table: a hash table with open addressing over strings stored consecutively. */
#include "columns.h"

#include <string.h>
#include <sys/random.h>

enum { FIRST_PLACES = 64 };

/* A product of 64 by 64 bits, its halves mixed: with a seed, texts of equal hash cannot be chosen in advance. */
static uint64_t mix(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
	uint64_t low = (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF), high = (a >> 32) * (b >> 32);
	uint64_t cross = (a >> 32) * (b & 0xFFFFFFFF) + ((a & 0xFFFFFFFF) * (b >> 32) ^ low >> 32);

	return low ^ cross ^ cross << 32 ^ (high + (cross >> 32));
#endif
}

static uint64_t hash_of(uint64_t seed, const unsigned char *data, uint64_t size)
{
	uint64_t hash = mix(seed ^ size, 0x9E3779B97F4A7C15ull), word;

	for (; size >= 8; data += 8, size -= 8) {
		memcpy(&word, data, 8);
		hash = mix(hash ^ word, seed | 1);
	}
	word = 0;
	if (size)
		memcpy(&word, data, size);
	return mix(hash ^ word, seed | 1) ^ seed;
}

uint64_t tp_hash_seed(const void *table)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) < 0)
		seed = (uint64_t)(uintptr_t)table * 0xD1B54A32D192ED03ull;
	return seed;
}

bool tp_strings_init(struct tp_strings *strings)
{
	*strings = (struct tp_strings){ .n_places = FIRST_PLACES, .seed = tp_hash_seed(strings) };
	strings->places = calloc(FIRST_PLACES, sizeof(*strings->places));
	return strings->places != NULL;
}

void tp_strings_deinit(struct tp_strings *strings)
{
	free(strings->hashes);
	free(strings->ends);
	free(strings->bytes);
	free(strings->places);
	*strings = (struct tp_strings){ 0 };
}

static void put(struct tp_strings *strings, uint64_t hash, uint32_t number)
{
	uint64_t mask = strings->n_places - 1, place = hash & mask;

	while (strings->places[place])
		place = (place + 1) & mask;
	strings->places[place] = number;
}

static bool make_places(struct tp_strings *strings)
{
	uint32_t *made = calloc(2 * strings->n_places, sizeof(*made));

	if (!made)
		return false;
	free(strings->places);
	strings->places = made;
	strings->n_places *= 2;
	for (uint64_t n = 0; n < strings->n; n++)
		put(strings, strings->hashes[n], (uint32_t)n + 1);
	return true;
}

static bool append(struct tp_strings *strings, uint64_t hash, const unsigned char *data, uint64_t size)
{
	uint64_t room = strings->room;

	if (!tp_grow(&strings->hashes, &room, strings->n + 1, sizeof(*strings->hashes)) ||
	    !tp_grow(&strings->ends, &strings->room, strings->n + 1, sizeof(*strings->ends)) ||
	    !tp_grow(&strings->bytes, &strings->byte_room, strings->n_bytes + size, 1))
		return false;
	if (size)
		memcpy(strings->bytes + strings->n_bytes, data, size);
	strings->n_bytes += size;
	strings->hashes[strings->n] = hash;
	strings->ends[strings->n++] = strings->n_bytes;
	return true;
}

int64_t tp_strings_add(struct tp_strings *strings, const unsigned char *data, uint64_t size)
{
	uint64_t hash = hash_of(strings->seed, data, size), mask = strings->n_places - 1;

	for (uint64_t place = hash & mask; strings->places[place]; place = (place + 1) & mask) {
		uint64_t n = strings->places[place] - 1, start = tp_strings_start(strings, n);

		if (strings->hashes[n] == hash && strings->ends[n] - start == size &&
		    (!size || !memcmp(strings->bytes + start, data, size)))
			return (int64_t)n;
	}
	/* Indices are int32 in the columns. */
	if (strings->n >= INT32_MAX || (strings->n >= strings->n_places / 2 && !make_places(strings)) ||
	    !append(strings, hash, data, size))
		return -1;
	put(strings, hash, (uint32_t)strings->n);
	return (int64_t)strings->n - 1;
}
