/*
 * Copying the fields of records into columns, a block of records at a time so that they stay in the cache.
 *
 * The twin is src/tracepoint/decode/fill.py.  Numbers go straight to where they stay; texts and lists of a slice
 * of the rows are its own until finish_columns() joins them, so that slices can be filled by several threads.
 */
#include "columns.h"
#include "head.h"
#include "../hints.h"
#include "../location.h"

#define COLUMNS "tracepoint.columns"

enum { BLOCK_ROWS = 128, SLICE_STEP = 64, LOCATION_SIZE = 4, CACHE_LINE = 64,
       TASK_COMM_LEN = 16, NAME_BITS = 8, NO_INDEX = -1 };

/* As in class Kind and class Place of src/tracepoint/decode/plan.py. */
enum kind { KIND_STAMP, KIND_CPU, KIND_NUMBER, KIND_TEXT, KIND_LIST, KIND_BYTES, KIND_BITS };
enum place { PLACE_FIXED, PLACE_DATA_LOC, PLACE_REL_LOC, PLACE_REST };

struct column {
	unsigned int kind, place, offset, size, element;
	struct tp_block *values, *validity;
};

/* The index of a short text that came before. */
struct name {
	uint64_t words[2];
	int64_t index;
};

/* What one slice has of a column beside numbers; `names` is there for names of tasks. */
struct rest {
	struct name *names;
	struct tp_strings strings;
	unsigned char *bytes;
	uint64_t n_bytes, room, n_nulls;
};

struct slice {
	uint64_t first, last;
	struct rest *rests;
	bool is_done;
};

struct columns {
	PyObject *rows_capsule;
	const struct tp_rows *rows;
	struct column *columns;
	struct slice *slices;
	unsigned int n_columns, n_slices;
	int is_big;
};

static unsigned int width_of(const struct column *column)
{
	switch (column->kind) {
	case KIND_CPU:
	case KIND_TEXT:
		return 4;
	case KIND_NUMBER:
		return column->size;
	default:
		return 8;
	}
}

static bool has_offsets(const struct column *column)
{
	return column->kind == KIND_LIST || column->kind == KIND_BYTES || column->kind == KIND_BITS;
}

/* The bytes of an item of a list: of a mask, whose elements are words, the number of a bit. */
static unsigned int item_size(const struct column *column)
{
	return column->kind == KIND_BITS ? sizeof(uint32_t) : column->element;
}

static void set_null(const struct column *column, struct rest *rest, uint64_t row)
{
	column->validity->bytes[row >> 3] &= (unsigned char)~(1u << (row & 7));
	rest->n_nulls++;
}

/* Where the bytes of a field are in a record; false when the record does not hold them all. */
static bool locate(const struct column *column, bool is_big, const struct tp_record *record, uint64_t *at,
		   uint64_t *size)
{
	*at = column->offset;
	*size = column->size;
	if (column->place == PLACE_REST) {
		*size = record->size > *at ? record->size - *at : 0;
	} else if (column->place != PLACE_FIXED) {
		uint32_t word;

		if (*at + LOCATION_SIZE > record->size)
			return false;
		word = tp_page_word(record->data + *at, is_big);
		*at = tp_location_start(word) + (column->place == PLACE_REL_LOC ? *at + LOCATION_SIZE : 0);
		*size = tp_location_size(word);
	}
	return *at + *size <= record->size;
}

#define COPY(type)                                                                                                     \
	for (uint64_t n = first; n < last; n++)                                                                        \
		memcpy(to + n * sizeof(type), records[n].data + column->offset, sizeof(type));                         \
	return

/* Numbers in the byte order of this machine, where all records of a block hold them. */
static void copy_plain(const struct column *column, const struct tp_record *records, uint64_t first, uint64_t last)
{
	unsigned char *to = column->values->bytes;

	switch (column->size) {
	case 1:
		COPY(uint8_t);
	case 2:
		COPY(uint16_t);
	case 4:
		COPY(uint32_t);
	case 8:
		COPY(uint64_t);
	}
}

