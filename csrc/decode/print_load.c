/* Packed print programs, checked before they run: what passes never leaves its stack, tables or data. */
#include "print.h"

#include <stdlib.h>
#include <string.h>

/* What an instruction takes from the stack and puts there, from the top: n numbers, p places. */
static const struct effect {
	const char *takes, *gives;
	bool has_type;
} effects[TP_PR_CODES] = {
	[TP_PR_END] = { "", "", false },
	[TP_PR_TEXT] = { "", "", false },
	[TP_PR_CONST] = { "", "n", false },
	[TP_PR_LOAD] = { "", "n", true },
	[TP_PR_LOAD_AT] = { "p", "n", true },
	[TP_PR_FACT] = { "", "n", false },
	[TP_PR_CONVERT ... TP_PR_SWAP] = { "n", "n", true },
	[TP_PR_ADD ... TP_PR_MAX] = { "nn", "n", true },
	[TP_PR_NOT] = { "n", "n", false },
	[TP_PR_IS_SET] = { "p", "n", false },
	[TP_PR_COUNT_BITS] = { "n", "n", false },
	[TP_PR_LOG2] = { "n", "n", false },
	[TP_PR_JIFFIES_TO] = { "nn", "n", true },
	[TP_PR_DISTANCE] = { "pp", "n", false },
	[TP_PR_HASHED] = { "n", "n", false },
	[TP_PR_WIDTH] = { "n", "n", false },
	[TP_PR_JUMP] = { "", "", false },
	[TP_PR_JUMP_IF] = { "n", "", false },
	[TP_PR_JUMP_UNLESS] = { "n", "", false },
	[TP_PR_AT] = { "", "p", false },
	[TP_PR_BYTES] = { "", "p", false },
	[TP_PR_MOVED] = { "np", "p", false },
	[TP_PR_LOCATED] = { "n", "p", false },
	[TP_PR_KERNEL] = { "n", "p", false },
	[TP_PR_STRING] = { "p", "", false },
	[TP_PR_FLAGS] = { "n", "", false },
	[TP_PR_SYMBOLIC] = { "n", "", false },
	[TP_PR_NAMED] = { "n", "n", false },
	[TP_PR_HEX] = { "np", "", false },
	[TP_PR_NUMBERS] = { "np", "", false },
	[TP_PR_BITMAP] = { "nnp", "", false },
	[TP_PR_SYMBOL] = { "n", "", false },
	[TP_PR_KERNEL_STRING] = { "n", "", false },
	[TP_PR_CHARACTER] = { "n", "", false },
	[TP_PR_NUMBER] = { "n", "", false },
	[TP_PR_MARK] = { "", "m", false },
	[TP_PR_PAD] = { "m", "", false },
	[TP_PR_CHOMP] = { "m", "", false },
	[TP_PR_IP4 ... TP_PR_UUID] = { "p", "", false },
	[TP_PR_LEAVE ... TP_PR_DUMP] = { "", "", false },
};

/* The kinds of what is on the stack; no depth says that nothing comes there. */
struct stack {
	int depth;
	char kinds[TP_PRINT_MAX_STACK];
};

static bool take(struct stack *stack, const char *kinds)
{
	for (; *kinds; kinds++)
		if (!stack->depth || stack->kinds[--stack->depth] != *kinds)
			return false;
	return true;
}

static bool give(struct stack *stack, const char *kinds)
{
	for (; *kinds; kinds++) {
		if (stack->depth == TP_PRINT_MAX_STACK)
			return false;
		stack->kinds[stack->depth++] = *kinds;
	}
	return true;
}

/* Note what is on the stack where a jump leads to; all ways there must agree. */
static bool meet(struct stack *there, const struct stack *stack)
{
	if (there->depth < 0) {
		*there = *stack;
		return true;
	}
	return there->depth == stack->depth && !memcmp(there->kinds, stack->kinds, (size_t)stack->depth);
}

static bool is_inside(uint64_t at, uint64_t size, uint64_t whole)
{
	return at <= whole && size <= whole - at;
}

static const char *check_operands(const struct tp_print_head *head, const struct tp_print_step *step, size_t at)
{
	if (effects[step->code].has_type && step->a > 7)
		return "no such type";
	switch (step->code) {
	case TP_PR_TEXT:
	case TP_PR_BYTES:
		return is_inside(step->c, step->b, head->data_size) ? NULL : "text outside of the data";
	case TP_PR_CONST:
	case TP_PR_JIFFIES_TO:
		return step->c < head->n_pool ? NULL : "a number outside of the pool";
	case TP_PR_FACT:
		return step->c < head->n_slots ? NULL : "a fact outside of the slots";
	case TP_PR_JUMP:
	case TP_PR_JUMP_IF:
	case TP_PR_JUMP_UNLESS:
		return step->c > at && step->c < head->n_code ? NULL : "a jump that does not lead forward";
	case TP_PR_FLAGS:
		if (!is_inside(step->c, step->a, head->data_size))
			return "a delimiter outside of the data";
		return step->b < head->n_tables ? NULL : "no such table";
	case TP_PR_SYMBOLIC:
	case TP_PR_NAMED:
		return step->b < head->n_tables ? NULL : "no such table";
	case TP_PR_SYMBOL:
	case TP_PR_STACK:
		return step->a >= TP_PRINT_CALLER && step->a < TP_PRINT_STYLES ? NULL : "no such style";
	case TP_PR_NUMBERS:
		return step->a == 1 || step->a == 2 || step->a == 4 || step->a == 8 ? NULL : "no such size";
	case TP_PR_NUMBER:
		return step->a && strchr("diuxXop", step->a) ? NULL : "no such conversion";
	case TP_PR_DISTANCE:
		return step->c && step->c <= INT32_MAX ? NULL : "no such size";
	default:
		return NULL;
	}
}

