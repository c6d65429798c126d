/*
 * Running a print program over one record.
 *
 * `print_load.c` has checked the program: its stack, jumps, tables and data are never left.  Everything that
 * touches the record is checked here.  Twin: src/tracepoint/printk/twin.
 */
#include "print.h"
#include "print_text.h"

enum { MAX_WIDTH = 1 << 14, MAX_ERRNO = 4095, MAX_ELEMENTS = 1 << 16 };

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
	uint32_t unknown; /* the slot that nobody knows, and 1; 0 for none */
	struct value stack[TP_PRINT_MAX_STACK + 1]; /* the first is below the bottom */
};

static uint64_t wrap(uint64_t value, unsigned int type)
{
	switch (type) {
	case 0:
		return (uint8_t)value;
	case 1:
		return (uint16_t)value;
	case 2:
		return (uint32_t)value;
	case 4:
		return (uint64_t)(int64_t)(int8_t)value;
	case 5:
		return (uint64_t)(int64_t)(int16_t)value;
	case 6:
		return (uint64_t)(int64_t)(int32_t)value;
	default:
		return value;
	}
}

static uint64_t swapped(uint64_t value, unsigned int type)
{
	return __builtin_bswap64(value) >> (64 - (8u << (type & 3)));
}

/* Read a number of the record's byte order; its bytes are there. */
static uint64_t load(const unsigned char *at, unsigned int type, bool is_big)
{
	bool must_swap = is_big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	uint64_t value = 0;

	switch (type & 3) {
	case 0:
		value = *at;
		break;
	case 1: {
		uint16_t half;
		memcpy(&half, at, sizeof(half));
		value = half;
		break;
	}
	case 2: {
		uint32_t word;
		memcpy(&word, at, sizeof(word));
		value = word;
		break;
	}
	default:
		memcpy(&value, at, sizeof(value));
	}
	return wrap(must_swap ? swapped(value, type) : value, type);
}

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
static const unsigned char *bytes_at(const struct value *place, int64_t size)
{
	if (!place->bytes || size < 0 || place->at < 0 || place->at > place->size || size > place->size - place->at)
		return NULL;
	return place->bytes + place->at;
}

static bool divide(uint64_t *a, uint64_t b, unsigned int type, bool wants_rest)
{
	if (!b)
		return false;
	if (!(type & 4))
		*a = wants_rest ? *a % b : *a / b;
	else if ((int64_t)b == -1)
		*a = wants_rest ? 0 : 0 - *a;
	else
		*a = (uint64_t)(wants_rest ? (int64_t)*a % (int64_t)b : (int64_t)*a / (int64_t)b);
	return true;
}

static uint64_t shift(uint64_t a, uint64_t b, unsigned int type, bool is_left)
{
	unsigned int by = b & ((8u << (type & 3)) - 1);

	if (is_left)
		return a << by;
	return type & 4 ? (uint64_t)((int64_t)a >> by) : a >> by;
}

static bool is_less(uint64_t a, uint64_t b, unsigned int type)
{
	return type & 4 ? (int64_t)a < (int64_t)b : a < b;
}

