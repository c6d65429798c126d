/*
 * A print program at work: its record, its stack and its line, and what adds text to the line.
 *
 * Everything that touches the record is checked here.  Twin: src/tracepoint/printk/twin.
 */
#ifndef TP_PRINT_RUN_H
#define TP_PRINT_RUN_H

#include "print_number.h"
#include "print_text.h"

enum { MAX_ELEMENTS = 1 << 16, USER_FRAMES = 8 };

/* What a stack has in place of an address of ftrace itself since Linux 6.3: FTRACE_TRAMPOLINE_MARKER. */
enum { TRAMPOLINE_MARK = 0x7fffffff };

static const char TRAMPOLINE[] = "[FTRACE TRAMPOLINE]";

/* A number, or a place: bytes and an offset in them that may lie outside; no bytes is NULL. */
struct value {
	union {
		uint64_t number;
		const unsigned char *bytes;
	};
	int64_t size, at;
};

struct run {
	const struct tp_print_program *program;
	const struct tp_print_texts *texts;
	const unsigned char *record;
	int64_t size;
	struct line line;
	unsigned int state;
	uint32_t unknown; /* the unknown slot, and 1; 0 for none */
	struct value stack[TP_PRINT_MAX_STACK + 1]; /* the first is below the bottom */
};

/* Take the number that a step loads; false outside of the record. */
static inline bool take_load(const struct run *run, const struct tp_print_step *step, bool is_big, uint64_t *value)
{
	unsigned int shift = 64 - (8u << (step->a & 3));

	/* Where eight bytes are there, no branch depends on the type. */
	if ((int64_t)step->c + 8 <= run->size && !is_big && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
		memcpy(value, run->record + step->c, sizeof(*value));
		*value <<= shift;
		*value = step->a & 4 ? (uint64_t)((int64_t)*value >> shift) : *value >> shift;
		return true;
	}
	if ((int64_t)step->c > run->size - (1 << (step->a & 3)))
		return false;
	*value = load(run->record + step->c, step->a, is_big);
	return true;
}

/* The bytes of a place when it has that many, else NULL. */
static inline const unsigned char *bytes_at(const struct value *place, int64_t size)
{
	if (!place->bytes || size < 0 || place->at < 0 || place->at > place->size || size > place->size - place->at)
		return NULL;
	return place->bytes + place->at;
}

static inline void note(struct run *run, unsigned int which)
{
	if (which == TP_PRINT_NOTE_SYMBOLS && !run->state)
		run->state |= TP_PRINT_SYMBOLS_FIRST;
	run->state |= which;
}

static inline void hashed(struct run *run, uint64_t address)
{
	uint64_t top = (run->program->flags & TP_PRINT_LONG_4 ? UINT64_C(1) << 32 : 0) - TP_PRINT_MAX_ERRNO;

	if (run->program->facts & TP_PRINT_HASHES && address && address < top)
		note(run, TP_PRINT_NOTE_HASHED);
}

static inline bool add_string(struct run *run, const struct value *place, bool has_limit, int64_t limit, bool shows_null)
{
	if (!place->bytes)
		return !shows_null || line_add(&run->line, "(null)", 6);
	if (place->at < 0 || place->at > place->size)
		return false;
	const unsigned char *text = place->bytes + place->at;
	int64_t left = place->size - place->at;
	const unsigned char *end = left ? memchr(text, 0, (size_t)left) : NULL;
	int64_t size = end ? end - text : -1;

	if (has_limit && limit < 0)
		has_limit = false;
	if (size < 0 && (!has_limit || limit > left))
		return false;
	if (size < 0 || (has_limit && limit < size))
		size = limit;
	return line_add(&run->line, text, (size_t)size);
}

/* The string at an offset of the record: names of tasks have 16 bytes, and need no call. */
static inline bool add_string_at(struct run *run, int64_t at)
{
	uint64_t words[2];

	if (at >= 0 && at <= run->size - (int64_t)sizeof(words) && line_room(&run->line, sizeof(words)) &&
	    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
		memcpy(words, run->record + at, sizeof(words));
		memcpy(run->line.at, words, sizeof(words));
		for (int n = 0; n < 2; n++) {
			uint64_t zeros = (words[n] - 0x0101010101010101) & ~words[n] & 0x8080808080808080;

			if (zeros) {
				run->line.at += 8 * n + __builtin_ctzll(zeros) / 8;
				return true;
			}
		}
	}
	const struct value place = { .bytes = run->record, .size = run->size, .at = at };

	return add_string(run, &place, false, 0, false);
}

