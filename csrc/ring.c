/* Making rings, and the writing side. */
#include "ring_shared.h"

#include <errno.h>

static const char magic[8] = "tp-ring";

static size_t head_size(uint32_t n_pages)
{
	size_t size = sizeof(struct tp_ring_head);

	size += n_pages * sizeof(uint64_t);
	size += ((size_t)n_pages + 1) * sizeof(struct tp_page_note);
	return (size + TP_PAGE_SIZE - 1) & ~(size_t)(TP_PAGE_SIZE - 1);
}

size_t tp_ring_size(uint32_t n_pages)
{
	return head_size(n_pages) + ((size_t)n_pages + 1) * TP_PAGE_SIZE;
}

static void set_pointers(struct tp_ring *ring, void *memory, uint32_t n_pages)
{
	unsigned char *base = memory;

	memset(ring, 0, sizeof(*ring));
	ring->head = memory;
	ring->n_pages = n_pages;
	ring->size = tp_ring_size(n_pages);
	ring->slots = (void *)(base + sizeof(struct tp_ring_head));
	ring->notes = (void *)(ring->slots + n_pages);
	ring->pages = (void *)(base + head_size(n_pages));
}

int tp_ring_init(struct tp_ring *ring, void *memory, uint32_t n_pages, uint32_t flags)
{
	if (n_pages < TP_MIN_PAGES || n_pages > TP_MAX_PAGES)
		return -EINVAL;
	set_pointers(ring, memory, n_pages);
	ring->cpu = TP_CPU_NONE;
	for (uint32_t i = 0; i < n_pages; i++)
		store(&ring->slots[i], slot_word(i, true, i));
	/* Page 0 is being written from the start. */
	store(&ring->slots[0], slot_word(0, false, 0));
	ring->page = &ring->pages[0];
	ring->note = &ring->notes[0];

	struct tp_ring_head *head = ring->head;
	head->format = TP_RING_FORMAT;
	head->head_size = head_size(n_pages);
	head->page_size = TP_PAGE_SIZE;
	head->n_pages = n_pages;
	store(&head->flags, flags);
	store(&head->read_page, n_pages);
	store(&head->read_cpu, -1);
	atomic_thread_fence(memory_order_release);
	memcpy(head->magic, magic, sizeof(magic));
	return 0;
}

int tp_ring_attach(struct tp_ring *ring, void *memory, size_t size)
{
	struct tp_ring_head *head = memory;

	if (size < sizeof(*head) || memcmp(head->magic, magic, sizeof(magic)))
		return -EINVAL;
	uint32_t n_pages = head->n_pages;
	if (head->format != TP_RING_FORMAT || head->page_size != TP_PAGE_SIZE)
		return -EINVAL;
	if (n_pages < TP_MIN_PAGES || n_pages > TP_MAX_PAGES)
		return -EINVAL;
	if (head->head_size != head_size(n_pages) || size < tp_ring_size(n_pages))
		return -EINVAL;
	set_pointers(ring, memory, n_pages);
	return load(&head->read_page) <= n_pages ? 0 : -EINVAL;
}

/* ---- writing ---- */

static unsigned char *put_header(unsigned char *at, uint32_t type_len, uint64_t delta, uint32_t value)
{
	uint32_t words[2] = { type_len | (uint32_t)(delta & DELTA_MASK) << 5, value };

	memcpy(at, words, sizeof(words));
	return at + sizeof(words);
}

static void *put_event(unsigned char *at, uint32_t size, uint64_t delta)
{
	uint32_t header = (uint32_t)delta << 5;
	const unsigned char zeros[8] = { 0 };

	/* The payload need not fill its last words; old contents must not be visible. */
	memcpy(at + size - 4, zeros, 4);
	if (size > 8)
		memcpy(at + size - 8, zeros, 8);
	if (size - 4 > 4 * TP_TYPE_DATA_MAX)
		return put_header(at, 0, delta, size - 4);
	header |= (size - 4) / 4;
	memcpy(at, &header, sizeof(header));
	return at + sizeof(header);
}

