/*
 * Records out of pages into columns, and columns to others through the Arrow C data interface.
 *
 * sieve.c chooses records, sift.c writes pages of those, collect.c finds those of events, count.c and tasks.c count
 * those of events and tasks, merge.c puts them in the order of time, columns.c copies their fields, strings.c keeps
 * each string once, pieces.c has the memory of what is collected, join.c makes one column of several, numbers.c makes
 * columns of what is computed, clock.c shifts times, before.c finds times before others, ids.c numbers keys, symbols.c
 * splits kallsyms, arrow.c hands over.
 * The twins are in src/tracepoint/decode.
 */
#ifndef TP_DECODE_COLUMNS_H
#define TP_DECODE_COLUMNS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

/* One record: `data` stays valid as long as the rows that it belongs to. */
struct tp_record {
	int64_t stamp;
	const unsigned char *data;
	uint32_t size;
	int32_t cpu;
};

/* Memory that several arrays share; freed with the last reference, without the GIL. */
struct tp_block {
	size_t n_references, size, mapped;
	unsigned char *bytes;
};

/* A string table: each string once, in the order in which they came. */
struct tp_strings {
	uint64_t seed, n, room, n_bytes, byte_room, n_places;
	uint64_t *hashes, *ends;
	unsigned char *bytes;
	uint32_t *places;
};

/* Return what a hash table at an address mixes into its hashes. */
uint64_t tp_hash_seed(const void *table);
bool tp_strings_init(struct tp_strings *strings);
void tp_strings_deinit(struct tp_strings *strings);
/* Return the index of a string, added when it is new; -1 without memory. */
int64_t tp_strings_add(struct tp_strings *strings, const unsigned char *data, uint64_t size);
static inline uint64_t tp_strings_start(const struct tp_strings *strings, uint64_t index)
{
	return index ? strings->ends[index - 1] : 0;
}

/* Make room for `n` items, half as much again so that growing stays cheap. */
bool tp_grow(void *array, uint64_t *room, uint64_t n, size_t item);

/* Ask for huge pages where an array is large: first touches cost as much as the work on it otherwise. */
enum { TP_HUGE_SIZE = 2 << 20 };
void tp_ask_huge(void *array, size_t size);
/* Make a block, aligned for Arrow and touched as huge pages where it is large; NULL without memory. */
struct tp_block *tp_block_create(size_t size);
/* The same, mapped: what malloc() gets back it may keep, and many blocks would stay with the process. */
struct tp_block *tp_block_map(size_t size);
/* Make a block of memory from malloc(), NULL for none. */
struct tp_block *tp_block_adopt(unsigned char *bytes, size_t size);
struct tp_block *tp_block_get(struct tp_block *block);
void tp_block_put(struct tp_block *block);
/* Return a Python object with the bytes of a block, which it takes over. */
PyObject *tp_buffer_of(PyObject *module, struct tp_block *block);
/* Hand an array of malloc() over as such an object: what it has room for beyond its items is given back. */
PyObject *tp_take_array(PyObject *module, void *array, uint64_t n, size_t item);
int tp_add_buffer_type(PyObject *module);

PyObject *tp_count_pages(PyObject *module, PyObject *args);
PyObject *tp_count_tasks(PyObject *module, PyObject *args);
PyObject *tp_make_clock(PyObject *module, PyObject *args);
PyObject *tp_sieve(PyObject *module, PyObject *args);
PyObject *tp_sift_pages(PyObject *module, PyObject *args);
PyObject *tp_make_pool(PyObject *module, PyObject *args);
PyObject *tp_collector(PyObject *module, PyObject *args);
PyObject *tp_collect_pages(PyObject *module, PyObject *args);
PyObject *tp_collect_file(PyObject *module, PyObject *args);
PyObject *tp_collected(PyObject *module, PyObject *capsule);
PyObject *tp_remap(PyObject *module, PyObject *args);
PyObject *tp_join_ends(PyObject *module, PyObject *parts);
PyObject *tp_show_times(PyObject *module, PyObject *args);
PyObject *tp_merge_rows(PyObject *module, PyObject *args);
PyObject *tp_start_columns(PyObject *module, PyObject *args);
PyObject *tp_fill_columns(PyObject *module, PyObject *args);
PyObject *tp_finish_columns(PyObject *module, PyObject *args);
PyObject *tp_sort_numbers(PyObject *module, PyObject *args);
PyObject *tp_null_bits(PyObject *module, PyObject *args);
PyObject *tp_count_up(PyObject *module, PyObject *args);
PyObject *tp_add_lengths(PyObject *module, PyObject *args);
PyObject *tp_times_before(PyObject *module, PyObject *args);
PyObject *tp_symbol_lines(PyObject *module, PyObject *args);
PyObject *tp_arrow_schema(PyObject *module, PyObject *spec);
PyObject *tp_arrow_array(PyObject *module, PyObject *spec);
PyObject *tp_arrow_stream(PyObject *module, PyObject *spec);
PyObject *tp_arrow_parts(PyObject *module, PyObject *args);