static void swap_bytes(unsigned char *data, unsigned int size)
{
	for (unsigned int low = 0, high = size - 1; low < high; low++, high--) {
		unsigned char held = data[low];

		data[low] = data[high];
		data[high] = held;
	}
}

/* `least` is the size of the shortest record of the block. */
static void copy_numbers(const struct column *column, bool is_big, const struct tp_record *records, uint64_t first,
			 uint64_t last, uint32_t least, struct rest *rest)
{
	bool is_swapped = is_big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	uint64_t end = (uint64_t)column->offset + column->size;

	if (!is_swapped && end <= least) {
		copy_plain(column, records, first, last);
		return;
	}
	for (uint64_t n = first; n < last; n++) {
		unsigned char *to = column->values->bytes + n * column->size;

		if (end > records[n].size) {
			memset(to, 0, column->size);
			set_null(column, rest, n);
			continue;
		}
		memcpy(to, records[n].data + column->offset, column->size);
		if (is_swapped)
			swap_bytes(to, column->size);
	}
}

/* Cut a word off at its first zero byte; `*has_ended` says whether it has one, or the word before had. */
static inline uint64_t cut_word(uint64_t word, bool *has_ended)
{
	uint64_t zeros = (word - 0x0101010101010101ull) & ~word & 0x8080808080808080ull;

	if (*has_ended)
		return 0;
	if (!zeros)
		return word;
	*has_ended = true;
	return word & (((zeros & -zeros) >> 7) - 1);
}

/*
 * Return where the index of the name of a task is kept, an array of 16 bytes: many records, few names.
 * What follows the NUL does not count.
 */
static inline struct name *name_place(struct name *names, const unsigned char *data)
{
	uint64_t words[2];
	bool has_ended = false;
	struct name *name;

	memcpy(words, data, sizeof(words));
	words[0] = cut_word(words[0], &has_ended);
	words[1] = cut_word(words[1], &has_ended);
	name = &names[(words[0] ^ words[1] * 0x9E3779B97F4A7C15ull) * 0xD1B54A32D192ED03ull >> (64 - NAME_BITS)];
	if (name->words[0] != words[0] || name->words[1] != words[1])
		*name = (struct name){ { words[0], words[1] }, NO_INDEX };
	return name;
}

static bool copy_texts(const struct column *column, bool is_big, const struct tp_record *records, uint64_t first,
		       uint64_t last, struct rest *rest)
{
	int32_t *to = (int32_t *)column->values->bytes;

	for (uint64_t n = first; n < last; n++) {
		const unsigned char *data, *end;
		uint64_t at, size;
		int64_t index;

		to[n] = 0;
		if (!locate(column, is_big, &records[n], &at, &size)) {
			set_null(column, rest, n);
			continue;
		}
		data = records[n].data + at;
		if (rest->names) {
			struct name *name = name_place(rest->names, data);

			if (name->index == NO_INDEX)
				name->index = tp_strings_add(&rest->strings, data, strnlen((const char *)data, size));
			if (name->index < 0)
				return false;
			to[n] = (int32_t)name->index;
			continue;
		}
		end = size ? memchr(data, 0, size) : NULL;
		index = tp_strings_add(&rest->strings, data, end ? (uint64_t)(end - data) : size);
		if (index < 0)
			return false;
		to[n] = (int32_t)index;
	}
	return true;
}

