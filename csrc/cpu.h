/* Which CPU this thread runs on, at the price of a load where the C library has rseq (glibc 2.35). */
#ifndef TP_CPU_H
#define TP_CPU_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
#define TP_HAS_RSEQ 1
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));
#else
#define TP_HAS_RSEQ 0
#endif

int32_t tp_cpu_slowly(void);

/* Where the kernel keeps the number of the CPU that this thread runs on; negative there: ask tp_cpu_slowly(). */
static inline const volatile int32_t *tp_cpu_place(void)
{
	static const int32_t unknown = -1;

#if TP_HAS_RSEQ
	/* struct rseq of include/uapi/linux/rseq.h: cpu_id is at 4 and is negative until it is known. */
	if (&__rseq_size && __rseq_size)
		return (const volatile int32_t *)((const char *)__builtin_thread_pointer() + __rseq_offset + 4);
#endif
	return &unknown;
}

static inline int32_t tp_cpu_at(const volatile int32_t *place)
{
	int32_t cpu = *place;

	return cpu >= 0 ? cpu : tp_cpu_slowly();
}

static inline int32_t tp_cpu_now(void)
{
	return tp_cpu_at(tp_cpu_place());
}

#endif