#define TP_COLUMN_METHODS											\
	{ "count_pages", tp_count_pages, METH_VARARGS, "count_pages(data, layout, counts)" },			\
	{ "count_tasks", tp_count_tasks, METH_VARARGS, "count_tasks(data, layout, pid_at)" },			\
	{ "clock", tp_make_clock, METH_VARARGS, "clock(mult, n_bits, offset, interpolates, samples of each CPU)" }, \
	{ "sieve", tp_sieve, METH_VARARGS, "sieve(slots, new_ids, programs, layout, start, stop, clock)" },	\
	{ "sift_pages", tp_sift_pages, METH_VARARGS, "sift_pages(sieve, data, cpu)" },				\
	{ "pool", tp_make_pool, METH_NOARGS, "pool(): memory that collectors share" },				\
	{ "collector", tp_collector, METH_VARARGS, "collector(pool, sieve, slots, n_slots, layout, start, stop)" },	\
	{ "collect_pages", tp_collect_pages, METH_VARARGS, "collect_pages(collector, data, cpu)" },		\
	{ "collect_file", tp_collect_file, METH_VARARGS, "collect_file(collector, fd, at, size, cpu): bytes read" },	\
	{ "collected", tp_collected, METH_O, "collected(collector): pages, the last early and the first late one" }, \
	{ "remap", tp_remap, METH_VARARGS, "remap(indices, table): other numbers for those of words" },		\
	{ "join_ends", tp_join_ends, METH_O, "join_ends(tuple of ends): one array of ends" },			\
	{ "show_times", tp_show_times, METH_VARARGS, "show_times(collector, clock)" },			\
	{ "merge_rows", tp_merge_rows, METH_VARARGS, "merge_rows(collectors, slot)" },				\
	{ "start_columns", tp_start_columns, METH_VARARGS, "start_columns(rows, plan, is_big_endian, n_slices)" }, \
	{ "fill_columns", tp_fill_columns, METH_VARARGS, "fill_columns(columns, slice)" },			\
	{ "finish_columns", tp_finish_columns, METH_VARARGS, "finish_columns(columns)" },			\
	{ "sort_numbers", tp_sort_numbers, METH_VARARGS, "sort_numbers(int64 array): sorted, and their sum" },	\
	{ "null_bits", tp_null_bits, METH_VARARGS, "null_bits(array, size, null): how many are null, a bit each" }, \
	{ "count_up", tp_count_up, METH_VARARGS, "count_up(n): the numbers below n" },				\
	{ "add_lengths", tp_add_lengths, METH_VARARGS, "add_lengths(starts, lengths): their ends" },		\
	{ "times_before", tp_times_before, METH_VARARGS,							\
	  "times_before(stamps, cpus, (cpu, stops) each): the last time of a CPU before each stop" },		\
	{ "symbol_lines", tp_symbol_lines, METH_VARARGS,							\
	  "symbol_lines(text of kallsyms): addresses, starts of names, types, is sorted; None: unusual" },	\
	{ "arrow_schema", tp_arrow_schema, METH_O, "arrow_schema(array)" },					\
	{ "arrow_array", tp_arrow_array, METH_O, "arrow_array(array)" },					\
	{ "arrow_stream", tp_arrow_stream, METH_O, "arrow_stream(array)" },					\
	{ "arrow_parts", tp_arrow_parts, METH_VARARGS, "arrow_parts(array without rows, iterator of arrays)" }

#endif