/* Offsets count elements from the begin of the slice; row n ends at offset n + 1. */
static bool copy_lists(const struct column *column, bool is_big, const struct tp_record *records, uint64_t first,
		       uint64_t last, struct rest *rest)
{
	bool is_swapped = column->element > 1 && is_big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	int64_t *to = (int64_t *)column->values->bytes;

	for (uint64_t n = first; n < last; n++) {
		uint64_t at, size;

		if (!locate(column, is_big, &records[n], &at, &size) || size % column->element) {
			set_null(column, rest, n);
		} else if (size) {
			if (!tp_grow(&rest->bytes, &rest->room, rest->n_bytes + size, 1))
				return false;
			memcpy(rest->bytes + rest->n_bytes, records[n].data + at, size);
			for (uint64_t item = 0; is_swapped && item < size; item += column->element)
				swap_bytes(rest->bytes + rest->n_bytes + item, column->element);
			rest->n_bytes += size;
		}
		to[n + 1] = (int64_t)(rest->n_bytes / column->element);
	}
	return true;
}

static uint64_t read_long(const unsigned char *data, unsigned int size, bool is_big)
{
	uint64_t first = tp_page_word(data, is_big), second;

	if (size == 4)
		return first;
	second = tp_page_word(data + 4, is_big);
	return is_big ? first << 32 | second : second << 32 | first;
}

/* Masks: the numbers of the bits that are set, instead of the words that hold them. */
static bool copy_bits(const struct column *column, bool is_big, const struct tp_record *records, uint64_t first,
		      uint64_t last, struct rest *rest)
{
	int64_t *to = (int64_t *)column->values->bytes;

	for (uint64_t n = first; n < last; n++) {
		uint64_t at, size;

		if (!locate(column, is_big, &records[n], &at, &size) || size % column->element) {
			set_null(column, rest, n);
			size = 0;
		}
		for (uint64_t done = 0; done < size; done += column->element) {
			uint64_t word = read_long(records[n].data + at + done, column->element, is_big);
			uint64_t room = (uint64_t)__builtin_popcountll(word) * sizeof(uint32_t);

			if (room && !tp_grow(&rest->bytes, &rest->room, rest->n_bytes + room, 1))
				return false;
			for (; word; word &= word - 1) {
				uint32_t bit = (uint32_t)(8 * done) + (uint32_t)__builtin_ctzll(word);

				memcpy(rest->bytes + rest->n_bytes, &bit, sizeof(bit));
				rest->n_bytes += sizeof(bit);
			}
		}
		to[n + 1] = (int64_t)(rest->n_bytes / sizeof(uint32_t));
	}
	return true;
}

static bool fill_block(const struct columns *columns, struct slice *slice, uint64_t first, uint64_t last)
{
	const struct tp_record *records = columns->rows->records;
	uint32_t least = UINT32_MAX;

	for (uint64_t n = first; n < last; n++)
		least = records[n].size < least ? records[n].size : least;
	for (unsigned int c = 0; c < columns->n_columns; c++) {
		const struct column *column = &columns->columns[c];
		struct rest *rest = &slice->rests[c];

		switch (column->kind) {
		case KIND_STAMP:
			for (uint64_t n = first; n < last; n++)
				((int64_t *)column->values->bytes)[n] = records[n].stamp;
			break;
		case KIND_CPU:
			for (uint64_t n = first; n < last; n++)
				((int32_t *)column->values->bytes)[n] = records[n].cpu;
			break;
		case KIND_NUMBER:
			copy_numbers(column, columns->is_big, records, first, last, least, rest);
			break;
		case KIND_TEXT:
			if (!copy_texts(column, columns->is_big, records, first, last, rest))
				return false;
			break;
		case KIND_BITS:
			if (!copy_bits(column, columns->is_big, records, first, last, rest))
				return false;
			break;
		default:
			if (!copy_lists(column, columns->is_big, records, first, last, rest))
				return false;
		}
	}
	return true;
}

