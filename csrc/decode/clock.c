/*
 * Making a clock, and shifting a guest's stamps to the clock of its host.
 *
 * The twin is src/tracepoint/tracefile/timing.py: shift_time(), TimeMap.
 */
#include "clock.h"

#define CLOCK "tracepoint.clock"

const struct tp_clock *tp_clock_of(PyObject *capsule)
{
	return PyCapsule_GetPointer(capsule, CLOCK);
}

/* Return the number of the last of all samples but one that is not after a stamp; the first where all are. */
static size_t sample_before(const struct tp_samples *own, uint64_t stamp)
{
	size_t low = 0, high = own->n - 1;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (own->samples[middle].time <= stamp)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Return a * b / n, rounded to the nearest as C divides; the product of two magnitudes has at most 128 bits. */
static unsigned __int128 rounded_share(uint64_t a, uint64_t b, bool is_negative, uint64_t n)
{
	unsigned __int128 product = (unsigned __int128)a * b, half = n / 2;

	if (!is_negative)
		return (product + half) / n;
	/* Half of a step is added before it is rounded towards zero. */
	return product > half ? -((product - half) / n) : (half - product) / n;
}

unsigned __int128 tp_shift_stamp(const struct tp_samples *own, uint64_t stamp, bool interpolates)
{
	const struct tp_clock_sample *low;
	unsigned __int128 offset;

	if (own->n < 2)
		return own->n ? stamp + (unsigned __int128)own->samples[0].offset : stamp;
	low = &own->samples[sample_before(own, stamp)];
	offset = (unsigned __int128)low->offset;
	if (interpolates) {
		bool is_before = stamp < low->time, falls = low[1].offset < low->offset;
		uint64_t since = is_before ? low->time - stamp : stamp - low->time;
		uint64_t step = (uint64_t)low[1].offset - (uint64_t)low->offset;

		offset += rounded_share(since, falls ? -step : step, is_before != falls, low[1].time - low->time);
	}
	return ((unsigned __int128)stamp * low->scaling >> low->fraction) + offset;
}

static void clock_free(PyObject *capsule)
{
	struct tp_clock *clock = PyCapsule_GetPointer(capsule, CLOCK);

	for (size_t n = 0; clock->shift && n < clock->n_cpus; n++)
		free(clock->shift[n].samples);
	free(clock->shift);
	free(clock);
}

/* Copy the samples of a CPU, which are by time, each later than the one before. */
static bool load_samples(struct tp_samples *own, PyObject *packed)
{
	char *bytes;
	Py_ssize_t size;

	if (PyBytes_AsStringAndSize(packed, &bytes, &size))
		return false;
	own->samples = malloc((size_t)size + 1);
	if (!own->samples) {
		PyErr_NoMemory();
		return false;
	}
	memcpy(own->samples, bytes, (size_t)size);
	own->n = (size_t)size / sizeof(*own->samples);
	for (size_t n = 0; n < own->n; n++)
		if (own->samples[n].fraction > 63 || (n && own->samples[n].time <= own->samples[n - 1].time)) {
			PyErr_SetString(PyExc_ValueError, "samples of a clock that are not by time, or a shift above 63");
			return false;
		}
	return true;
}

static bool load_shift(struct tp_clock *clock, PyObject *cpus)
{
	clock->shift = calloc((size_t)PyTuple_GET_SIZE(cpus) + 1, sizeof(*clock->shift));
	if (!clock->shift) {
		PyErr_NoMemory();
		return false;
	}
	for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(cpus); n++) {
		clock->n_cpus++;
		if (!load_samples(&clock->shift[n], PyTuple_GET_ITEM(cpus, n)))
			return false;
	}
	return true;
}

PyObject *tp_make_clock(PyObject *module, PyObject *args)
{
	struct tp_clock *clock = calloc(1, sizeof(*clock));
	PyObject *made, *cpus;
	unsigned long long offset;
	int interpolates;

	(void)module;
	made = clock ? PyCapsule_New(clock, CLOCK, clock_free) : PyErr_NoMemory();
	if (!made) {
		free(clock);
		return NULL;
	}
	if (!PyArg_ParseTuple(args, "IIKpO!:clock", &clock->mult, &clock->n_bits, &offset, &interpolates,
			      &PyTuple_Type, &cpus))
		Py_CLEAR(made);
	else if (clock->n_bits > 63) {
		PyErr_SetString(PyExc_ValueError, "a shift of more than 63 bits");
		Py_CLEAR(made);
	} else if (!load_shift(clock, cpus)) {
		Py_CLEAR(made);
	} else {
		clock->offset = offset;
		clock->interpolates = interpolates;
	}
	return made;
}
