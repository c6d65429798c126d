/*
 * Print programs: what TP_printk makes of records, many records at a time.
 *
 * The packed form is made by Flat.pack() in src/tracepoint/printk/packed.py; src/tracepoint/printk/ops.py says
 * what the ops mean, and src/tracepoint/printk/twin runs them in Python.  All numbers are in this machine's
 * byte order:
 *
 *     struct tp_print_head | code | pool of uint64_t | tables | entries of tables | data
 *
 * A stack machine: numbers and places are on the stack, texts go to the line at once.  Numbers are held in 64
 * bits, sign-extended when their type is signed, zero-extended when not.  Jumps lead forward only.  Whatever
 * cannot be done here, a load outside of the record first of all, leaves the record to the twin, which explains.
 * Where a fact is not known, the line is made anew from `fields_at` on: the fields as `name=value`.
 */
#ifndef TP_PRINT_H
#define TP_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TP_PRINT_MAGIC = 0x32505054,
	TP_PRINT_BIG_ENDIAN = 1, /* flags of the head: records are big endian */
	TP_PRINT_LONG_4 = 2,     /* a long has 4 bytes */
	TP_PRINT_MAX_STACK = 64,
	TP_PRINT_MOST_SLOTS = 1 << 15,
	TP_PRINT_MAX_LINE = 1 << 16,
	TP_PRINT_MAX_ERRNO = 4095, /* include/linux/err.h */
	/* A text that is cut or padded later may be longer than a line for a while. */
	TP_PRINT_MOST = 4 * TP_PRINT_MAX_LINE,
	/* What copies in steps may read or write beyond an end. */
	TP_PRINT_PAD = 32,
	TP_PRINT_ROOM = TP_PRINT_MOST + TP_PRINT_PAD,
	TP_PRINT_NO_SLOT = 0xffffffffu,
};

/*
 * The operands of an instruction are a (8 bits), b (16), c (32).  A type in `a` is the logarithm of its size, with
 * 4 added when it is signed.  `( before -- after )` is the stack: n a number, p a place.
 */
