/* The reading side of a ring: in the process that writes it, or in another one. */
#include "ring_shared.h"

#include <sched.h>

/* How often a reader that changes its place is waited for. */
enum { MAX_TURNS = 1000 };

/* What one page holds between two places, walked as a reader does. */
struct walk {
	uint64_t n_entries;
	uint64_t stamp;
	int32_t cpu; /* -1: not known */
};

static void count_record(void *to, uint64_t stamp, uint32_t at, uint32_t size)
{
	(void)stamp, (void)at, (void)size;
	((struct walk *)to)->n_entries++;
}

static void take_cpu(void *to, int32_t cpu)
{
	((struct walk *)to)->cpu = cpu;
}

static struct walk walk_events(const unsigned char *data, uint32_t end, uint64_t stamp, int32_t cpu)
{
	struct walk walk = { 0, stamp, cpu };

	tp_walk_page(data, end & ~3u, &walk.stamp, false, count_record, take_cpu, &walk);
	return walk;
}

static uint32_t committed(const struct tp_page *page)
{
	uint32_t size = load_acquire(&page->commit) & COMMIT_MASK;

	return size > TP_PAGE_DATA ? TP_PAGE_DATA : size;
}

static void fill_page(struct tp_page *out, const unsigned char *data, uint32_t size, uint64_t stamp)
{
	store(&out->time_stamp, stamp);
	store(&out->commit, size);
	memcpy(out->data, data, size);
	memset(out->data + size, 0, TP_PAGE_DATA - size);
}

/* What was not read yet of the reader's page, with the CPU from a mark in the other part. */
static uint32_t fill_rest(const struct tp_ring *ring, struct tp_page *out, uint32_t index, uint32_t at, uint32_t size)
{
	const struct tp_ring_head *head = ring->head;
	const unsigned char *data = ring->pages[index].data;
	uint64_t stamp = load(&head->read_stamp);
	int32_t cpu = load(&head->read_cpu);

	if (cpu < 0 || at < TP_CPU_MARK_SIZE) {
		fill_page(out, data + at, size - at, stamp);
		return size - at;
	}
	size -= at - TP_CPU_MARK_SIZE;
	fill_page(out, data + at - TP_CPU_MARK_SIZE, size, stamp - 1);
	put_cpu_mark(out->data, (uint32_t)cpu);
	return size;
}

/* As ring_buffer_read_page(): bit 31 added as a negative int, the count after the data if it fits. */
static void mark_lost(struct tp_page *out, uint64_t lost)
{
	uint32_t size = load(&out->commit);
	uint64_t commit = size + (0xffffffffull << 32 | 1ull << MISSED_EVENTS_BIT);

	if (size + sizeof(lost) <= TP_PAGE_DATA) {
		memcpy(out->data + size, &lost, sizeof(lost));
		commit += 1ull << MISSED_STORED_BIT;
	}
	store(&out->commit, commit);
}

/* Others may look while the reader changes its place: tp_ring_peek() in another process. */
static void turn(struct tp_ring_head *head)
{
	atomic_thread_fence(memory_order_release);
	add(&head->read_turn, 1);
	atomic_thread_fence(memory_order_release);
}

/* Exchange the spare page for the oldest unread one, up to page number `tail`. */
static bool take_page(struct tp_ring *ring, uint64_t tail, uint64_t *lost)
{
	struct tp_ring_head *head = ring->head;
	uint64_t first = load(&head->read_seq);

	if (tail >= ring->n_pages && first < tail - ring->n_pages + 1)
		first = tail - ring->n_pages + 1;
	for (uint64_t seq = first; seq <= tail; seq++) {
		_Atomic uint64_t *slot = &ring->slots[seq % ring->n_pages];
		uint64_t overrun = load_acquire(&head->n_overrun);
		uint64_t word = load_acquire(slot);
		uint32_t index = slot_index(word);
		if (slot_is_free(word) || slot_seq(word) != seq || index > ring->n_pages)
			continue;
		uint64_t spare = slot_word(seq + ring->n_pages, true, load(&head->read_page));
		turn(head);
		if (!atomic_compare_exchange_strong(slot, &word, spare)) {
			turn(head);
			continue;
		}
		*lost = overrun - load(&head->seen_overrun);
		store(&head->seen_overrun, overrun);
		store(&head->read_page, index);
		store(&head->read_at, 0);
		store(&head->read_cpu, -1);
		store(&head->read_stamp, load(&ring->pages[index].time_stamp));
		store_release(&head->read_seq, seq + 1);
		turn(head);
		return true;
	}
	return false;
}

/* Make the reader's page one with something to read; returns its bytes, 0 when there is nothing. */
static uint32_t page_to_read(struct tp_ring *ring, uint64_t *lost)
{
	struct tp_ring_head *head = ring->head;

	for (;;) {
		uint64_t tail = load_acquire(&head->tail);
		uint64_t held = load(&head->read_seq);
		uint32_t index = load(&head->read_page);
		if (index > ring->n_pages)
			return 0;
		if (held) {
			uint32_t size = committed(&ring->pages[index]);
			if (load(&head->read_at) < size)
				return size;
			if (held > tail)
				return 0;
		}
		if (!take_page(ring, tail, lost) && load_acquire(&head->tail) == tail)
			return 0;
	}
}

/* Count what is between the place read last and `size` as read. */
static void consume(struct tp_ring *ring, uint32_t size)
{
	struct tp_ring_head *head = ring->head;
	const struct tp_page *page = &ring->pages[load(&head->read_page)];
	uint32_t at = load(&head->read_at);
	struct walk walk =
		walk_events(page->data + at, size - at, load(&head->read_stamp), load(&head->read_cpu));

	turn(head);
	add(&head->n_read, walk.n_entries);
	store(&head->read_stamp, walk.stamp);
	store(&head->read_cpu, walk.cpu);
	store_release(&head->read_at, size);
	turn(head);
}

