#include "ring.h"

#include <errno.h>
#include <string.h>

enum {
	MISSED_EVENTS_BIT = 31,
	MISSED_STORED_BIT = 30,
	COMMIT_MASK = (1 << 27) - 1,
	DELTA_BITS = 27,
	DELTA_MASK = (1 << DELTA_BITS) - 1,
	STAMP_BITS = 59,
	EXTEND_SIZE = 8,
	INDEX_BITS = 16,
	SLOT_FREE = 1 << INDEX_BITS,
	SEQ_SHIFT = INDEX_BITS + 1,
};

static const char magic[8] = "tp-ring";

#define load(p) atomic_load_explicit(p, memory_order_relaxed)
#define load_acquire(p) atomic_load_explicit(p, memory_order_acquire)
#define store(p, v) atomic_store_explicit(p, v, memory_order_relaxed)
#define store_release(p, v) atomic_store_explicit(p, v, memory_order_release)
/* For counters with a single writer: no locked instruction. */
#define add(p, v) store(p, load(p) + (v))

static uint64_t slot_word(uint64_t seq, uint64_t is_free, uint32_t index)
{
	return seq << SEQ_SHIFT | (is_free ? SLOT_FREE : 0) | index;
}

static uint64_t slot_seq(uint64_t word)
{
	return word >> SEQ_SHIFT;
}

static bool slot_is_free(uint64_t word)
{
	return word & SLOT_FREE;
}

static uint32_t slot_index(uint64_t word)
{
	return word & (SLOT_FREE - 1);
}

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
	for (uint32_t i = 0; i < n_pages; i++)
		store(&ring->slots[i], slot_word(i, true, i));
	/* Page 0 is being written from the start. */
	store(&ring->slots[0], slot_word(0, false, 0));
	ring->page = &ring->pages[0];

	struct tp_ring_head *head = ring->head;
	head->format = TP_RING_FORMAT;
	head->head_size = head_size(n_pages);
	head->page_size = TP_PAGE_SIZE;
	head->n_pages = n_pages;
	store(&head->flags, flags);
	store(&head->read_page, n_pages);
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

/* As rb_calculate_event_length(): 12 bytes are never used, so that an event can become padding. */
static uint32_t event_size(size_t length)
{
	uint32_t size = length ? length : 1;

	size += size > 4 * TP_TYPE_DATA_MAX ? 8 : 4;
	size = (size + 3) & ~3u;
	return size == EXTEND_SIZE + 4 ? size + 4 : size;
}

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

	/* The payload need not fill its last words; nobody shall see what was there. */
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
	store(&ring->notes[ring->page_index].end, ring->end);

	struct tp_page *page = &ring->pages[index];
	struct tp_page_note *note = &ring->notes[index];
	/* A page counts only when its note bears its number: a kill in between leaves no stale events. */
	store_release(&page->commit, 0);
	store(&note->n_entries, 0);
	store(&note->end, 0);
	ring->seq++;
	store_release(&note->seq, ring->seq);
	ring->page = page;
	ring->page_index = index;
	ring->at = ring->end = 0;
	ring->last_payload = NULL;
	return true;
}

enum stamp_kind { STAMP_DELTA, STAMP_EXTEND, STAMP_ABSOLUTE, STAMP_NEW_PAGE };

static enum stamp_kind stamp_kind(const struct tp_ring *ring, uint64_t stamp)
{
	uint64_t delta = stamp - ring->stamp;
	bool is_absolute = load(&ring->head->flags) & TP_RING_ABSOLUTE;

	if (ring->at == 0)
		return is_absolute ? STAMP_ABSOLUTE : STAMP_DELTA;
	if (stamp >= ring->stamp && !is_absolute) {
		if (delta <= DELTA_MASK)
			return STAMP_DELTA;
		if (delta < 1ull << STAMP_BITS)
			return STAMP_EXTEND;
		return STAMP_NEW_PAGE;
	}
	/* An absolute stamp keeps the top bits of the one before; when they differ only a page can tell. */
	return stamp >> STAMP_BITS == ring->stamp >> STAMP_BITS ? STAMP_ABSOLUTE : STAMP_NEW_PAGE;
}