/* Find the number of a slot; false when it is not known. */
static inline bool take_fact(struct run *run, uint32_t index, uint64_t *value)
{
	const struct tp_print_slot *slot = &run->program->slots[index];

	run->unknown = slot->state == TP_PRINT_SLOT_UNKNOWN ? index + 1 : 0;
	*value = slot->value;
	return slot->state == TP_PRINT_SLOT_KNOWN;
}

/* The entries of a table; NULL when a number in it is not known: then `n` is its slot. */
static inline const struct tp_print_entry *entries_of(struct run *run, unsigned int index, uint32_t *n)
{
	const struct tp_print_table *table = &run->program->tables[index];
	uint64_t value;

	*n = table->n;
	if (table->first != TP_PRINT_NO_SLOT)
		return run->program->entries + (table->n ? table->first : 0);
	take_fact(run, table->n, &value);
	return NULL;
}

static inline bool add_hex(struct run *run, uint64_t value)
{
	return line_add(&run->line, "0x", 2) && line_digits(&run->line, value, 'x');
}

/* A number without flags, width and precision. */
static inline bool add_plain(struct run *run, uint64_t value, char letter)
{
	struct line *line = &run->line;

	if (!line_room(line, 24))
		return false;
	if (letter == 'x') {
		line->at = tp_put_hex(line->at, value);
		return true;
	}
	if (letter == 'd' && (int64_t)value < 0) {
		*line->at++ = '-';
		value = 0 - value;
	} else if (letter != 'd' && letter != 'u') {
		return line_number(line, value, letter, 0, -1, -1);
	}
	line->at = tp_put_decimal(line->at, value);
	return true;
}

/* A decimal number with zeros up to a width, at most 16. */
static inline bool add_wide(struct run *run, uint64_t value, const struct tp_print_step *step, uint64_t width)
{
	char *at = run->line.at, held[24 + TP_PRINT_PAD];
	size_t size;

	if (value >= 10000 || !line_room(&run->line, 24))
		return line_number(&run->line, value, (char)step->a, step->b, (int64_t)width, -1);
	size = (size_t)(tp_put_small(held, (unsigned int)value) - held);
	for (; size < width; width--)
		*at++ = '0';
	memcpy(at, held, 4);
	run->line.at = at + size;
	return true;
}

/* What `%p` without letters is: zeros up to a width of 16 at most. */
static inline bool add_pointer(struct run *run, uint64_t address, uint64_t width)
{
	hashed(run, address);
	if (!line_room(&run->line, 24))
		return false;
	run->line.at = tp_put_wide_hex(run->line.at, address, (unsigned int)width);
	return true;
}

static inline bool add_flags(struct run *run, const struct tp_print_step *step, uint64_t left)
{
	const unsigned char *data = run->program->data;
	bool is_first = true;
	uint32_t n;
	const struct tp_print_entry *entries = entries_of(run, step->b, &n);

	if (!entries)
		return false;
	for (uint32_t i = 0; i < n && left; i++) {
		if ((left & entries[i].value) != entries[i].value)
			continue;
		if ((!is_first && !line_add_padded(&run->line, data + step->c, step->a)) ||
		    !line_add_padded(&run->line, data + entries[i].at, entries[i].size))
			return false;
		left &= ~entries[i].value;
		is_first = false;
	}
	if (!left)
		return true;
	return (is_first || line_add(&run->line, data + step->c, step->a)) && add_hex(run, left);
}

/* Add the first name of a number; `*is_named` says whether there is one. */
static inline bool add_name(struct run *run, unsigned int table, uint64_t value, bool *is_named, bool counts_empty)
{
	uint32_t n;
	const struct tp_print_entry *entries = entries_of(run, table, &n);

	*is_named = false;
	if (!entries)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (entries[i].value != value)
			continue;
		*is_named = counts_empty || entries[i].size;
		return line_add_padded(&run->line, run->program->data + entries[i].at, entries[i].size);
	}
	return true;
}

/* Add the text that is known for an address. */
static inline bool add_known(struct run *run, uint64_t address, uint32_t style)
{
	const struct tp_print_texts *texts = run->texts;
	struct tp_print_text found;

	if (!tp_print_find_text(texts, address, style, &found))
		return false;
	if (found.size <= TP_PRINT_PAD && texts->data_size - found.at >= TP_PRINT_PAD)
		return line_add_padded(&run->line, texts->data + found.at, found.size);
	return line_add(&run->line, texts->data + found.at, found.size);
}

