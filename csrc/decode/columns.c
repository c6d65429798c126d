/*
 * Columns for Python: made, filled in slices by several threads (fill.c), and joined.
 *
 * The twin is src/tracepoint/decode/fill.py.  Numbers go straight to where they stay; texts and lists of a slice
 * of the rows are its own until finish_columns() joins them.
 */
#include "fill.h"

#define COLUMNS "tracepoint.columns"

enum { SLICE_STEP = 64, TASK_COMM_LEN = 16 };

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
	is_done = tp_fill_slice(columns, &columns->slices[number]);
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