static const char *check_step(const struct tp_print_head *head, const struct tp_print_step *step, size_t at,
			      struct stack *stack)
{
	const char *why;

	if (step->code >= TP_PR_CODES)
		return "no such code";
	why = check_operands(head, step, at);
	if (why)
		return why;
	if (step->code == TP_PR_STRING && step->b && !take(stack, "n"))
		return "the stack does not hold what is taken";
	if (step->code == TP_PR_NUMBER || step->code == TP_PR_PAD)
		if ((step->b & TP_PR_HAS_WIDTH && !take(stack, "n")) ||
		    (step->b & TP_PR_HAS_PRECISION && !take(stack, "n")))
			return "the stack does not hold what is taken";
	if (!take(stack, effects[step->code].takes))
		return "the stack does not hold what is taken";
	return give(stack, effects[step->code].gives) ? NULL : "the stack is full";
}

static const char *check_code(const struct tp_print_head *head, const struct tp_print_step *code)
{
	struct stack *stacks = calloc(head->n_code, sizeof(*stacks));
	const char *why = stacks ? NULL : "";

	for (size_t at = 1; !why && at < head->n_code; at++)
		stacks[at].depth = at == head->fields_at ? 0 : -1;
	for (size_t at = 0; !why && at < head->n_code; at++) {
		const struct tp_print_step *step = &code[at];
		struct stack stack = stacks[at];

		/* Nothing leads here: it never runs. */
		if (stack.depth < 0)
			continue;
		why = check_step(head, step, at, &stack);
		if (why)
			break;
		bool jumps = step->code >= TP_PR_JUMP && step->code <= TP_PR_JUMP_UNLESS;
		bool goes_on = step->code != TP_PR_JUMP && step->code != TP_PR_END && step->code != TP_PR_LEAVE;

		if (step->code == TP_PR_END && stack.depth)
			why = "an end that is none";
		else if (jumps && !meet(&stacks[step->c], &stack))
			why = "ways that do not agree";
		else if (goes_on && at == head->n_code - 1)
			why = "no end";
		else if (goes_on && !meet(&stacks[at + 1], &stack))
			why = "ways that do not agree";
	}
	free(stacks);
	return why;
}

static const char *check_tables(const struct tp_print_head *head, const struct tp_print_table *tables,
				const struct tp_print_entry *entries)
{
	for (uint32_t n = 0; n < head->n_tables; n++)
		if (!is_inside(tables[n].first, tables[n].n, head->n_entries))
			return "a table outside of the entries";
	for (uint32_t n = 0; n < head->n_entries; n++) {
		if (!is_inside(entries[n].at, entries[n].size, head->data_size))
			return "a name outside of the data";
		if (entries[n].slot != TP_PRINT_NO_SLOT && entries[n].slot >= head->n_slots)
			return "a fact outside of the slots";
	}
	return NULL;
}

/* Put into tables the numbers that the facts give; of a table with one that is not known only its slot is kept. */
static void fill_tables(const struct tp_print_head *head, struct tp_print_program *program)
{
	for (uint32_t n = 0; n < head->n_tables; n++) {
		struct tp_print_table *table = &program->tables[n];
		uint32_t end = table->first + table->n;

		for (uint32_t i = table->first; i < end; i++) {
			struct tp_print_entry *entry = &program->entries[i];

			if (entry->slot == TP_PRINT_NO_SLOT)
				continue;
			entry->value = program->slots[entry->slot].value;
			if (program->slots[entry->slot].state != TP_PRINT_SLOT_KNOWN) {
				*table = (struct tp_print_table){ TP_PRINT_NO_SLOT, entry->slot };
				break;
			}
		}
	}
}

/* Whether two steps show a number with zeros up to a width; what never runs was not checked. */
static bool is_wide(const struct tp_print_head *head, const struct tp_print_step *width, const uint64_t *pool)
{
	const struct tp_print_step *number = width + 1;

	return width->code == TP_PR_CONST && width->c < head->n_pool && pool[width->c] && pool[width->c] <= 16 &&
	       number->code == TP_PR_NUMBER && number->b == (TP_PR_ZERO | TP_PR_HAS_WIDTH);
}

