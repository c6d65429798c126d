// SPDX-License-Identifier: GPL-2.0
/*
 * The sample of 2008 for today's kernel: opening /proc/tracepoint-example fires the tracepoint ten
 * times and fails.  Its header is made from the declaration of 2008:
 *
 *   tracepoint generate header examples/legacy_subsys.h --name subsys
 */
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>

#define CREATE_TRACE_POINTS
#include "subsys_trace.h"

/* A probe in another module needs the tracepoint's name. */
EXPORT_TRACEPOINT_SYMBOL_GPL(subsys_eventname);

static int example_open(struct inode *inode, struct file *file)
{
	int i;

	for (i = 0; i < 10; i++)
		trace_subsys_eventname(i, current);
	return -EPERM;
}

static const struct proc_ops example_ops = {
	.proc_open = example_open,
};

static int __init example_init(void)
{
	return proc_create("tracepoint-example", 0444, NULL, &example_ops) ? 0 : -ENOMEM;
}

static void __exit example_exit(void)
{
	remove_proc_entry("tracepoint-example", NULL);
}

module_init(example_init);
module_exit(example_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Fires a tracepoint when /proc/tracepoint-example is opened");