enum tp_print_code {
	TP_PR_END = 0,
	TP_PR_TEXT,         /* ( -- )       b bytes of the data from c on */
	TP_PR_CONST,        /* ( -- n )     number c of the pool */
	TP_PR_LOAD,         /* ( -- n )     of type a at offset c of the record */
	TP_PR_LOAD_AT,      /* ( p -- n )   of type a */
	TP_PR_FACT,         /* ( -- n )     slot c of the facts */
	TP_PR_CONVERT,      /* ( n -- n )   as type a keeps it; likewise, in type a: */
	TP_PR_NEGATE,
	TP_PR_INVERT,
	TP_PR_ABSOLUTE,
	TP_PR_SWAP,
	TP_PR_ADD,          /* ( n n -- n ) in type a, likewise up to MAX */
	TP_PR_SUBTRACT,
	TP_PR_MULTIPLY,
	TP_PR_DIVIDE,
	TP_PR_REMAINDER,
	TP_PR_AND,
	TP_PR_OR,
	TP_PR_XOR,
	TP_PR_SHIFT_LEFT,
	TP_PR_SHIFT_RIGHT,
	TP_PR_EQUAL,
	TP_PR_UNEQUAL,
	TP_PR_LESS,
	TP_PR_GREATER,
	TP_PR_AT_MOST,
	TP_PR_AT_LEAST,
	TP_PR_MIN,
	TP_PR_MAX,
	TP_PR_NOT,          /* ( n -- n ) */
	TP_PR_IS_SET,       /* ( p -- n )   1 when it is not NULL */
	TP_PR_COUNT_BITS,   /* ( n -- n ) */
	TP_PR_LOG2,         /* ( n -- n ) */
	TP_PR_JIFFIES_TO,   /* ( jiffies hz -- n ) in type a; number c of the pool is the scale */
	TP_PR_DISTANCE,     /* ( p p -- n ) in elements of c bytes */
	TP_PR_HASHED,       /* ( n -- n )   a note where the kernel hashes addresses */
	TP_PR_WIDTH,        /* ( n -- n )   within what a line holds, 1 for -1 */
	TP_PR_JUMP,         /* ( -- )       to c */
	TP_PR_JUMP_IF,      /* ( n -- )     to c when it is not 0 */
	TP_PR_JUMP_UNLESS,  /* ( n -- )     to c when it is 0 */
	TP_PR_AT,           /* ( -- p )     offset c of the record, signed */
	TP_PR_BYTES,        /* ( -- p )     b bytes of the data from c on */
	TP_PR_MOVED,        /* ( p n -- p ) by n times c bytes, signed; with a, n is unsigned */
	TP_PR_LOCATED,      /* ( n -- p )   what a __data_loc word n, counting from c, points to */
	TP_PR_KERNEL,       /* ( n -- p )   NULL for 0 */
	TP_PR_STRING,       /* ( p [n] -- ) up to its NUL, with b at most n bytes; with a NULL is "(null)" */
	TP_PR_FLAGS,        /* ( n -- )     names of table b with a delimiter of a bytes at c of the data */
	TP_PR_SYMBOLIC,     /* ( n -- )     its name in table b, else hex */
	TP_PR_NAMED,        /* ( n -- n )   its name in table b and 1, else 0 */
	TP_PR_HEX,          /* ( p n -- )   n bytes with separator a, but none before each b-th */
	TP_PR_NUMBERS,      /* ( p n -- )   n numbers of a bytes */
	TP_PR_BITMAP,       /* ( p size n -- ) n bits; with a as ranges */
	TP_PR_SYMBOL,       /* ( n -- )     an address as style a: tp_print_style */
	TP_PR_KERNEL_STRING,/* ( n -- )     the string at an address; with a NULL is "(null)" */
	TP_PR_CHARACTER,    /* ( n -- ) */
	TP_PR_NUMBER,       /* ( n [width] [precision] -- ) as conversion a; b are tp_print_flag */
	TP_PR_MARK,         /* ( -- n )     how long the line is */
	TP_PR_PAD,          /* ( mark [width] [precision] -- ) cut and pad what came since; b are tp_print_flag */
	TP_PR_CHOMP,        /* ( mark -- )  without the newline that came last since */
	TP_PR_IP4,          /* ( p -- )     b: 1 pads to three digits, 2 reverses; with a NULL is "(null)", as below */
	TP_PR_IP6,          /* ( p -- )     b: 0 without colons, 1 in full, 2 compressed */
	TP_PR_MAC,          /* ( p -- )     b: separator, 256 reverses */
	TP_PR_UUID,         /* ( p -- )     b: 1 in the order of a GUID, 2 in capitals */
	TP_PR_LEAVE,        /* ( -- )       leaves the record to the twin */
	TP_PR_STACK,        /* ( -- )       the functions of the stack from offset c on, as style a */
	TP_PR_USER_STACK,   /* ( -- )       the addresses of a process's stack from offset c on */
	TP_PR_DUMP,         /* ( -- )       the bytes from offset c on, each after a space */
	TP_PR_CODES,
	/*
	 * What tp_print_load() makes of steps that often follow each other: only the code of the first is replaced, so
	 * that jumps into their midst still lead to the others.
	 */
	TP_PR_LOAD_NUMBER = TP_PR_CODES, /* and NUMBER without flags */
	TP_PR_LOAD_WIDE,                 /* and CONST, NUMBER: %0d with a width */
	TP_PR_LOAD_POINTER,              /* and HASHED, CONST, NUMBER: %p without letters */
	TP_PR_AT_STRING,                 /* and STRING without a limit */
	TP_PR_LOCATED_STRING,
	TP_PR_TEXT_LOAD_NUMBER,
	TP_PR_TEXT_LOAD_POINTER,
	TP_PR_TEXT_AT_STRING,
};

enum tp_print_flag {
	TP_PR_LEFT = 1,
	TP_PR_ZERO = 2,
	TP_PR_PLUS = 4,
	TP_PR_SPACE = 8,
	TP_PR_HASH = 16,
	TP_PR_HAS_WIDTH = 32,
	TP_PR_HAS_PRECISION = 64,
};

