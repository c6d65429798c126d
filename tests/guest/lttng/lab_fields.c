// SPDX-License-Identifier: MIT
/*
 * Fires the events of every_field.h and kinds.h with known values:
 *   echo 1 > /sys/module/lab_fields/parameters/fire
 */
#include <linux/in.h>
#include <linux/module.h>
#include <linux/sched.h>

#include "sample_device.h"

#define CREATE_TRACE_POINTS
#include "every_field.h"
#include "kinds.h"

static struct sample_device device = {
	.name = "eth0xyz",
	.name_len = 4,
	.peer.s6_addr = { 0xfe, 0x80, [15] = 1 },
	.status = -5,
	.flags = 5,
	.mac = { 2, 0, 0, 0, 0, 1 },
	.ports = { 0x8000000000000001UL },
	.counters = { 7, 4294967295U },
};

static void fire_every_field(const char *format, ...)
{
	static const u16 list[] = { 1, 2, 65535 };
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(80),
		.sin_addr.s_addr = htonl(0x7f000001),
	};
	struct va_format message = { .fmt = format };
	va_list args;

	va_start(args, format);
	message.va = &args;
	trace_every_field(&device, "hello", list, ARRAY_SIZE(list), cpumask_of(1),
			  (struct sockaddr *)&address, &message);
	va_end(args);
}

static int fire(const char *value, const struct kernel_param *param)
{
	static const __be16 list[] = { cpu_to_be16(1), cpu_to_be16(258), cpu_to_be16(3) };
	static char bytes[] = "abcdef";

	fire_every_field("say %d %s", 12, "twelve");
	trace_kinds_port_open(&device, 1);
	trace_port_close(&device, -1);
	trace_kinds_orders(0x1122334455667788, list, ARRAY_SIZE(list));
	trace_kinds_code(&device, "some", 1, bytes, 3);
	trace_kinds_code(NULL, NULL, 2, bytes, 0);
	trace_kinds_code(NULL, NULL, -1, bytes, 0);
	trace_kinds_empty(0);
	return 0;
}

static const struct kernel_param_ops fire_ops = { .set = fire };
module_param_cb(fire, &fire_ops, NULL, 0200);

static int __init lab_fields_init(void)
{
	return 0;
}

static void __exit lab_fields_exit(void)
{
}

module_init(lab_fields_init);
module_exit(lab_fields_exit);
MODULE_LICENSE("Dual MIT/GPL");