/* Take the slot for page number seq.  Returns the page's index, or -1 with the reason counted. */
static int64_t claim_slot(struct tp_ring *ring, uint64_t seq)
{
	struct tp_ring_head *head = ring->head;
	_Atomic uint64_t *slot = &ring->slots[seq % ring->n_pages];
	uint64_t word = load_acquire(slot);

	if (!slot_is_free(word)) {
		if (slot_seq(word) >= ring->commit_seq && ring->depth) {
			add(&head->n_commit_overrun, 1);
			return -1;
		}
		if (!(load(&head->flags) & TP_RING_OVERWRITE)) {
			add(&head->n_dropped, 1);
			return -1;
		}
		uint32_t index = slot_index(word);
		if (atomic_compare_exchange_strong(slot, &word, slot_word(seq, false, index))) {
			store_release(&head->n_overrun,
				      load(&head->n_overrun) + load(&ring->notes[index].n_entries));
			return index;
		}
		/* The reader was faster: `word` now holds its spare page. */
	}
	uint32_t index = slot_index(word);
	store_release(slot, slot_word(seq, false, index));
	return index;
}

static bool next_page(struct tp_ring *ring)
{
	int64_t index = claim_slot(ring, ring->seq + 1);

	/* What is left of the page stays unused: the kernel fills it with padding. */
	ring->at = TP_PAGE_DATA;
	if (index < 0)
		return false;
	store(&ring->note->end, ring->end);

	struct tp_page *page = &ring->pages[index];
	struct tp_page_note *note = &ring->notes[index];
	/* A page counts only when its note bears its number: a kill in between leaves no stale events. */
	store_release(&page->commit, 0);
	store(&note->n_entries, 0);
	store(&note->end, 0);
	ring->seq++;
	store_release(&note->seq, ring->seq);
	ring->page = page;
	ring->note = note;
	ring->page_index = index;
	ring->at = ring->end = 0;
	ring->cpu = TP_CPU_NONE;
	return true;
}

enum stamp_kind { STAMP_DELTA, STAMP_EXTEND, STAMP_ABSOLUTE, STAMP_NEW_PAGE };

static enum stamp_kind stamp_kind(const struct tp_ring *ring, uint64_t stamp)
{
	uint64_t delta = stamp - ring->stamp;

	if (ring->at == 0)
		return STAMP_DELTA;
	if (stamp >= ring->stamp) {
		if (delta <= DELTA_MASK)
			return STAMP_DELTA;
		if (delta < 1ull << TP_STAMP_BITS)
			return STAMP_EXTEND;
		return STAMP_NEW_PAGE;
	}
	/* An absolute stamp keeps the top bits of the one before; only a page can show a change of them. */
	return stamp >> TP_STAMP_BITS == ring->stamp >> TP_STAMP_BITS ? STAMP_ABSOLUTE : STAMP_NEW_PAGE;
}

/* The bytes before an event: its CPU when that changed, its time when that does not fit the header. */
static uint32_t room_before(const struct tp_ring *ring, enum stamp_kind kind, int32_t cpu)
{
	uint32_t room = kind == STAMP_DELTA ? 0 : EXTEND_SIZE;

	return cpu >= 0 && cpu != ring->cpu ? room + TP_CPU_MARK_SIZE : room;
}

/* Write the mark and return the time of what was before the event, now that one unit of it is gone. */
static uint64_t mark_cpu(struct tp_ring *ring, int32_t cpu, uint64_t *stamp)
{
	uint64_t before = ring->stamp;

	if (!ring->at) {
		before = *stamp - 1;
		store(&ring->page->time_stamp, before);
	} else if (before == *stamp) {
		++*stamp;
	}
	put_cpu_mark(ring->page->data + ring->at, (uint32_t)cpu);
	ring->at += TP_CPU_MARK_SIZE;
	ring->cpu = cpu;
	return before + 1;
}

/* The longest events fill a page alone: without the CPU and, as the page has a time, without a time. */
static enum stamp_kind shed(const struct tp_ring *ring, enum stamp_kind kind, uint32_t size, int32_t *cpu)
{
	if (ring->at)
		return kind;
	if (room_before(ring, kind, *cpu) + size > TP_PAGE_DATA)
		*cpu = -1;
	return room_before(ring, kind, *cpu) + size > TP_PAGE_DATA ? STAMP_DELTA : kind;
}