/* Compute `*a op b`, both of a type. */
static bool compute(unsigned int code, uint64_t *a, uint64_t b, unsigned int type)
{
	switch (code) {
	case TP_PR_ADD:
		*a += b;
		break;
	case TP_PR_SUBTRACT:
		*a -= b;
		break;
	case TP_PR_MULTIPLY:
		*a *= b;
		break;
	case TP_PR_DIVIDE:
	case TP_PR_REMAINDER:
		if (!divide(a, b, type, code == TP_PR_REMAINDER))
			return false;
		break;
	case TP_PR_AND:
		*a &= b;
		return true;
	case TP_PR_OR:
		*a |= b;
		return true;
	case TP_PR_XOR:
		*a ^= b;
		return true;
	case TP_PR_SHIFT_LEFT:
	case TP_PR_SHIFT_RIGHT:
		*a = shift(*a, b, type, code == TP_PR_SHIFT_LEFT);
		break;
	case TP_PR_EQUAL:
		*a = *a == b;
		return true;
	case TP_PR_UNEQUAL:
		*a = *a != b;
		return true;
	case TP_PR_LESS:
		*a = is_less(*a, b, type);
		return true;
	case TP_PR_GREATER:
		*a = is_less(b, *a, type);
		return true;
	case TP_PR_AT_MOST:
		*a = !is_less(b, *a, type);
		return true;
	case TP_PR_AT_LEAST:
		*a = !is_less(*a, b, type);
		return true;
	case TP_PR_MIN:
		*a = is_less(b, *a, type) ? b : *a;
		return true;
	default:
		*a = is_less(*a, b, type) ? b : *a;
		return true;
	}
	*a = wrap(*a, type);
	return true;
}

static bool jiffies_to(uint64_t *jiffies, uint64_t hz, uint64_t scale, unsigned int type)
{
	unsigned __int128 number = (unsigned __int128)*jiffies * scale;

	if (!hz || (int64_t)hz < 0)
		return false;
	*jiffies = wrap((uint64_t)(scale % hz ? (number + hz - 1) / hz : number / hz), type);
	return true;
}

static bool distance(const struct run *run, struct value *left, const struct value *right, int64_t size)
{
	int64_t by;

	if (left->bytes != run->record || right->bytes != run->record || __builtin_sub_overflow(left->at, right->at, &by))
		return false;
	left->number = (uint64_t)(by / size - (by % size < 0));
	return true;
}

static void note(struct run *run, unsigned int which)
{
	if (which == TP_PRINT_NOTE_SYMBOLS && !run->state)
		run->state |= TP_PRINT_SYMBOLS_FIRST;
	run->state |= which;
}

static void hashed(struct run *run, uint64_t address)
{
	uint64_t top = (run->program->flags & TP_PRINT_LONG_4 ? UINT64_C(1) << 32 : 0) - MAX_ERRNO;

	if (run->program->facts & TP_PRINT_HASHES && address && address < top)
		note(run, TP_PRINT_NOTE_HASHED);
}

static bool moved(struct value *place, uint64_t count, int32_t size, bool is_unsigned)
{
	int64_t by;

	if (!place->bytes)
		return true;
	if (is_unsigned && count > INT64_MAX)
		return false;
	return !__builtin_mul_overflow((int64_t)count, size, &by) && !__builtin_add_overflow(place->at, by, &place->at);
}

static bool add_string(struct run *run, const struct value *place, bool has_limit, int64_t limit, bool shows_null)
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
static bool add_string_at(struct run *run, int64_t at)
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
static bool take_fact(struct run *run, uint32_t index, uint64_t *value)
{
	const struct tp_print_slot *slot = &run->program->slots[index];

	run->unknown = slot->state == TP_PRINT_SLOT_UNKNOWN ? index + 1 : 0;
	*value = slot->value;
	return slot->state == TP_PRINT_SLOT_KNOWN;
}

/* The entries of a table; NULL when a number in it is not known: then `n` is its slot. */
static const struct tp_print_entry *entries_of(struct run *run, unsigned int index, uint32_t *n)
{
	const struct tp_print_table *table = &run->program->tables[index];
	uint64_t value;

	*n = table->n;
	if (table->first != TP_PRINT_NO_SLOT)
		return run->program->entries + (table->n ? table->first : 0);
	take_fact(run, table->n, &value);
	return NULL;
}

static bool add_hex(struct run *run, uint64_t value)
{
	return line_add(&run->line, "0x", 2) && line_digits(&run->line, value, 'x');
}

