/* SPDX-License-Identifier: MIT */
/*
 * What examples/every_field.h has not: classes, enums, byte orders, statements that compute.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kinds

#if !defined(_TRACE_KINDS_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_KINDS_H

#include <linux/tracepoint.h>

#define show_state(state)			\
	__print_symbolic(state,			\
		{ -1, "\"lost\"" },		\
		{ 0, "down" },			\
		{ 1, "up" })

DECLARE_EVENT_CLASS(kinds_port,

	TP_PROTO(const struct sample_device *dev, int state),

	TP_ARGS(dev, state),

	TP_STRUCT__entry(
		__string(	name,	dev->name	)
		__field(	int,	state		)
	),

	TP_fast_assign(
		__assign_str(name, dev->name);
		__entry->state = state;
	),

	TP_printk("%s %s", __get_str(name), show_state(__entry->state))
);

DEFINE_EVENT(kinds_port, kinds_port_open,
	TP_PROTO(const struct sample_device *dev, int state),
	TP_ARGS(dev, state)
);

DEFINE_EVENT_PRINT(kinds_port, port_close,
	TP_PROTO(const struct sample_device *dev, int state),
	TP_ARGS(dev, state),
	TP_printk("%s closed", __get_str(name))
);

TRACE_EVENT(kinds_orders,

	TP_PROTO(u64 value, const __be16 *list, int n_list),

	TP_ARGS(value, list, n_list),

	TP_STRUCT__entry(
		__field(	__be16,	b16	)
		__field(	__be32,	b32	)
		__field(	__be64,	b64	)
		__field(	__le16,	l16	)
		__field(	__le32,	l32	)
		__field(	s8,	s8	)
		__field(	u16,	u16	)
		__field(	long,	word	)
		__array(	__be16,	pair, 2	)
		__dynamic_array(	__be16,	list, n_list	)
	),

	TP_fast_assign(
		__entry->b16 = cpu_to_be16(value);
		__entry->b32 = cpu_to_be32(value);
		__entry->b64 = cpu_to_be64(value);
		__entry->l16 = cpu_to_le16(value);
		__entry->l32 = cpu_to_le32(value);
		__entry->s8 = value;
		__entry->u16 = value;
		__entry->word = -(long)value;
		memcpy(__entry->pair, list, sizeof(__entry->pair));
		memcpy(__get_dynamic_array(list), list, n_list * sizeof(__be16));
	),

	TP_printk("b16=%u word=%ld", be16_to_cpu(__entry->b16), __entry->word)
);

TRACE_EVENT_CONDITION(kinds_code,

	TP_PROTO(const struct sample_device *dev, const char *text, int mode, char *buffer,
		 int n_buffer),

	TP_ARGS(dev, text, mode, buffer, n_buffer),

	TP_CONDITION(mode >= 0),

	TP_STRUCT__entry(
		__field(	int,	mode		)
		__field(	int,	kind		)
		__field(	int,	sum		)
		__field(	bool,	is_odd		)
		__field(	const char *,	where	)
		__array(	char,	name, 8		)
		__array(	u32,	squares, 4	)
		__string(	text,	text		)
		__dynamic_array(	char,	buffer, n_buffer	)
		__field_struct(	struct sample_pair,	both	)
		__dynamic_array(	u16,	twice, 2	)
		__dynamic_array(	u8,	copy, n_buffer	)
	),

	TP_fast_assign(
		int i, total = 0;
		u32 *square = __entry->squares;
		u16 *twice = __get_dynamic_array(twice);
		u8 *copy = __get_dynamic_array(copy);

		__entry->mode = mode;
		for (i = 0; i < 4; i++) {
			square[i] = i * i;
			total += square[i];
		}
		if (dev) {
			__assign_str(text, text);
			strscpy(__entry->name, dev->name, sizeof(__entry->name));
		} else {
			__assign_str(text, text);
			memset(__entry->name, 0, sizeof(__entry->name));
		}
		switch (mode) {
		case 0:
		case 1:
			__entry->kind = 10;
			break;
		default:
			__entry->kind = 20;
		}
		__entry->sum = total;
		__entry->is_odd = mode & 1;
		__entry->where = buffer;
		memcpy(__get_dynamic_array(buffer), buffer, n_buffer);
		__entry->both.first = mode;
		__entry->both.second = 2;
		twice[0] = mode;
		twice[1] = twice[0] + mode;
		for (i = 0; i < n_buffer; i++)
			copy[i] = buffer[i] ^ 0xff;
	),

	TP_printk("mode=%d sum=%x where=%p", __entry->mode, __entry->sum, __entry->where)
);

TRACE_EVENT(kinds_empty,

	TP_PROTO(int unused),

	TP_ARGS(unused),

	TP_STRUCT__entry(
	),

	TP_fast_assign(
	),

	TP_printk("%s", "empty")
);

#endif /* _TRACE_KINDS_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE kinds
#include <trace/define_trace.h>
