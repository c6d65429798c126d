/*
 * Running an event filter over one record, before it is committed.
 *
 * The flat form is made by FilterProgram.pack() in src/tracepoint/filter/program.py, whose `matches`
 * is the readable twin.  All numbers are little endian, those of the records as the head says:
 *
 *     struct tp_filter_head | n_steps * struct tp_filter_step | operand bytes
 *
 * Running begins at step 0; each step judges one predicate and goes on at if_true or if_false, which
 * only point forward.  Place n_steps means accept, n_steps + 1 reject.  A predicate whose field does
 * not lie inside the record does not hold, and neither does one of a source that only a kernel has.
 *
 * Comparisons follow kernel/trace/trace_events_filter.c: filter_match_preds(), regex_match_*().
 */
#ifndef TP_FILTER_H
#define TP_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TP_FILTER_MAGIC = 0x31465054,
	TP_FILTER_MAX_STEPS = 4096,
	TP_COMM_SIZE = 16,
};

/* How to compare: numbers 1 to 7 (8, `~`, never with a number), strings 16 to 20. */
enum tp_filter_op {
	TP_OP_EQ = 1,
	TP_OP_NE = 2,
	TP_OP_LE = 3,
	TP_OP_LT = 4,
	TP_OP_GE = 5,
	TP_OP_GT = 6,
	TP_OP_BAND = 7,
	TP_MATCH_FULL = 16,
	TP_MATCH_FRONT = 17,
	TP_MATCH_MIDDLE = 18,
	TP_MATCH_END = 19,
	TP_MATCH_GLOB = 20,
};

/* What to compare. */
enum tp_filter_source {
	TP_FROM_NOTHING = 0,       /* never holds */
	TP_FROM_SCALAR = 1,        /* field of 1, 2, 4 or 8 bytes with `value`, both as the field's type */
	TP_FROM_CPU = 2,           /* number of the running CPU with `value`, an int */
	TP_FROM_STATIC_STRING = 3, /* char array of `size` bytes with the operand */
	TP_FROM_DATA_LOC = 4,      /* string elsewhere in the record, by a __data_loc word */
	TP_FROM_REL_LOC = 5,       /* the same by a __rel_loc word */
	TP_FROM_COMM = 6,          /* name of the running task, 16 bytes */
	TP_FROM_POINTER = 7,       /* never holds here: an address says nothing in a Python process */
	TP_FROM_USER_POINTER = 8,  /* the same */
	TP_SCALAR_IN_CPUS = 9,     /* field as a CPU's number with the operand, a mask of several */
	TP_CPU_IN_CPUS = 10,       /* running CPU with the operand, a mask of several */
	TP_FROM_CPUMASK = 11,      /* mask by a __data_loc word with the operand, a mask */
	TP_CPUMASK_HAS_CPU = 12,   /* mask by a __data_loc word with `value`, one CPU */
	TP_FROM_FUNCTION = 13,     /* address in [value, value_end) */
	TP_NUMBER_IN_SET = 14,     /* field of 1, 2 or 4 bytes among the operand's numbers of 4 bytes, ascending */
};

enum tp_filter_flags {
	TP_FILTER_INVERTED = 1, /* strings: the answer is turned round */
	TP_FILTER_SIGNED = 2,   /* numbers: the field is signed */
};

struct tp_filter_head {
	uint32_t magic;
	uint32_t n_steps;
	uint32_t n_cpus;
	uint32_t operand_size;
	uint32_t is_big_endian; /* of the records: 0 or 1 */
	uint32_t long_size;     /* of the records' masks: 4 or 8 bytes */
};

struct tp_filter_step {
	uint8_t op;
	uint8_t source;
	uint16_t flags;
	uint16_t offset;
	uint16_t size;
	uint16_t if_true;
	uint16_t if_false;
	uint32_t operand;
	uint32_t operand_len;
	uint32_t reserved;
	uint64_t value;
	uint64_t value_end;
};

struct tp_filter_context {
	uint32_t cpu;
	char comm[TP_COMM_SIZE];
};

/* Check the flat form once; running trusts what was checked.  Returns 0 or -EINVAL. */
int tp_filter_check(const void *program, size_t size);
bool tp_filter_matches(const void *program, const void *record, size_t size, const struct tp_filter_context *context);

#endif
