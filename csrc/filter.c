#include "filter.h"
#include "location.h"

#include <errno.h>
#include <string.h>

static const struct tp_filter_step *steps_of(const struct tp_filter_head *head)
{
	return (const void *)(head + 1);
}

static const unsigned char *operand_of(const struct tp_filter_head *head, const struct tp_filter_step *step)
{
	return (const unsigned char *)(steps_of(head) + head->n_steps) + step->operand;
}

static bool is_scalar_size(uint32_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

static bool check_step(const struct tp_filter_head *head, uint32_t at)
{
	const struct tp_filter_step *step = steps_of(head) + at;

	if (step->if_true <= at || step->if_true > head->n_steps + 1)
		return false;
	if (step->if_false <= at || step->if_false > head->n_steps + 1)
		return false;
	if (step->operand > head->operand_size || step->operand_len > head->operand_size - step->operand)
		return false;
	switch (step->source) {
	case TP_FROM_SCALAR:
	case TP_SCALAR_IN_CPUS:
		return is_scalar_size(step->size);
	case TP_FROM_DATA_LOC:
	case TP_FROM_REL_LOC:
	case TP_FROM_CPUMASK:
	case TP_CPUMASK_HAS_CPU:
		return step->size == 4;
	case TP_FROM_FUNCTION:
		return step->size == 4 || step->size == 8;
	case TP_NUMBER_IN_SET:
		return is_scalar_size(step->size) && step->size < 8 && step->operand_len % 4 == 0;
	default:
		return step->source < TP_FROM_FUNCTION;
	}
}

int tp_filter_check(const void *program, size_t size)
{
	const struct tp_filter_head *head = program;

	if (size < sizeof(*head) || head->magic != TP_FILTER_MAGIC)
		return -EINVAL;
	if (head->is_big_endian > 1 || (head->long_size != 4 && head->long_size != 8))
		return -EINVAL;
	if (!head->n_steps || head->n_steps > TP_FILTER_MAX_STEPS || head->operand_size > size)
		return -EINVAL;
	if (size != sizeof(*head) + head->n_steps * sizeof(struct tp_filter_step) + head->operand_size)
		return -EINVAL;
	for (uint32_t i = 0; i < head->n_steps; i++)
		if (!check_step(head, i))
			return -EINVAL;
	return 0;
}

static bool compare_unsigned(uint8_t op, uint64_t a, uint64_t b)
{
	switch (op) {
	case TP_OP_EQ:
		return a == b;
	case TP_OP_NE:
		return a != b;
	case TP_OP_LE:
		return a <= b;
	case TP_OP_LT:
		return a < b;
	case TP_OP_GE:
		return a >= b;
	case TP_OP_GT:
		return a > b;
	case TP_OP_BAND:
		return a & b;
	default:
		return false;
	}
}

static bool compare(const struct tp_filter_step *step, uint64_t a, uint64_t b)
{
	/* Flipping the sign bit keeps the order of signed numbers; equality and bits do not care. */
	if (step->flags & TP_FILTER_SIGNED && step->op >= TP_OP_LE && step->op <= TP_OP_GT) {
		a ^= 1ull << 63;
		b ^= 1ull << 63;
	}
	return compare_unsigned(step->op, a, b);
}

static uint64_t load_number(const unsigned char *at, uint32_t size, bool is_signed, bool is_big_endian)
{
	unsigned int n_above = 64 - 8 * size;
	uint64_t value = 0;

	/* Each size has its own load: a copy of as many bytes as `size` says is a call. */
	switch (size) {
	case 1:
		memcpy(&value, at, 1);
		break;
	case 2:
		memcpy(&value, at, 2);
		break;
	case 4:
		memcpy(&value, at, 4);
		break;
	default:
		memcpy(&value, at, 8);
	}
	if (is_big_endian)
		value = __builtin_bswap64(value) >> n_above;
	return is_signed ? (uint64_t)((int64_t)(value << n_above) >> n_above) : value;
}

/*
 * Shell-style match as lib/glob.c has it.  `text` ends after `n` bytes or at a NUL.
 * A class that never closes is a plain '['.
 */
static const unsigned char *match_class(const unsigned char *at, const unsigned char *end, unsigned char c, bool *ret)
{
	bool is_inverted = at < end && *at == '!';
	bool is_member = false, is_first = true;

	at += is_inverted;
	while (is_first || at >= end || *at != ']') {
		is_first = false;
		if (at >= end)
			return NULL;
		unsigned char low = *at++, high = low;
		if (at < end && *at == '-' && (at + 1 >= end || at[1] != ']')) {
			if (at + 1 >= end)
				return NULL;
			high = at[1];
			at += 2;
		}
		is_member |= low <= c && c <= high;
	}
	*ret = is_member != is_inverted;
	return at + 1;
}

/* Returns the pattern after matching c (0: the text's end), or NULL. */
static const unsigned char *match_one(const unsigned char *at, const unsigned char *end, unsigned char c)
{
	bool is_member;

	if (at >= end)
		return c ? NULL : at;
	if (*at == '?')
		return c ? at + 1 : NULL;
	if (*at == '[') {
		const unsigned char *after = match_class(at + 1, end, c, &is_member);
		if (after)
			return is_member ? after : NULL;
	}
	if (*at == '\\' && ++at >= end)
		return c ? NULL : at;
	return c && *at == c ? at + 1 : NULL;
}

static bool match_glob(const unsigned char *pattern, size_t pattern_len, const unsigned char *text, size_t n)
{
	const unsigned char *end = pattern + pattern_len, *back = NULL;
	size_t at = 0, back_at = 0;

	for (;;) {
		if (pattern < end && *pattern == '*') {
			if (++pattern == end)
				return true;
			back = pattern;
			back_at = at;
			continue;
		}
		const unsigned char *after = match_one(pattern, end, at < n ? text[at] : 0);
		if (after) {
			if (at >= n)
				return true;
			pattern = after;
			at++;
			continue;
		}
		if (at >= n || !back)
			return false;
		pattern = back;
		at = ++back_at;
	}
}

static bool find(const unsigned char *text, size_t n, const unsigned char *wanted, size_t wanted_len)
{
	for (size_t i = 0; i + wanted_len <= n; i++)
		if (!memcmp(text + i, wanted, wanted_len))
			return true;
	return false;
}

/* `n` is the size of the field; its string may end earlier. */
static bool match_string(const struct tp_filter_head *head, const struct tp_filter_step *step,
			 const unsigned char *text, size_t n)
{
	const unsigned char *wanted = operand_of(head, step);
	size_t len = step->operand_len;
	const unsigned char *nul = n ? memchr(text, 0, n) : NULL;
	size_t text_len = nul ? (size_t)(nul - text) : n;
	bool holds = false;

	switch (step->op) {
	case TP_MATCH_FULL:
		holds = n >= len && text_len == len && !memcmp(text, wanted, len);
		break;
	case TP_MATCH_FRONT:
		holds = text_len >= len && !memcmp(text, wanted, len);
		break;
	case TP_MATCH_MIDDLE:
		holds = find(text, n, wanted, len);
		break;
	case TP_MATCH_END:
		holds = n && n - 1 >= len && !memcmp(text + n - 1 - len, wanted, len);
		break;
	case TP_MATCH_GLOB:
		holds = match_glob(wanted, len, text, text_len);
		break;
	default:
		return false;
	}
	return holds != !!(step->flags & TP_FILTER_INVERTED);
}

static bool has_cpu(const unsigned char *mask, size_t size, uint64_t cpu)
{
	return cpu / 8 < size && mask[cpu / 8] >> cpu % 8 & 1;
}

/* The same of a record's mask: longs in its byte order, of which the last may be cut. */
static bool record_has_cpu(const struct tp_filter_head *head, const unsigned char *mask, size_t size, uint64_t cpu)
{
	if (!head->is_big_endian)
		return has_cpu(mask, size, cpu);
	size_t at = cpu / 8, word = at / head->long_size * head->long_size;
	size_t word_size = word + head->long_size <= size ? head->long_size : size - word;
	return at < size && mask[word + word_size - 1 - (at - word)] >> cpu % 8 & 1;
}

/* A number compared with a mask of several CPUs, which no number equals. */
static bool in_cpus(const struct tp_filter_head *head, const struct tp_filter_step *step, uint64_t cpu)
{
	if (step->op == TP_OP_BAND)
		return has_cpu(operand_of(head, step), step->operand_len, cpu);
	return step->op == TP_OP_NE;
}

static bool in_set(const struct tp_filter_head *head, const struct tp_filter_step *step, uint32_t number)
{
	const unsigned char *numbers = operand_of(head, step);
	uint32_t low = 0, high = step->operand_len / 4;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2, found;
		memcpy(&found, numbers + 4 * (size_t)middle, sizeof(found));
		if (found == number)
			return true;
		if (found < number)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static bool match_cpumask(const struct tp_filter_head *head, const struct tp_filter_step *step,
			  const unsigned char *mask, size_t size)
{
	const unsigned char *wanted = operand_of(head, step);
	bool is_equal = true, has_common = false;

	for (uint64_t cpu = 0; cpu < head->n_cpus; cpu++) {
		bool a = record_has_cpu(head, mask, size, cpu), b;
		if (step->source == TP_CPUMASK_HAS_CPU)
			b = cpu == step->value;
		else
			b = has_cpu(wanted, step->operand_len, cpu);
		is_equal &= a == b;
		has_common |= a && b;
	}
	if (step->op == TP_OP_BAND)
		return has_common;
	return is_equal == (step->op == TP_OP_EQ);
}

static bool match_located(const struct tp_filter_head *head, const struct tp_filter_step *step,
			  const unsigned char *record, size_t size)
{
	uint32_t word = load_number(record + step->offset, sizeof(word), false, head->is_big_endian);
	size_t start = tp_location_start(word), length = tp_location_size(word);
	if (step->source == TP_FROM_REL_LOC)
		start += step->offset + sizeof(word);
	if (start + length > size)
		return false;
	if (step->source == TP_FROM_CPUMASK || step->source == TP_CPUMASK_HAS_CPU)
		return match_cpumask(head, step, record + start, length);
	return match_string(head, step, record + start, length);
}

static bool match_field(const struct tp_filter_head *head, const struct tp_filter_step *step,
			const unsigned char *record, size_t size)
{
	const unsigned char *field = record + step->offset;
	bool is_signed = step->flags & TP_FILTER_SIGNED, is_big = head->is_big_endian;

	if ((size_t)step->offset + step->size > size)
		return false;
	switch (step->source) {
	case TP_FROM_SCALAR:
		return compare(step, load_number(field, step->size, is_signed, is_big), step->value);
	case TP_FROM_STATIC_STRING:
		return match_string(head, step, field, step->size);
	case TP_SCALAR_IN_CPUS: {
		uint32_t cpu = load_number(field, step->size, false, is_big);
		return cpu < head->n_cpus && in_cpus(head, step, cpu);
	}
	case TP_NUMBER_IN_SET:
		return in_set(head, step, load_number(field, step->size, false, is_big)) == (step->op == TP_OP_EQ);
	case TP_FROM_FUNCTION: {
		uint64_t address = load_number(field, step->size, false, is_big);
		bool is_inside = step->value <= address && address < step->value_end;
		return is_inside == (step->op == TP_OP_EQ);
	}
	case TP_FROM_DATA_LOC:
	case TP_FROM_REL_LOC:
	case TP_FROM_CPUMASK:
	case TP_CPUMASK_HAS_CPU:
		return match_located(head, step, record, size);
	default:
		return false;
	}
}

static bool step_holds(const struct tp_filter_head *head, const struct tp_filter_step *step,
		       const unsigned char *record, size_t size, const struct tp_filter_context *context)
{
	switch (step->source) {
	case TP_FROM_CPU:
		/* `cpu & 1` is accepted and never true: filter_pred_cpu() knows no such operator. */
		return step->op != TP_OP_BAND && compare(step, context->cpu, step->value);
	case TP_CPU_IN_CPUS:
		return in_cpus(head, step, context->cpu);
	case TP_FROM_COMM:
		return match_string(head, step, (const unsigned char *)context->comm, TP_COMM_SIZE);
	default:
		return match_field(head, step, record, size);
	}
}

bool tp_filter_matches(const void *program, const void *record, size_t size, const struct tp_filter_context *context)
{
	const struct tp_filter_head *head = program;
	const struct tp_filter_step *steps = steps_of(head);
	uint32_t at = 0;

	while (at < head->n_steps)
		at = step_holds(head, &steps[at], record, size, context) ? steps[at].if_true : steps[at].if_false;
	return at == head->n_steps;
}
