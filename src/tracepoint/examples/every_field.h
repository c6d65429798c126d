/* SPDX-License-Identifier: MIT */
/*
 * One field of every kind that a record can have.
 *
 * The fixed members come first, the widest before the narrower, so that the record has no holes;
 * what has a length of its own (strings, arrays, masks, addresses) follows after them.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM example_fields
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE every_field

#if !defined(_TRACE_EVERY_FIELD_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_EVERY_FIELD_H

#include <linux/cpumask.h>
#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/tracepoint.h>

TRACE_EVENT(every_field,

	TP_PROTO(struct sample_device *dev, const char *text, const u16 *list, int n_list,
		 const struct cpumask *mask, const struct sockaddr *address, struct va_format *message),

	TP_ARGS(dev, text, list, n_list, mask, address, message),

	TP_STRUCT__entry(
		__field(	u64,			stamp		)
		__field_ext(	void *,			cookie,	FILTER_PTR_STRING	)
		__field_struct(	struct in6_addr,	peer		)
		__field(	int,			status		)
		__field(	unsigned int,		flags		)
		__array(	char,			comm,	16	)
		__array(	u8,			mac,	8	)
		__dynamic_array(	u16,	list,	n_list		)
		__string(		text,	text			)
		__string_len(		name,	dev->name, dev->name_len	)
		__vstring(		message, message->fmt, message->va	)
		__bitmask(		ports,	64			)
		__cpumask(		cpus				)
		__sockaddr(		address, sizeof(struct sockaddr)	)
		__rel_dynamic_array(	u32,	rel_list, 2		)
		__rel_string(		rel_text, text			)
		__rel_string_len(	rel_name, dev->name, dev->name_len	)
		__rel_bitmask(		rel_ports, 64			)
		__rel_cpumask(		rel_cpus			)
		__rel_sockaddr(		rel_address, sizeof(struct sockaddr)	)
	),

	TP_fast_assign(
		int i;
		u32 *pair = __get_rel_dynamic_array(rel_list);

		__entry->stamp	= ktime_get_ns();
		__entry->cookie	= dev;
		__entry->peer	= dev->peer;
		__entry->status	= dev->status;
		__entry->flags	= dev->flags;
		memcpy(__entry->comm, current->comm, 16);
		memset(__entry->mac, 0, 8);
		memcpy(__entry->mac, dev->mac, 6);
		memcpy(__get_dynamic_array(list), list, n_list * sizeof(u16));
		__assign_str(text, text);
		__assign_str_len(name, dev->name, dev->name_len);
		__assign_vstr(message, message->fmt, message->va);
		__assign_bitmask(ports, dev->ports, 64);
		__assign_cpumask(cpus, cpumask_bits(mask));
		__assign_sockaddr(address, address, sizeof(struct sockaddr));
		for (i = 0; i < 2; i++)
			pair[i] = dev->counters[i];
		__assign_rel_str(rel_text, text);
		__assign_rel_str_len(rel_name, dev->name, dev->name_len);
		__assign_rel_bitmask(rel_ports, dev->ports, 64);
		__assign_rel_cpumask(rel_cpus, cpumask_bits(mask));
		__assign_rel_sockaddr(rel_address, address, sizeof(struct sockaddr));
	),

	TP_printk("stamp=%llu cookie=%p peer=%pI6c status=%d flags=%s comm=%s mac=%pM list=%s text=%s name=%s message=%s ports=%s cpus=%s address=%pISpc rel_list=%s rel_text=%s rel_name=%s rel_ports=%s rel_cpus=%s rel_address=%pISpc",
		__entry->stamp,
		__entry->cookie,
		&__entry->peer,
		__entry->status,
		__print_flags(__entry->flags, "|",
			{ 0x1, "UP" }, { 0x2, "BUSY" }, { 0x4, "BROKEN" }),
		__entry->comm,
		__entry->mac,
		__print_array(__get_dynamic_array(list),
			__get_dynamic_array_len(list) / sizeof(u16), sizeof(u16)),
		__get_str(text),
		__get_str(name),
		__get_str(message),
		__get_bitmask(ports),
		__get_cpumask(cpus),
		__get_sockaddr(address),
		__print_array(__get_rel_dynamic_array(rel_list),
			__get_rel_dynamic_array_len(rel_list) / sizeof(u32), sizeof(u32)),
		__get_rel_str(rel_text),
		__get_rel_str(rel_name),
		__get_rel_bitmask(rel_ports),
		__get_rel_cpumask(rel_cpus),
		__get_rel_sockaddr(rel_address))
);

#endif /* _TRACE_EVERY_FIELD_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#include <trace/define_trace.h>