int tp_ring_read(struct tp_ring *ring, void *out)
{
	uint64_t lost = 0;
	uint32_t size = page_to_read(ring, &lost);

	if (!size)
		return 0;
	uint32_t index = load(&ring->head->read_page), at = load(&ring->head->read_at);
	uint32_t filled = fill_rest(ring, out, index, at, size);
	if (lost)
		mark_lost(out, lost);
	consume(ring, size);
	return filled;
}

void tp_ring_clear(struct tp_ring *ring)
{
	struct tp_ring_head *head = ring->head;
	uint64_t lost;
	uint32_t size;

	while ((size = page_to_read(ring, &lost)))
		consume(ring, size);
	store(&head->base_overrun, load(&head->n_overrun));
	store(&head->base_read, load(&head->n_read));
	store(&head->base_dropped, load(&head->n_dropped));
	store(&head->base_commit_overrun, load(&head->n_commit_overrun));
	store(&head->base_nested, load(&head->n_nested));
}

/* Copy page number seq from its slot; false when it is not there or was overwritten meanwhile. */
static bool peek_page(struct tp_ring *ring, uint64_t seq, struct tp_page *out)
{
	_Atomic uint64_t *slot = &ring->slots[seq % ring->n_pages];
	uint64_t word = load_acquire(slot);
	uint32_t index = slot_index(word);

	if (slot_is_free(word) || slot_seq(word) != seq || index > ring->n_pages)
		return false;
	if (load_acquire(&ring->notes[index].seq) != seq)
		return false;
	const struct tp_page *page = &ring->pages[index];
	fill_page(out, page->data, committed(page), load(&page->time_stamp));
	atomic_thread_fence(memory_order_acquire);
	return load(slot) == word;
}

static bool is_given_back(const struct tp_ring *ring, uint32_t index)
{
	for (uint32_t i = 0; i < ring->n_pages; i++)
		if (slot_index(load_acquire(&ring->slots[i])) == index)
			return true;
	return false;
}

/*
 * Copy what was not read yet of the reader's page, unless the reader is faster; *cursor becomes the page
 * after it.  A reader that was killed in the middle of a turn never ends it.
 */
static uint32_t peek_held(const struct tp_ring *ring, uint64_t *cursor, struct tp_page *out)
{
	const struct tp_ring_head *head = ring->head;

	for (int i = 0; i < MAX_TURNS; i++) {
		uint32_t begin = load_acquire(&head->read_turn);
		uint64_t held = load(&head->read_seq);
		uint32_t index = load(&head->read_page), at = load(&head->read_at);
		uint32_t size = held && index <= ring->n_pages ? committed(&ring->pages[index]) : 0;
		uint32_t filled = at < size ? fill_rest(ring, out, index, at, size) : 0;
		*cursor = held + 1;
		atomic_thread_fence(memory_order_acquire);
		if (load(&head->read_turn) != begin)
			continue;
		if (!(begin & 1))
			return filled;
		if (i == MAX_TURNS - 1)
			return is_given_back(ring, index) ? 0 : filled;
		sched_yield();
	}
	return 0;
}

int tp_ring_peek(struct tp_ring *ring, uint64_t *cursor, void *out)
{
	struct tp_ring_head *head = ring->head;

	if (!*cursor) {
		uint32_t filled = peek_held(ring, cursor, out);
		if (filled)
			return filled;
	}
	uint64_t tail = load_acquire(&head->tail);
	while (*cursor - 1 <= tail) {
		uint64_t seq = *cursor - 1;
		if (tail >= ring->n_pages && seq < tail - ring->n_pages + 1)
			seq = tail - ring->n_pages + 1;
		*cursor = seq + 2;
		if (peek_page(ring, seq, out) && load(&((struct tp_page *)out)->commit))
			return load(&((struct tp_page *)out)->commit);
	}
	return 0;
}

void tp_ring_stats(const struct tp_ring *ring, struct tp_ring_stats *ret)
{
	const struct tp_ring_head *head = ring->head;
	uint64_t read = load(&head->n_read), overrun = load(&head->n_overrun);
	uint64_t tail = load_acquire(&head->tail), held = load(&head->read_seq);
	uint32_t index = load(&head->read_page);

	memset(ret, 0, sizeof(*ret));
	ret->entries = load(&head->n_written) - overrun - read;
	ret->overrun = overrun - load(&head->base_overrun);
	ret->read = read - load(&head->base_read);
	ret->dropped = load(&head->n_dropped) - load(&head->base_dropped);
	ret->commit_overrun = load(&head->n_commit_overrun) - load(&head->base_commit_overrun);
	ret->nested = load(&head->n_nested) - load(&head->base_nested);
	if (held && index <= ring->n_pages && load(&head->read_at) < committed(&ring->pages[index])) {
		ret->bytes = committed(&ring->pages[index]) - load(&head->read_at);
		ret->oldest_stamp = load(&head->read_stamp);
	}
	uint64_t seq = tail >= ring->n_pages && held < tail - ring->n_pages + 1 ? tail - ring->n_pages + 1 : held;
	for (; seq <= tail; seq++) {
		uint64_t word = load_acquire(&ring->slots[seq % ring->n_pages]);
		index = slot_index(word);
		if (slot_is_free(word) || slot_seq(word) != seq || index > ring->n_pages)
			continue;
		if (!ret->bytes)
			ret->oldest_stamp = load(&ring->pages[index].time_stamp);
		ret->bytes += committed(&ring->pages[index]);
	}
}