/* A number without flags, width and precision. */
static bool add_plain(struct run *run, uint64_t value, char letter)
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
static bool add_wide(struct run *run, uint64_t value, const struct tp_print_step *step, uint64_t width)
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
static bool add_pointer(struct run *run, uint64_t address, uint64_t width)
{
	hashed(run, address);
	if (!line_room(&run->line, 24))
		return false;
	run->line.at = tp_put_wide_hex(run->line.at, address, (unsigned int)width);
	return true;
}

static bool add_flags(struct run *run, const struct tp_print_step *step, uint64_t left)
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
static bool add_name(struct run *run, unsigned int table, uint64_t value, bool *is_named, bool counts_empty)
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
static bool add_known(struct run *run, uint64_t address, uint32_t style)
{
	const struct tp_print_texts *texts = run->texts;
	struct tp_print_text slot;

	if (!texts->n_slots)
		return false;
	uint64_t at = ((address ^ style) * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - __builtin_ctzll(texts->n_slots));

	for (uint64_t n = 0; n < texts->n_slots; n++, at = (at + 1) & (texts->n_slots - 1)) {
		memcpy(&slot, texts->slots + at * sizeof(slot), sizeof(slot));
		if (!slot.style)
			return false;
		if (slot.address != address || slot.style != style)
			continue;
		if (slot.at > texts->data_size || slot.size > texts->data_size - slot.at)
			return false;
		if (slot.size <= TP_PRINT_PAD && texts->data_size - slot.at >= TP_PRINT_PAD)
			return line_add_padded(&run->line, texts->data + slot.at, slot.size);
		return line_add(&run->line, texts->data + slot.at, slot.size);
	}
	return false;
}

static bool add_symbol(struct run *run, uint64_t address, uint32_t style)
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

static bool add_bytes(struct run *run, const struct value *place, const struct tp_print_step *step)
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
static bool add_memory(struct run *run, const struct value *top, const struct tp_print_step *step)
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

/* Take width and precision from the stack; absent ones are -1. */
static struct value *take_options(struct value *top, unsigned int flags, int64_t *width, int64_t *precision)
{
	*precision = flags & TP_PR_HAS_PRECISION ? (int64_t)(top--)->number : -1;
	*width = flags & TP_PR_HAS_WIDTH ? (int64_t)(top--)->number : -1;
	return top;
}

static uint64_t width_of(uint64_t number)
{
	int64_t value = (int64_t)number;

	value = value < -MAX_WIDTH ? -MAX_WIDTH : value > MAX_WIDTH ? MAX_WIDTH : value;
	return value == -1 ? 1 : (uint64_t)value;
}

/* Run the steps that work on numbers alone and leave one on top. */
static bool run_number(struct run *run, const struct tp_print_step *step, struct value *top)
{
	switch (step->code) {
	case TP_PR_CONVERT:
		top->number = wrap(top->number, step->a);
		return true;
	case TP_PR_NEGATE:
		top->number = wrap(0 - top->number, step->a);
		return true;
	case TP_PR_INVERT:
		top->number = wrap(~top->number, step->a);
		return true;
	case TP_PR_ABSOLUTE:
		if (step->a & 4 && (int64_t)top->number < 0)
			top->number = wrap(0 - top->number, step->a);
		return true;
	case TP_PR_SWAP:
		top->number = wrap(swapped(top->number, step->a), step->a);
		return true;
	case TP_PR_NOT:
		top->number = !top->number;
		return true;
	case TP_PR_COUNT_BITS:
		top->number = (uint64_t)__builtin_popcountll(top->number);
		return true;
	case TP_PR_LOG2:
		if (!top->number)
			return false;
		top->number = 63 - (uint64_t)__builtin_clzll(top->number);
		return true;
	case TP_PR_HASHED:
		hashed(run, top->number);
		return true;
	default:
		top->number = width_of(top->number);
		return true;
	}
}

/* Run the steps that add text; return what is then on top, or NULL. */
static struct value *run_text(struct run *run, const struct tp_print_step *step, struct value *top)
{
	struct line *line = &run->line;
	int64_t width, precision;
	bool is_named;

