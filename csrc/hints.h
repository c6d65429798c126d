/* Compiler hints about the paths that most events take. */
#ifndef TP_HINTS_H
#define TP_HINTS_H

#define tp_likely(condition) __builtin_expect(!!(condition), 1)
#define tp_unlikely(condition) __builtin_expect(!!(condition), 0)
#define tp_always_inline inline __attribute__((always_inline))

#endif