/* What a step does together with those that follow it; its own code for nothing more. */
static unsigned int joined(const struct tp_print_head *head, const struct tp_print_step *step, size_t n_after,
			   const uint64_t *pool)
{
	switch (step->code) {
	case TP_PR_LOAD:
		if (step[1].code == TP_PR_NUMBER && !step[1].b)
			return TP_PR_LOAD_NUMBER;
		if (n_after > 1 && is_wide(head, step + 1, pool) && strchr("diu", step[2].a))
			return TP_PR_LOAD_WIDE;
		if (n_after > 2 && step[1].code == TP_PR_HASHED && is_wide(head, step + 2, pool) &&
		    strchr("px", step[3].a))
			return TP_PR_LOAD_POINTER;
		break;
	case TP_PR_AT:
		if (step[1].code == TP_PR_STRING && !step[1].b)
			return TP_PR_AT_STRING;
		break;
	case TP_PR_LOCATED:
		if (step[1].code == TP_PR_STRING && !step[1].b)
			return TP_PR_LOCATED_STRING;
		break;
	case TP_PR_TEXT:
		if (step[1].code == TP_PR_LOAD_NUMBER)
			return TP_PR_TEXT_LOAD_NUMBER;
		if (step[1].code == TP_PR_LOAD_POINTER)
			return TP_PR_TEXT_LOAD_POINTER;
		if (step[1].code == TP_PR_AT_STRING)
			return TP_PR_TEXT_AT_STRING;
	}
	return step->code;
}

/* Let steps that often follow each other be one, from the last to the first; those that never run are as they are. */
static void join_steps(const struct tp_print_head *head, struct tp_print_step *code, const uint64_t *pool)
{
	for (size_t at = head->n_code - 1; at-- > 0;)
		code[at].code = (uint8_t)joined(head, &code[at], head->n_code - 1 - at, pool);
}

const char *tp_print_load(struct tp_print_program *program, const void *packed, size_t size, const void *slots,
			  size_t slots_size, unsigned int facts)
{
	struct tp_print_head head;
	const char *why;
	char *memory;

	if (size < sizeof(head))
		return "too short";
	memcpy(&head, packed, sizeof(head));
	uint64_t code_size = (uint64_t)head.n_code * sizeof(struct tp_print_step);
	uint64_t pool_size = (uint64_t)head.n_pool * sizeof(uint64_t);
	uint64_t tables_size = (uint64_t)head.n_tables * sizeof(struct tp_print_table);
	uint64_t entries_size = (uint64_t)head.n_entries * sizeof(struct tp_print_entry);

	if (head.magic != TP_PRINT_MAGIC || !head.n_code ||
	    sizeof(head) + code_size + pool_size + tables_size + entries_size + head.data_size != size)
		return "not of the size that its head says";
	if (slots_size != (uint64_t)head.n_slots * sizeof(struct tp_print_slot))
		return "other facts than its head says";
	if (head.fields_at >= head.n_code || head.n_slots > TP_PRINT_MOST_SLOTS)
		return "not of the size that its head says";
	/* Every part is a multiple of 8 bytes but the data, which comes last. */
	memory = calloc(1, slots_size + size + TP_PRINT_PAD);
	if (!memory)
		return "";
	if (slots_size)
		memcpy(memory, slots, slots_size);
	memcpy(memory + slots_size, packed, size);
	char *at = memory + slots_size + sizeof(head);

	*program = (struct tp_print_program){ .flags = head.flags, .facts = facts, .memory = memory };
	program->fields_at = head.fields_at;
	program->n_slots = head.n_slots;
	program->slots = (const void *)memory;
	program->code = (void *)at;
	program->pool = (const void *)(at += code_size);
	program->tables = (void *)(at += pool_size);
	program->entries = (void *)(at += tables_size);
	program->data = (const void *)(at + entries_size);
	why = check_tables(&head, program->tables, program->entries);
	if (!why)
		why = check_code(&head, program->code);
	if (why) {
		tp_print_free(program);
		return why;
	}
	fill_tables(&head, program);
	join_steps(&head, program->code, program->pool);
	return NULL;
}

bool tp_print_take_texts(struct tp_print_texts *texts, const void *buffer, size_t size)
{
	uint64_t head[2], n;

	*texts = (struct tp_print_texts){ .n_slots = 0 };
	if (!size)
		return true;
	if (size < sizeof(head))
		return false;
	memcpy(head, buffer, sizeof(head));
	n = head[0];
	if (n < 2 || n & (n - 1) || n > (size - sizeof(head)) / sizeof(struct tp_print_text))
		return false;
	texts->slots = (const unsigned char *)buffer + sizeof(head);
	texts->data = texts->slots + n * sizeof(struct tp_print_text);
	texts->n_slots = n;
	texts->lowest = head[1];
	texts->data_size = size - sizeof(head) - n * sizeof(struct tp_print_text);
	return true;
}

void tp_print_free(struct tp_print_program *program)
{
	free(program->memory);
	program->memory = NULL;
}