	switch (step->code) {
	case TP_PR_NUMBER:
		top = take_options(top, step->b, &width, &precision);
		return line_number(line, top->number, (char)step->a, step->b, width, precision) ? top - 1 : NULL;
	case TP_PR_STRING:
		precision = step->b ? (int64_t)(top--)->number : -1;
		return add_string(run, top, step->b, precision, step->a) ? top - 1 : NULL;
	case TP_PR_FLAGS:
		return add_flags(run, step, top->number) ? top - 1 : NULL;
	case TP_PR_SYMBOLIC:
		if (!add_name(run, step->b, top->number, &is_named, false))
			return NULL;
		return is_named || add_hex(run, top->number) ? top - 1 : NULL;
	case TP_PR_NAMED:
		if (!add_name(run, step->b, top->number, &is_named, true))
			return NULL;
		top->number = is_named;
		return top;
	case TP_PR_HEX:
	case TP_PR_NUMBERS:
		return add_memory(run, top, step) ? top - 2 : NULL;
	case TP_PR_BITMAP:
		return add_memory(run, top, step) ? top - 3 : NULL;
	case TP_PR_SYMBOL:
		return add_symbol(run, top->number, step->a) ? top - 1 : NULL;
	case TP_PR_KERNEL_STRING:
		if (top->number)
			return add_known(run, top->number, TP_PRINT_KERNEL_STRING) ? top - 1 : NULL;
		return !step->a || line_add(line, "(null)", 6) ? top - 1 : NULL;
	case TP_PR_CHARACTER: {
		char byte = (char)top->number;
		return line_add(line, &byte, 1) ? top - 1 : NULL;
	}
	case TP_PR_PAD:
		top = take_options(top, step->b, &width, &precision);
		return line_pad(line, (size_t)top->number, step->b, width, precision) ? top - 1 : NULL;
	case TP_PR_CHOMP:
		if ((size_t)(line->at - line->start) > top->number && line->at[-1] == '\n')
			line->at--;
		return top - 1;
	default:
		return add_bytes(run, top, step) ? top - 1 : NULL;
	}
}