static bool fill(const struct columns *columns, struct slice *slice)
{
	for (uint64_t at = slice->first; at < slice->last; at += BLOCK_ROWS) {
		uint64_t last = slice->last - at < BLOCK_ROWS ? slice->last : at + BLOCK_ROWS;

		/* The next block comes from other places of other CPUs. */
		for (uint64_t n = last; n < slice->last && n < last + BLOCK_ROWS; n++) {
			__builtin_prefetch(columns->rows->records[n].data);
			__builtin_prefetch(columns->rows->records[n].data + CACHE_LINE);
		}
		if (!fill_block(columns, slice, at, last))
			return false;
	}
	return true;
}

static void columns_free(PyObject *capsule)
{
	struct columns *columns = PyCapsule_GetPointer(capsule, COLUMNS);

	for (unsigned int s = 0; columns->slices && s < columns->n_slices; s++) {
		for (unsigned int c = 0; columns->slices[s].rests && c < columns->n_columns; c++) {
			tp_strings_deinit(&columns->slices[s].rests[c].strings);
			free(columns->slices[s].rests[c].bytes);
			free(columns->slices[s].rests[c].names);
		}
		free(columns->slices[s].rests);
	}
	for (unsigned int c = 0; columns->columns && c < columns->n_columns; c++) {
		tp_block_put(columns->columns[c].values);
		tp_block_put(columns->columns[c].validity);
	}
	free(columns->columns);
	free(columns->slices);
	Py_XDECREF(columns->rows_capsule);
	free(columns);
}

static bool read_plan(struct columns *columns, PyObject *plan)
{
	for (unsigned int c = 0; c < columns->n_columns; c++) {
		struct column *column = &columns->columns[c];
		bool is_number;

		if (!PyArg_ParseTuple(PyTuple_GET_ITEM(plan, c), "IIIII", &column->kind, &column->place,
				      &column->offset, &column->size, &column->element))
			return false;
		is_number = column->size == 1 || column->size == 2 || column->size == 4 || column->size == 8;
		if (column->kind > KIND_BITS || column->place > PLACE_REST || !column->element ||
		    column->element > 16 || (column->kind == KIND_NUMBER && !is_number) ||
		    (column->kind == KIND_BITS && column->element != 4 && column->element != 8)) {
			PyErr_SetString(PyExc_ValueError, "not a plan of columns");
			return false;
		}
	}
	return true;
}

static bool init_texts(const struct column *column, struct rest *rest)
{
	bool is_name = column->place == PLACE_FIXED && column->size == TASK_COMM_LEN &&
		       __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

	if (is_name) {
		rest->names = calloc(1 << NAME_BITS, sizeof(*rest->names));
		for (int n = 0; rest->names && n < 1 << NAME_BITS; n++)
			rest->names[n].index = NO_INDEX;
	}
	return (!is_name || rest->names) && tp_strings_init(&rest->strings);
}

static bool make_room(struct columns *columns)
{
	uint64_t n_rows = columns->rows->n, step = n_rows / columns->n_slices + 1;

	step = (step + SLICE_STEP - 1) / SLICE_STEP * SLICE_STEP;
	for (unsigned int c = 0; c < columns->n_columns; c++) {
		struct column *column = &columns->columns[c];

		column->values = tp_block_create((n_rows + has_offsets(column)) * width_of(column));
		column->validity = tp_block_create((n_rows + 7) / 8);
		if (!column->values || !column->validity)
			return false;
		memset(column->validity->bytes, 0xFF, column->validity->size);
		if (has_offsets(column))
			memset(column->values->bytes, 0, width_of(column));
	}
	for (unsigned int s = 0; s < columns->n_slices; s++) {
		struct slice *slice = &columns->slices[s];

		slice->first = s * step < n_rows ? s * step : n_rows;
		slice->last = (s + 1) * step < n_rows ? (s + 1) * step : n_rows;
		slice->rests = calloc(columns->n_columns + 1, sizeof(*slice->rests));
		if (!slice->rests)
			return false;
		for (unsigned int c = 0; c < columns->n_columns; c++)
			if (columns->columns[c].kind == KIND_TEXT && !init_texts(&columns->columns[c], &slice->rests[c]))
				return false;
	}
	return true;
}