struct tp_print_head {
	uint32_t magic, flags, n_code, n_pool, n_tables, n_entries, n_slots, data_size;
	uint32_t fields_at, unused; /* 0 without code for the fields */
};

struct tp_print_step {
	uint8_t code, a;
	uint16_t b;
	uint32_t c;
};

struct tp_print_table {
	uint32_t first, n;
};

struct tp_print_entry {
	uint64_t value;
	uint32_t at, size, slot, unused;
};

/* A number that the facts give, as the caller computed it. */
struct tp_print_slot {
	uint64_t value, state; /* enum tp_print_slot_state */
};

enum tp_print_slot_state {
	TP_PRINT_SLOT_LEFT = 0, /* the twin has to compute it */
	TP_PRINT_SLOT_KNOWN = 1,
	TP_PRINT_SLOT_UNKNOWN = 2, /* the fields are shown instead */
};

/* How a text belongs to an address; symbols other than the function tracer's are those of %pS, %ps and %pB. */
enum tp_print_style {
	TP_PRINT_KERNEL_STRING = 1,
	TP_PRINT_CALLER = 2,
	TP_PRINT_NAME = 4, /* %ps */
	TP_PRINT_STYLES = 8,
};

/* A slot of the hash table of texts that src/tracepoint/printk/texts.py makes; an empty one has style 0. */
struct tp_print_text {
	uint64_t address;
	uint32_t style, at, size, unused;
};

/*
 * The table: the number of slots, a power of two, the lowest address that can have a symbol, slots and texts.
 * Slots are checked when they are met.
 */
struct tp_print_texts {
	const unsigned char *slots, *data;
	uint64_t n_slots, lowest, data_size;
};

/* Facts that are no numbers of one program. */
enum tp_print_facts {
	TP_PRINT_HASHES = 1,      /* the kernel hashes addresses */
	TP_PRINT_HAS_SYMBOLS = 2, /* the twin can name addresses */
};

struct tp_print_program {
	struct tp_print_step *code;
	const uint64_t *pool;
	struct tp_print_table *tables;
	struct tp_print_entry *entries;
	const struct tp_print_slot *slots;
	const unsigned char *data;
	unsigned int flags, facts;
	uint32_t fields_at, n_slots;
	void *memory; /* holds all of the above */
};

/* What became of a record: notes are in the order in which they were made. */
enum tp_print_state {
	TP_PRINT_DONE = 0,
	TP_PRINT_NOTE_HASHED = 1,
	TP_PRINT_NOTE_SYMBOLS = 2,
	TP_PRINT_SYMBOLS_FIRST = 4,
	TP_PRINT_FIELDS = 8, /* the fields are shown: from bit TP_PRINT_WHY on, the slot that is not known */
	TP_PRINT_NOTES = 8,  /* so many states have the bits before that */
	TP_PRINT_WHY = 16,
	TP_PRINT_LEFT = 128,
};

/*
 * Check packed bytes and make a program of them; `slots` has one for each slot of the head.  Return NULL, or why
 * not: "" when there is no memory.
 */
const char *tp_print_load(struct tp_print_program *program, const void *packed, size_t size, const void *slots,
			  size_t slots_size, unsigned int facts);
void tp_print_free(struct tp_print_program *program);

/* Write the line of a record to `*at`, where TP_PRINT_ROOM bytes are, and move it to the end of a line that is done. */
unsigned int tp_print_record(const struct tp_print_program *program, const struct tp_print_texts *texts,
			     const unsigned char *record, size_t size, char **at);

/* Take the table of texts that is in a buffer, none in an empty one; false when it is none. */
bool tp_print_take_texts(struct tp_print_texts *texts, const void *buffer, size_t size);

/* Find the text of an address; false when it is not in the table, or not whole. */
bool tp_print_find_text(const struct tp_print_texts *texts, uint64_t address, uint32_t style,
			struct tp_print_text *found);

#endif
