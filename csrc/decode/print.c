/*
 * Running a print program over one record.
 *
 * `print_load.c` has checked the program: its stack, jumps, tables and data are never left.  print_run.h checks
 * everything that touches the record, and adds text; print_number.h has the arithmetic.
 * Twin: src/tracepoint/printk/twin.
 */
#include "print_run.h"
#include "../location.h"

static bool distance(const struct run *run, struct value *left, const struct value *right, int64_t size)
{
	int64_t by;

	if (left->bytes != run->record || right->bytes != run->record || __builtin_sub_overflow(left->at, right->at, &by))
		return false;
	left->number = (uint64_t)(by / size - (by % size < 0));
	return true;
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

/* Take width and precision from the stack; absent ones are -1. */
static struct value *take_options(struct value *top, unsigned int flags, int64_t *width, int64_t *precision)
{
	*precision = flags & TP_PR_HAS_PRECISION ? (int64_t)(top--)->number : -1;
	*width = flags & TP_PR_HAS_WIDTH ? (int64_t)(top--)->number : -1;
	return top;
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
			if (!add_string_at(run, (int64_t)step->c + tp_location_start((uint32_t)(top--)->number)))
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
					       .at = (int64_t)step->c + tp_location_start((uint32_t)top->number) };
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
		case TP_PR_STACK ... TP_PR_DUMP:
			if (!add_array(run, step))
				return false;
			break;
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

bool tp_print_find_text(const struct tp_print_texts *texts, uint64_t address, uint32_t style,
			struct tp_print_text *found)
{
	if (!texts->n_slots)
		return false;
	uint64_t at = ((address ^ style) * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - __builtin_ctzll(texts->n_slots));

	for (uint64_t n = 0; n < texts->n_slots; n++, at = (at + 1) & (texts->n_slots - 1)) {
		memcpy(found, texts->slots + at * sizeof(*found), sizeof(*found));
		if (!found->style)
			return false;
		if (found->address == address && found->style == style)
			return found->at <= texts->data_size && found->size <= texts->data_size - found->at;
	}
	return false;
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
