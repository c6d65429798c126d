/* Sums of any number of int64, which 64 bits may not hold. */
#ifndef TP_SUM_H
#define TP_SUM_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

struct tp_sum {
	uint64_t low;
	int64_t high;
};

static inline void tp_sum_add(struct tp_sum *sum, int64_t value)
{
	sum->low += (uint64_t)value;
	sum->high += (value < 0 ? -1 : 0) + (sum->low < (uint64_t)value);
}

/* Return a sum as a number of Python. */
PyObject *tp_sum_number(struct tp_sum sum);

#endif