PyObject *tp_start_columns(PyObject *module, PyObject *args)
{
	struct columns *columns = calloc(1, sizeof(*columns));
	PyObject *rows, *plan, *made;

	(void)module;
	made = columns ? PyCapsule_New(columns, COLUMNS, columns_free) : PyErr_NoMemory();
	if (!made) {
		free(columns);
		return NULL;
	}
	if (!PyArg_ParseTuple(args, "OO!pI:start_columns", &rows, &PyTuple_Type, &plan, &columns->is_big,
			      &columns->n_slices))
		goto error;
	columns->rows = tp_rows_of(rows);
	if (!columns->rows)
		goto error;
	columns->rows_capsule = Py_NewRef(rows);
	columns->n_slices = columns->n_slices ? columns->n_slices : 1;
	columns->n_columns = (unsigned int)PyTuple_GET_SIZE(plan);
	columns->columns = calloc(columns->n_columns + 1, sizeof(*columns->columns));
	columns->slices = calloc(columns->n_slices, sizeof(*columns->slices));
	if (!columns->columns || !columns->slices) {
		PyErr_NoMemory();
		goto error;
	}
	if (!read_plan(columns, plan))
		goto error;
	if (!make_room(columns)) {
		PyErr_NoMemory();
		goto error;
	}
	return made;
error:
	Py_DECREF(made);
	return NULL;
}

PyObject *tp_fill_columns(PyObject *module, PyObject *args)
{
	struct columns *columns;
	PyObject *capsule;
	unsigned int number;
	bool is_done;

	(void)module;
	if (!PyArg_ParseTuple(args, "OI:fill_columns", &capsule, &number))
		return NULL;
	columns = PyCapsule_GetPointer(capsule, COLUMNS);
	if (!columns)
		return NULL;
	if (number >= columns->n_slices || __atomic_exchange_n(&columns->slices[number].is_done, true,
							       __ATOMIC_ACQ_REL)) {
		PyErr_SetString(PyExc_ValueError, "not a slice that is left to fill");
		return NULL;
	}
	Py_INCREF(capsule);
	Py_BEGIN_ALLOW_THREADS
	is_done = fill(columns, &columns->slices[number]);
	Py_END_ALLOW_THREADS
	Py_DECREF(capsule);
	return is_done ? Py_NewRef(Py_None) : PyErr_NoMemory();
}

/* Join what the slices have. */

static bool join_texts(struct columns *columns, unsigned int c, struct tp_block **ends, struct tp_block **bytes)
{
	struct tp_strings *all = &columns->slices[0].rests[c].strings;
	const unsigned char *validity = columns->columns[c].validity->bytes;
	int32_t *values = (int32_t *)columns->columns[c].values->bytes;

	for (unsigned int s = 1; s < columns->n_slices; s++) {
		struct slice *slice = &columns->slices[s];
		struct tp_strings *own = &slice->rests[c].strings;
		int32_t *index_of = malloc((own->n + 1) * sizeof(*index_of));
		bool is_same = true;

		for (uint64_t n = 0; index_of && n < own->n; n++) {
			uint64_t start = tp_strings_start(own, n);
			int64_t index = tp_strings_add(all, own->bytes + start, own->ends[n] - start);

			if (index < 0) {
				free(index_of);
				return false;
			}
			index_of[n] = (int32_t)index;
			is_same &= index == (int64_t)n;
		}
		if (!index_of)
			return false;
		for (uint64_t n = slice->first; !is_same && n < slice->last; n++)
			if (validity[n >> 3] >> (n & 7) & 1)
				values[n] = index_of[values[n]];
		free(index_of);
		tp_strings_deinit(own);
	}
	*ends = tp_block_create((all->n + 1) * 8);
	*bytes = tp_block_create(all->n_bytes);
	if (!*ends || !*bytes)
		return false;
	memset((*ends)->bytes, 0, 8);
	if (all->n)
		memcpy((*ends)->bytes + 8, all->ends, all->n * 8);
	if (all->n_bytes)
		memcpy((*bytes)->bytes, all->bytes, all->n_bytes);
	return true;
}

