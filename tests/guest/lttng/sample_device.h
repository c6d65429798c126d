/* SPDX-License-Identifier: MIT */
#ifndef SAMPLE_DEVICE_H
#define SAMPLE_DEVICE_H

#include <linux/in6.h>

struct sample_device {
	const char *name;
	int name_len;
	struct in6_addr peer;
	int status;
	unsigned int flags;
	u8 mac[6];
	unsigned long ports[1];
	u32 counters[2];
};

struct sample_pair {
	u16 first;
	u16 second;
};

#endif /* SAMPLE_DEVICE_H */