/* Run from a step to the end; false when the record is left to the twin. */
static bool run_from(struct run *run, const struct tp_print_step *step)
{
	const struct tp_print_program *program = run->program;
	bool is_big = program->flags & TP_PRINT_BIG_ENDIAN;
	struct value *top = run->stack;
	uint64_t number;

	for (;; step++) {
		switch (step->code) {
		case TP_PR_END:
			return true;
		case TP_PR_TEXT:
			if (!line_add_padded(&run->line, program->data + step->c, step->b))
				return false;
			break;
		case TP_PR_TEXT_LOAD_NUMBER:
			if (!line_add_padded(&run->line, program->data + step->c, step->b))
				return false;
			step++;
			/* fall through */
		case TP_PR_LOAD_NUMBER:
			if (!take_load(run, step, is_big, &number) || !add_plain(run, number, (char)step[1].a))
				return false;
			step++;
			break;
		case TP_PR_LOAD_WIDE:
			if (!take_load(run, step, is_big, &number) || !add_wide(run, number, step + 2, program->pool[step[1].c]))
				return false;
			step += 2;
			break;
		case TP_PR_TEXT_LOAD_POINTER:
			if (!line_add_padded(&run->line, program->data + step->c, step->b))
				return false;
			step++;
			/* fall through */
		case TP_PR_LOAD_POINTER:
			if (!take_load(run, step, is_big, &number) || !add_pointer(run, number, program->pool[step[2].c]))
				return false;
			step += 3;
			break;
		case TP_PR_TEXT_AT_STRING:
			if (!line_add_padded(&run->line, program->data + step->c, step->b))
				return false;
			step++;
			/* fall through */
		case TP_PR_AT_STRING:
			if (!add_string_at(run, (int32_t)step->c))
				return false;
			step++;
			break;
		case TP_PR_LOCATED_STRING:
			if (!add_string_at(run, (int64_t)step->c + (int64_t)((top--)->number & 0xffff)))
				return false;
			step++;
			break;
		case TP_PR_CONST:
			(++top)->number = program->pool[step->c];
			break;
		case TP_PR_LOAD:
			if (!take_load(run, step, is_big, &(++top)->number))
				return false;
			break;
		case TP_PR_LOAD_AT: {
			const unsigned char *data = bytes_at(top, 1 << (step->a & 3));

			if (!data)
				return false;
			top->number = load(data, step->a, is_big);
			break;
		}
		case TP_PR_FACT:
			if (!take_fact(run, step->c, &(++top)->number))
				return false;
			break;
		case TP_PR_ADD ... TP_PR_MAX:
			top--;
			if (!compute(step->code, &top->number, top[1].number, step->a))
				return false;
			break;
		case TP_PR_IS_SET:
			top->number = top->bytes != NULL;
			break;
		case TP_PR_JIFFIES_TO:
			top--;
			if (!jiffies_to(&top->number, top[1].number, program->pool[step->c], step->a))
				return false;
			break;
		case TP_PR_DISTANCE:
			top--;
			if (!distance(run, top, top + 1, (int64_t)step->c))
				return false;
			break;
		case TP_PR_JUMP:
			step = program->code + step->c - 1;
			break;
		case TP_PR_JUMP_IF:
			if ((top--)->number)
				step = program->code + step->c - 1;
			break;
		case TP_PR_JUMP_UNLESS:
			if (!(top--)->number)
				step = program->code + step->c - 1;
			break;
		case TP_PR_AT:
			*++top = (struct value){ .bytes = run->record, .size = run->size, .at = (int32_t)step->c };
			break;
		case TP_PR_BYTES:
			*++top = (struct value){ .bytes = program->data + step->c, .size = step->b };
			break;
		case TP_PR_MOVED:
			top--;
			if (!moved(top, top[1].number, (int32_t)step->c, step->a))
				return false;
			break;
		case TP_PR_LOCATED:
			*top = (struct value){ .bytes = run->record, .size = run->size,
					       .at = (int64_t)step->c + (int64_t)(top->number & 0xffff) };
			break;
		case TP_PR_KERNEL:
			if (top->number)
				return false;
			*top = (struct value){ .bytes = NULL };
			break;
		case TP_PR_MARK:
			(++top)->number = (uint64_t)(run->line.at - run->line.start);
			break;
		case TP_PR_LEAVE:
			return false;
		case TP_PR_STRING ... TP_PR_NUMBER:
		case TP_PR_PAD ... TP_PR_UUID:
			top = run_text(run, step, top);
			if (!top)
				return false;
			break;
		default:
			if (!run_number(run, step, top))
				return false;
		}
	}
}

unsigned int tp_print_record(const struct tp_print_program *program, const struct tp_print_texts *texts,
			     const unsigned char *record, size_t size, char **at)
{
	struct run run;

	run.program = program;
	run.texts = texts;
	run.record = record;
	run.size = (int64_t)size;
	run.line = (struct line){ .at = *at, .start = *at, .end = *at + TP_PRINT_MOST };
	run.state = TP_PRINT_DONE;
	run.unknown = 0;
	bool is_done = run_from(&run, program->code);
	uint32_t unknown = run.unknown;

	if (!is_done && unknown && program->fields_at) {
		run.line.at = run.line.start;
		is_done = run_from(&run, program->code + program->fields_at);
		run.state |= TP_PRINT_FIELDS | (unknown - 1) << TP_PRINT_WHY;
	}
	if (!is_done || run.line.at - run.line.start > TP_PRINT_MAX_LINE)
		return TP_PRINT_LEFT;
	*at = run.line.at;
	return run.state;
}