static inline bool add_symbol(struct run *run, uint64_t address, uint32_t style)
{
	bool is_caller = style == TP_PRINT_CALLER;

	if (is_caller && !address)
		return line_add(&run->line, "0", 1);
	if (run->program->facts & TP_PRINT_HAS_SYMBOLS) {
		/* %pB looks the address before up, which 0 does not have. */
		if (is_caller || !address || address >= run->texts->lowest)
			return add_known(run, address, style);
		return add_hex(run, address);
	}
	note(run, TP_PRINT_NOTE_SYMBOLS);
	if (!is_caller)
		return add_hex(run, address);
	return line_add(&run->line, "0x", 2) && line_number(&run->line, address, 'x', TP_PR_ZERO, 8, -1);
}

/* Add one address of a stack; false in `*goes_on` where the stack ends: trace_stack_print(), trace_user_stack_print(). */
static inline bool add_frame(struct run *run, const struct tp_print_step *step, uint64_t address, uint64_t none,
			     bool *goes_on)
{
	bool is_user = step->code == TP_PR_USER_STACK;

	*goes_on = is_user ? address != 0 : address != none;
	if (!*goes_on)
		return true;
	if (is_user)
		return line_add(&run->line, "\n =>  <", 7) &&
		       line_number(&run->line, address, 'x', TP_PR_ZERO, none > UINT32_MAX ? 16 : 8, -1) &&
		       line_add(&run->line, ">", 1);
	if (!line_add(&run->line, "\n => ", 5))
		return false;
	if (address == TRAMPOLINE_MARK)
		return line_add(&run->line, TRAMPOLINE, sizeof(TRAMPOLINE) - 1);
	return add_symbol(run, address, step->a);
}

static inline bool add_stack(struct run *run, const struct tp_print_step *step)
{
	bool is_user = step->code == TP_PR_USER_STACK, is_big = run->program->flags & TP_PRINT_BIG_ENDIAN;
	unsigned int size = run->program->flags & TP_PRINT_LONG_4 ? 4 : 8, n = 0;
	const char *head = is_user ? "<user stack trace>" : "<stack trace>";
	bool goes_on = true;

	if (!line_add(&run->line, head, strlen(head)))
		return false;
	for (int64_t at = step->c; goes_on && at + size <= run->size && !(is_user && n == USER_FRAMES); at += size, n++)
		if (!add_frame(run, step, load(run->record + at, size == 4 ? 2 : 3, is_big), UINT64_MAX >> (64 - 8 * size),
			       &goes_on))
			return false;
	return true;
}

/* Add what an array at the end of a record shows. */
static inline bool add_array(struct run *run, const struct tp_print_step *step)
{
	if (step->code != TP_PR_DUMP)
		return add_stack(run, step);
	if (step->c >= run->size)
		return true;
	return line_add(&run->line, " ", 1) &&
	       line_hex(&run->line, run->record + step->c, (size_t)(run->size - step->c), ' ', 0);
}

static inline bool add_bytes(struct run *run, const struct value *place, const struct tp_print_step *step)
{
	int64_t size = step->code == TP_PR_IP4 ? 4 : step->code == TP_PR_MAC ? 6 : 16;
	const unsigned char *data = bytes_at(place, size);

	if (!place->bytes)
		return !step->a || line_add(&run->line, "(null)", 6);
	if (!data)
		return false;
	switch (step->code) {
	case TP_PR_IP4:
		return line_ip4(&run->line, data, step->b);
	case TP_PR_IP6:
		return line_ip6(&run->line, data, step->b);
	case TP_PR_MAC:
		return line_mac(&run->line, data, step->b);
	default:
		return line_uuid(&run->line, data, step->b);
	}
}

/* `size` numbers are on top: add the memory at the place below them. */
static inline bool add_memory(struct run *run, const struct value *top, const struct tp_print_step *step)
{
	bool is_big = run->program->flags & TP_PRINT_BIG_ENDIAN;
	unsigned int long_size = run->program->flags & TP_PRINT_LONG_4 ? 4 : 8;
	const unsigned char *data;
	int64_t n = (int64_t)top->number;

	switch (step->code) {
	case TP_PR_HEX:
		data = n > 0 ? bytes_at(top - 1, n) : NULL;
		return n <= 0 || (data && line_hex(&run->line, data, (size_t)n, (char)step->a, step->b));
	case TP_PR_NUMBERS:
		if (n <= 0)
			return line_add(&run->line, "{}", 2);
		if (n > MAX_ELEMENTS)
			n = MAX_ELEMENTS;
		data = bytes_at(top - 1, n * step->a);
		return data && line_numbers(&run->line, data, (uint64_t)n, step->a, is_big);
	default: {
		int64_t size = (int64_t)top[-1].number;

		data = bytes_at(top - 2, size);
		if (!data || n > 8 * (int64_t)TP_PRINT_MOST)
			return false;
		return n <= 0 || line_bitmap(&run->line, data, (uint64_t)size, (uint64_t)n, step->a, long_size, is_big);
	}
	}
}

#endif
