/*
 * A ring buffer of one thread: sub-buffers (pages) and records as the kernel's ring buffer has them
 * (kernel/trace/ring_buffer.c, include/linux/ring_buffer.h; little endian, 64 bit).
 *
 * One thread writes: reserve, fill, commit; a signal handler of that thread may do the same in between.
 * One reader takes pages while the writer writes; neither waits for the other and there is no lock.
 *
 * Everything that a reader needs lies in one block of memory, which may be a mapped file: then another
 * process can read it, and whatever was committed when its owner was killed is there.
 *
 *     struct tp_ring_head | slots | page notes | n_pages + 1 pages
 *
 * Page number s of the recording lives in slot s % n_pages.  A slot word says which page it holds and
 * for which s.  The reader takes a page out of its slot by exchanging it for the spare one, the writer
 * claims the slot of the oldest page when it comes round; the first to change the word has the page.
 */
#ifndef TP_RING_H
#define TP_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TP_PAGE_SIZE = 4096,
	TP_PAGE_HEAD = 16,
	TP_PAGE_DATA = TP_PAGE_SIZE - TP_PAGE_HEAD,
	TP_MAX_PAYLOAD = TP_PAGE_DATA - 8,
	TP_MIN_PAGES = 2,
	TP_MAX_PAGES = 65534,
	TP_RING_FORMAT = 2,
	TP_LINE = 64, /* bytes of a line of the processor's cache */
	TP_CPU_NONE = -2, /* no event's, not even that of one whose CPU is not known */
};

enum tp_ring_flags {
	TP_RING_OVERWRITE = 1, /* the oldest page makes room; else new events are dropped */
};

struct tp_page {
	_Atomic uint64_t time_stamp;
	_Atomic uint64_t commit;
	unsigned char data[TP_PAGE_DATA];
};

/* Written by the writer only: what a page held, for exact counts. */
struct tp_page_note {
	_Atomic uint64_t seq;
	_Atomic uint32_t n_entries;
	_Atomic uint32_t end;
};

struct tp_ring_head {
	char magic[8];
	uint32_t format;
	uint32_t head_size; /* bytes before the first page */
	uint32_t page_size;
	uint32_t n_pages;
	_Atomic uint32_t flags;
	uint32_t clock;
	int32_t pid;
	int32_t tid;
	char comm[16];
	uint32_t is_ended;
	uint32_t reserved;
	/* the writer's */
	_Alignas(64) _Atomic uint64_t tail; /* number of the page that holds the last committed event */
	_Atomic uint64_t n_written;
	_Atomic uint64_t n_overrun;
	_Atomic uint64_t n_dropped;
	_Atomic uint64_t n_commit_overrun;
	_Atomic uint64_t n_nested;
	/* the reader's */
	_Alignas(64) _Atomic uint64_t read_seq; /* number of the page taken last, plus 1 */
	_Atomic uint64_t n_read;
	_Atomic uint64_t read_stamp;
	_Atomic uint64_t seen_overrun;
	_Atomic uint64_t base_overrun; /* counts when the ring was cleared last */
	_Atomic uint64_t base_read;
	_Atomic uint64_t base_dropped;
	_Atomic uint64_t base_commit_overrun;
	_Atomic uint64_t base_nested;
	_Atomic uint32_t read_page; /* the page it holds, or the spare one */
	_Atomic uint32_t read_at;   /* bytes of it that were read */
	_Atomic int32_t read_cpu;   /* of the last event of them; -1: not known */
	_Atomic uint32_t read_turn; /* odd while the reader changes what is above */
};

struct tp_ring {
	/* Private to the writer.  What most events need comes first: one line of the cache. */
	struct tp_page *page;
	struct tp_page_note *note; /* of the page */
	struct tp_ring_head *head;
	uint64_t stamp; /* time of the last event */
	uint32_t at;    /* bytes used of the page, TP_PAGE_DATA when it may take no more */
	uint32_t end;   /* bytes that hold events */
	int32_t cpu;    /* of the last event of this page that knew it; TP_CPU_NONE: none yet */
	uint32_t depth;   /* events reserved and not committed yet */
	uint32_t page_index;
	bool is_busy; /* a signal handler that comes now must keep out */
	uint32_t n_pages;
	uint32_t commit_index;
	uint64_t seq;        /* page being written */
	uint64_t commit_seq; /* first page with an event not committed */
	/* Never changed. */
	_Atomic uint64_t *slots;
	struct tp_page_note *notes;
	struct tp_page *pages;
	size_t size;
};

struct tp_ring_stats {
	uint64_t entries;
	uint64_t overrun;
	uint64_t commit_overrun;
	uint64_t bytes;
	uint64_t dropped;
	uint64_t read;
	uint64_t nested;
	uint64_t oldest_stamp;
};

size_t tp_ring_size(uint32_t n_pages);

/*
 * Set up a ring in zeroed memory of tp_ring_size() bytes, aligned to TP_PAGE_SIZE.  Returns 0 or -EINVAL.
 */
int tp_ring_init(struct tp_ring *ring, void *memory, uint32_t n_pages, uint32_t flags);

/*
 * Open a ring that another process made, such as a mapped file.  Checks everything that later calls
 * rely on.  The ring can be read, not written.  Returns 0 or -EINVAL.
 */
int tp_ring_attach(struct tp_ring *ring, void *memory, size_t size);

/*
 * Make room for `length` bytes on `cpu` (-1: not known) and return where they go, or NULL: too long, no room, or interrupted in
 * the middle of another reserve; the event is then counted as dropped, overrun or nested.
 */
void *tp_ring_reserve(struct tp_ring *ring, size_t length, uint64_t stamp, int32_t cpu);
void tp_ring_commit(struct tp_ring *ring, void *payload);

/*
 * Copy the oldest unread events into `out` (TP_PAGE_SIZE bytes) as one page and count them as read.
 * Returns the bytes of data, 0 when there is nothing.  If events were lost before it, the page says so
 * as the kernel's does.
 */
int tp_ring_read(struct tp_ring *ring, void *out);
/* Take everything and restart counting. */
void tp_ring_clear(struct tp_ring *ring);
/*
 * Copy without taking: pages in order, beginning with *cursor = 0.  Returns the bytes of data in `out`,
 * or 0 at the end.
 */
int tp_ring_peek(struct tp_ring *ring, uint64_t *cursor, void *out);
void tp_ring_stats(const struct tp_ring *ring, struct tp_ring_stats *ret);

#endif