static void *place_event(struct tp_ring *ring, uint32_t size, uint64_t stamp, int32_t cpu)
{
	enum stamp_kind kind = shed(ring, stamp_kind(ring, stamp), size, &cpu);

	if (kind == STAMP_NEW_PAGE || ring->at + room_before(ring, kind, cpu) + size > TP_PAGE_DATA) {
		if (!next_page(ring))
			return NULL;
		kind = shed(ring, stamp_kind(ring, stamp), size, &cpu);
	}
	uint64_t before = ring->at ? ring->stamp : stamp;
	if (!ring->at)
		store(&ring->page->time_stamp, stamp);
	if (cpu >= 0 && cpu != ring->cpu)
		before = mark_cpu(ring, cpu, &stamp);
	uint64_t delta = stamp - before;
	unsigned char *to = ring->page->data + ring->at;
	if (kind == STAMP_EXTEND) {
		to = put_header(to, TP_TYPE_TIME_EXTEND, delta, delta >> TP_DELTA_BITS);
		delta = 0;
	} else if (kind == STAMP_ABSOLUTE) {
		uint64_t low = stamp & ((1ull << TP_STAMP_BITS) - 1);
		to = put_header(to, TP_TYPE_TIME_STAMP, low, low >> TP_DELTA_BITS);
		delta = 0;
	}
	void *payload = put_event(to, size, delta);
	ring->at = ring->end = to + size - ring->page->data;
	ring->stamp = stamp;
	return payload;
}

/* Most events: the page has begun, there is room, on the same CPU, and the time since the last fits the header. */
static inline void *place_quickly(struct tp_ring *ring, uint32_t size, uint64_t stamp, int32_t cpu)
{
	uint64_t delta = stamp - ring->stamp;
	uint32_t at = ring->at;

	if (!at || cpu != ring->cpu || delta > DELTA_MASK || at + size > TP_PAGE_DATA)
		return NULL;
	void *payload = put_event(ring->page->data + at, size, delta);
	ring->at = ring->end = at + size;
	ring->stamp = stamp;
	return payload;
}

void *tp_ring_reserve(struct tp_ring *ring, size_t length, uint64_t stamp, int32_t cpu)
{
	void *payload = NULL;

	if (ring->is_busy) {
		add(&ring->head->n_nested, 1);
		return NULL;
	}
	ring->is_busy = true;
	atomic_signal_fence(memory_order_seq_cst);
	if (length > TP_MAX_PAYLOAD) {
		add(&ring->head->n_dropped, 1);
	} else {
		uint32_t size = tp_event_size((uint32_t)length);
		payload = place_quickly(ring, size, stamp, cpu);
		if (!payload)
			payload = place_event(ring, size, stamp, cpu);
	}
	if (payload)
		ring->depth++;
	atomic_signal_fence(memory_order_seq_cst);
	ring->is_busy = false;
	return payload;
}

/*
 * The outermost event is done: show readers everything up to here.  Only the first of the pages may be
 * with the reader; the others were beyond the tail it knows, so they are in their slots.
 */
static void publish(struct tp_ring *ring)
{
	uint32_t index = ring->commit_index;

	while (ring->commit_seq < ring->seq) {
		uint32_t end = load(&ring->notes[index].end);
		store_release(&ring->pages[index].commit, end);
		ring->commit_seq++;
		index = slot_index(load(&ring->slots[ring->commit_seq % ring->n_pages]));
	}
	ring->commit_index = ring->page_index;
	store_release(&ring->page->commit, ring->end);
	store_release(&ring->head->tail, ring->seq);
}

static struct tp_page_note *note_of(struct tp_ring *ring, const void *payload)
{
	size_t offset = (const unsigned char *)payload - (const unsigned char *)ring->pages;

	return &ring->notes[offset / TP_PAGE_SIZE];
}

void tp_ring_commit(struct tp_ring *ring, void *payload)
{
	struct tp_page_note *note = note_of(ring, payload);

	/* A signal handler that comes now would make the counts wrong; it is counted instead. */
	ring->is_busy = true;
	atomic_signal_fence(memory_order_seq_cst);
	add(&note->n_entries, 1);
	add(&ring->head->n_written, 1);
	if (!--ring->depth) {
		if (ring->commit_seq != ring->seq)
			publish(ring);
		else
			store_release(&ring->page->commit, ring->end);
	}
	atomic_signal_fence(memory_order_seq_cst);
	ring->is_busy = false;
}
