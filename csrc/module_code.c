/* Static keys: one instruction of a code object, changed in place.  See src/tracepoint/runtime/static_keys/keys.py. */
#include "module.h"

#include <opcode.h>

/*
 * The versions whose code objects are known here.  3.13.0 and not its successors: the tables of line events
 * changed inside that series.  Which of them may be used at all is decided in static_keys.py.
 */
#define NO_LONGER_KNOWN 0x030D00F1
#if PY_VERSION_HEX < NO_LONGER_KNOWN && !defined(Py_GIL_DISABLED)
#define TP_CAN_POKE 1
#else
#define TP_CAN_POKE 0
#endif

#if TP_CAN_POKE
/* Where the opcode is kept: elsewhere while a tool wants an event for the line or instruction that begins here. */
static uint8_t *opcode_place(PyCodeObject *code, Py_ssize_t index)
{
	uint8_t *place = (uint8_t *)code->co_code_adaptive + 2 * index;

#if PY_VERSION_HEX >= 0x030C0000
	_PyCoMonitoringData *tools = code->_co_monitoring;

	if (*place == INSTRUMENTED_LINE) {
		if (!tools || !tools->lines)
			return NULL;
		place = &tools->lines[index].original_opcode;
	}
	if (*place == INSTRUMENTED_INSTRUCTION) {
		if (!tools || !tools->per_instruction_opcodes)
			return NULL;
		place = &tools->per_instruction_opcodes[index];
	}
#endif
	return place;
}
#endif

/*
 * poke(code, index, expected, opcode, oparg, n_caches): put an instruction at code unit `index` if one of
 * the opcodes `expected` (bytes) is there, and clear the caches behind it, so that whoever walks over the
 * code finds nothing there that looks like an instruction.  Returns whether it did.
 */
PyObject *tp_poke(PyObject *Py_UNUSED(module), PyObject *args)
{
	PyObject *object;
	Py_ssize_t index, n_expected;
	const char *expected;
	unsigned char opcode, oparg, n_caches;

	if (!PyArg_ParseTuple(args, "O!ny#bbb:poke", &PyCode_Type, &object, &index, &expected, &n_expected, &opcode,
			      &oparg, &n_caches))
		return NULL;
#if TP_CAN_POKE
	PyCodeObject *code = (PyCodeObject *)object;
	/* A module that was built with 3.13.0 is loaded by its successors too. */
	if (Py_Version >= NO_LONGER_KNOWN)
		Py_RETURN_FALSE;
	if (index < 0 || index + 1 + n_caches > Py_SIZE(code))
		return PyErr_Format(PyExc_IndexError, "code unit %zd is outside the code", index);
	uint8_t *place = opcode_place(code, index);
	if (!place || !memchr(expected, *place, n_expected))
		Py_RETURN_FALSE;
	uint8_t *unit = (uint8_t *)code->co_code_adaptive + 2 * index;
	*place = opcode;
	unit[1] = oparg;
	memset(unit + 2, 0, 2 * n_caches);
	Py_RETURN_TRUE;
#else
	Py_RETURN_FALSE;
#endif
}