static void *place_event(struct tp_ring *ring, uint32_t size, uint64_t stamp)
{
	enum stamp_kind kind = stamp_kind(ring, stamp);
	uint32_t room = kind == STAMP_DELTA ? 0 : EXTEND_SIZE;

	if (kind == STAMP_NEW_PAGE || ring->at + room + size > TP_PAGE_DATA) {
		if (!next_page(ring))
			return NULL;
		kind = stamp_kind(ring, stamp);
		if (kind == STAMP_ABSOLUTE && EXTEND_SIZE + size > TP_PAGE_DATA)
			kind = STAMP_DELTA;
	}
	ring->last_at = ring->at;
	ring->last_stamp = ring->stamp;
	uint64_t delta = stamp - ring->stamp;
	if (ring->at == 0) {
		ring->page->time_stamp = stamp;
		delta = 0;
	}
	unsigned char *to = ring->page->data + ring->at;
	if (kind == STAMP_EXTEND) {
		to = put_header(to, TP_TYPE_TIME_EXTEND, delta, delta >> DELTA_BITS);
		delta = 0;
	} else if (kind == STAMP_ABSOLUTE) {
		uint64_t low = stamp & ((1ull << STAMP_BITS) - 1);
		to = put_header(to, TP_TYPE_TIME_STAMP, low, low >> DELTA_BITS);
		delta = 0;
	}
	void *payload = put_event(to, size, delta);
	ring->at = ring->end = to + size - ring->page->data;
	ring->stamp = stamp;
	ring->last_payload = payload;
	return payload;
}

/* Most events: the page has begun, there is room, and the time since the last fits the header. */
static inline void *place_quickly(struct tp_ring *ring, uint32_t size, uint64_t stamp)
{
	uint64_t delta = stamp - ring->stamp;
	uint32_t at = ring->at;

	if (!at || delta > DELTA_MASK || at + size > TP_PAGE_DATA ||
	    load(&ring->head->flags) & TP_RING_ABSOLUTE)
		return NULL;
	void *payload = put_event(ring->page->data + at, size, delta);
	ring->last_at = at;
	ring->last_stamp = ring->stamp;
	ring->last_payload = payload;
	ring->at = ring->end = at + size;
	ring->stamp = stamp;
	return payload;
}

void *tp_ring_reserve(struct tp_ring *ring, size_t length, uint64_t stamp)
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
		uint32_t size = event_size(length);
		payload = place_quickly(ring, size, stamp);
		if (!payload)
			payload = place_event(ring, size, stamp);
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

static void make_padding(unsigned char *at, uint32_t size)
{
	uint32_t header;

	memcpy(&header, at, sizeof(header));
	uint32_t delta = header >> 5;
	/* Delta 0 would mean that the rest of the page is unused. */
	put_header(at, TP_TYPE_PADDING, delta ? delta : 1, size - 4);
}

void tp_ring_discard(struct tp_ring *ring, void *payload, size_t length)
{
	uint32_t size = event_size(length);

	ring->is_busy = true;
	atomic_signal_fence(memory_order_seq_cst);
	ring->depth--;
	if (payload == ring->last_payload) {
		ring->at = ring->end = ring->last_at;
		ring->stamp = ring->last_stamp;
		ring->last_payload = NULL;
	} else {
		uint32_t header_size = size - 4 > 4 * TP_TYPE_DATA_MAX ? 8 : 4;
		make_padding((unsigned char *)payload - header_size, size);
	}
	if (!ring->depth)
		publish(ring);
	atomic_signal_fence(memory_order_seq_cst);
	ring->is_busy = false;
}

/* ---- reading ---- */

/* What one page holds between two places, walked as a reader does. */
struct walk {
	uint64_t n_entries;
	uint64_t stamp;
};

static struct walk walk_events(const unsigned char *data, uint32_t end, uint64_t stamp)
{
	struct walk walk = { 0, stamp };
	uint32_t at = 0;

