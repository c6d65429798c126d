/* Columns while they are filled: where their values are, and what each slice of the rows has beside. */
#ifndef TP_DECODE_FILL_H
#define TP_DECODE_FILL_H

#include "merge.h"

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

/* How many names of tasks a slice has at hand: 1 << NAME_BITS. */
enum { NAME_BITS = 8, NO_INDEX = -1 };

/* Copy the fields of a slice's records; false without memory.  The GIL is not needed. */
bool tp_fill_slice(const struct columns *columns, struct slice *slice);

#endif