static bool join_lists(struct columns *columns, unsigned int c, struct tp_block **bytes)
{
	int64_t *ends = (int64_t *)columns->columns[c].values->bytes + 1;
	uint64_t total = 0, at = 0;

	if (columns->n_slices == 1) {
		struct rest *rest = &columns->slices[0].rests[c];

		*bytes = tp_block_adopt(rest->bytes, rest->n_bytes);
		if (*bytes)
			rest->bytes = NULL;
		return *bytes != NULL;
	}
	for (unsigned int s = 0; s < columns->n_slices; s++)
		total += columns->slices[s].rests[c].n_bytes;
	*bytes = tp_block_create(total);
	if (!*bytes)
		return false;
	for (unsigned int s = 0; s < columns->n_slices; s++) {
		struct slice *slice = &columns->slices[s];
		struct rest *rest = &slice->rests[c];

		for (uint64_t n = slice->first; at && n < slice->last; n++)
			ends[n] += (int64_t)(at / item_size(&columns->columns[c]));
		if (rest->n_bytes)
			memcpy((*bytes)->bytes + at, rest->bytes, rest->n_bytes);
		at += rest->n_bytes;
		free(rest->bytes);
		rest->bytes = NULL;
	}
	return true;
}

static PyObject *taken(PyObject *module, struct tp_block **block)
{
	struct tp_block *given = *block;

	*block = NULL;
	return given ? tp_buffer_of(module, given) : Py_NewRef(Py_None);
}

static PyObject *finish_column(PyObject *module, struct columns *columns, unsigned int c)
{
	struct column *column = &columns->columns[c];
	struct tp_block *first = NULL, *second = NULL;
	uint64_t n_nulls = 0;
	bool is_done = true;

	for (unsigned int s = 0; s < columns->n_slices; s++)
		n_nulls += columns->slices[s].rests[c].n_nulls;
	Py_BEGIN_ALLOW_THREADS
	if (column->kind == KIND_TEXT)
		is_done = join_texts(columns, c, &second, &first);
	else if (has_offsets(column))
		is_done = join_lists(columns, c, &first);
	Py_END_ALLOW_THREADS
	if (!is_done) {
		tp_block_put(first);
		tp_block_put(second);
		return PyErr_NoMemory();
	}
	if (!n_nulls) {
		tp_block_put(column->validity);
		column->validity = NULL;
	}
	return Py_BuildValue("(KNNNN)", (unsigned long long)n_nulls, taken(module, &column->validity),
			     taken(module, &column->values), taken(module, &first), taken(module, &second));
}

PyObject *tp_finish_columns(PyObject *module, PyObject *args)
{
	struct columns *columns;
	PyObject *capsule, *list;

	if (!PyArg_ParseTuple(args, "O:finish_columns", &capsule))
		return NULL;
	columns = PyCapsule_GetPointer(capsule, COLUMNS);
	if (!columns)
		return NULL;
	for (unsigned int s = 0; s < columns->n_slices; s++)
		if (!columns->slices[s].is_done) {
			PyErr_SetString(PyExc_ValueError, "a slice is left to fill");
			return NULL;
		}
	if (columns->n_columns && !columns->columns[0].values) {
		PyErr_SetString(PyExc_ValueError, "the columns were taken before");
		return NULL;
	}
	list = PyList_New(columns->n_columns);
	for (unsigned int c = 0; list && c < columns->n_columns; c++) {
		PyObject *made = finish_column(module, columns, c);

		if (!made)
			Py_CLEAR(list);
		else
			PyList_SET_ITEM(list, c, made);
	}
	return list;
}