	while (at + 4 <= end) {
		uint32_t header, value = 0;
		memcpy(&header, data + at, sizeof(header));
		if (at + 8 <= end)
			memcpy(&value, data + at + 4, sizeof(value));
		uint64_t delta = header >> 5;
		uint64_t size;
		switch (header & 31) {
		case TP_TYPE_PADDING:
			if (!delta)
				return walk;
			size = 4 + (uint64_t)value;
			walk.stamp += delta;
			break;
		case TP_TYPE_TIME_EXTEND:
			size = EXTEND_SIZE;
			walk.stamp += ((uint64_t)value << DELTA_BITS) + delta;
			break;
		case TP_TYPE_TIME_STAMP:
			size = EXTEND_SIZE;
			walk.stamp &= ~((1ull << STAMP_BITS) - 1);
			walk.stamp |= ((uint64_t)value << DELTA_BITS) + delta;
			break;
		case 0:
			size = 4 + (((uint64_t)value + 3) & ~3ull);
			walk.stamp += delta;
			walk.n_entries++;
			break;
		default:
			size = 4 + 4 * (header & 31);
			walk.stamp += delta;
			walk.n_entries++;
		}
		at += size > TP_PAGE_DATA ? TP_PAGE_DATA : size;
	}
	return walk;
}

static uint32_t committed(const struct tp_page *page)
{
	uint32_t size = load_acquire(&page->commit) & COMMIT_MASK;

	return size > TP_PAGE_DATA ? TP_PAGE_DATA : size;
}

static void fill_page(struct tp_page *out, const unsigned char *data, uint32_t size, uint64_t stamp)
{
	out->time_stamp = stamp;
	store(&out->commit, size);
	memcpy(out->data, data, size);
	memset(out->data + size, 0, TP_PAGE_DATA - size);
}

/* As ring_buffer_read_page(): bit 31 added as a negative int, the count behind the data if it fits. */
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
		if (!atomic_compare_exchange_strong(slot, &word, spare))
			continue;
		*lost = overrun - load(&head->seen_overrun);
		store(&head->seen_overrun, overrun);
		store(&head->read_page, index);
		store(&head->read_at, 0);
		store(&head->read_stamp, ring->pages[index].time_stamp);
		store_release(&head->read_seq, seq + 1);
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
	struct walk walk = walk_events(page->data + at, size - at, load(&head->read_stamp));

	add(&head->n_read, walk.n_entries);
	store(&head->read_stamp, walk.stamp);
	store_release(&head->read_at, size);
}

int tp_ring_read(struct tp_ring *ring, void *out)
{
	struct tp_ring_head *head = ring->head;
	uint64_t lost = 0;
	uint32_t size = page_to_read(ring, &lost);

	if (!size)
		return 0;
	const struct tp_page *page = &ring->pages[load(&head->read_page)];
	uint32_t at = load(&head->read_at);
	fill_page(out, page->data + at, size - at, load(&head->read_stamp));
	if (lost)
		mark_lost(out, lost);
	consume(ring, size);
	return size - at;
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
	fill_page(out, page->data, committed(page), page->time_stamp);
	atomic_thread_fence(memory_order_acquire);
	return load(slot) == word;
}

int tp_ring_peek(struct tp_ring *ring, uint64_t *cursor, void *out)
{
	struct tp_ring_head *head = ring->head;
	uint64_t tail = load_acquire(&head->tail);
	uint64_t held = load(&head->read_seq);
	uint32_t index = load(&head->read_page);

	if (!*cursor) {
		*cursor = held + 1;
		uint32_t at = load(&head->read_at);
		uint32_t size = held && index <= ring->n_pages ? committed(&ring->pages[index]) : 0;
		if (at < size) {
			fill_page(out, ring->pages[index].data + at, size - at, load(&head->read_stamp));
			return size - at;
		}
	}
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
			ret->oldest_stamp = ring->pages[index].time_stamp;
		ret->bytes += committed(&ring->pages[index]);
	}
}
