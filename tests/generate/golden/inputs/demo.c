// SPDX-License-Identifier: GPL-2.0
/*
 * demo - declares the events of demo_trace.h and fires them on demand
 *
 * A line written to /sys/kernel/debug/demo/EVENT fires EVENT once.
 * Its words are the inputs of the assignment in the order of their tables
 * below: "-" for zero or NULL, or "=" and the bytes in hexadecimal.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

/* An input: a number, or a pointer and the buffer that it leads to. */
struct fire_input {
	void *variable;
	size_t size;
	void *buffer;
};

/* name */
static char *tick_in0;
static u8 tick_in0_data[4096] __aligned(8);
/* n */
static int tick_in1;
/* is_hot */
static bool tick_in2;
/* where */
static void *tick_in3;
/* list */
static void *tick_in4;
static u8 tick_in4_data[4096] __aligned(8);

static const struct fire_input tick_inputs[] = {
	{ &tick_in0, sizeof(tick_in0_data), tick_in0_data },
	{ &tick_in1, sizeof(tick_in1), NULL },
	{ &tick_in2, sizeof(tick_in2), NULL },
	{ &tick_in3, sizeof(tick_in3), NULL },
	{ &tick_in4, sizeof(tick_in4_data), tick_in4_data },
};

#define CREATE_TRACE_POINTS
#include "demo_trace.h"

EXPORT_TRACEPOINT_SYMBOL_GPL(tick);

#define FIRE_LINE_MAX	(64 * PAGE_SIZE)

struct fire_event {
	const char *name;
	int (*fire)(char *line);
};

/* What was written to one open file and is not a whole line yet. */
struct fire_writer {
	const struct fire_event *event;
	size_t length;
	char text[];
};

static DEFINE_MUTEX(fire_lock);
static struct dentry *fire_dir;

/* Sets one input from "-" (zero) or "=" and its bytes in hexadecimal. */
static int fire_set(const struct fire_input *input, const char *word)
{
	void *to = input->buffer ? input->buffer : input->variable;
	size_t length;

	memset(to, 0, input->size);
	if (input->buffer)
		*(void **)input->variable = NULL;
	if (!*word || !strcmp(word, "-"))
		return 0;
	if (*word != '=')
		return -EINVAL;
	word++;
	length = strlen(word) / 2;
	if (strlen(word) % 2)
		return -EINVAL;
	if (length > input->size && input->buffer)
		return -E2BIG;
	/* A number is cut to its type. */
	length = min(length, input->size);
	if (hex2bin(to, word, length))
		return -EINVAL;
	if (input->buffer)
		*(void **)input->variable = input->buffer;
	return 0;
}

/* Inputs without a word are zero. */
static int fire_set_all(const struct fire_input *inputs, size_t n,
			char *line)
{
	char *word;
	size_t i;
	int error;

	for (i = 0; i < n; i++) {
		word = strsep(&line, " ");
		error = fire_set(&inputs[i], word ? word : "-");
		if (error)
			return error;
	}
	return line && *line ? -EINVAL : 0;
}

static int fire_trace_tick(char *line)
{
	int error;

	error = fire_set_all(tick_inputs, ARRAY_SIZE(tick_inputs), line);
	if (error)
		return error;

	trace_tick(0, 0, NULL, NULL, NULL, NULL);
	return 0;
}

static const struct fire_event fire_events[] = {
	{ "tick", fire_trace_tick },
};

static int fire_run(const struct fire_event *event, char *line)
{
	int error;

	mutex_lock(&fire_lock);
	error = event->fire(line);
	mutex_unlock(&fire_lock);
	return error;
}

static int fire_open(struct inode *inode, struct file *file)
{
	struct fire_writer *writer;

	writer = kvzalloc(sizeof(*writer) + FIRE_LINE_MAX + 1, GFP_KERNEL);
	if (!writer)
		return -ENOMEM;
	writer->event = inode->i_private;
	file->private_data = writer;
	return 0;
}

/* Runs every whole line and keeps the rest for the next write. */
static ssize_t fire_write(struct file *file, const char __user *data,
			  size_t size, loff_t *pos)
{
	struct fire_writer *writer = file->private_data;
	char *line, *end;
	int error;

	size = min_t(size_t, size, FIRE_LINE_MAX - writer->length);
	if (!size)
		return -E2BIG;
	if (copy_from_user(writer->text + writer->length, data, size))
		return -EFAULT;
	writer->length += size;
	writer->text[writer->length] = '\0';

	for (line = writer->text; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		error = fire_run(writer->event, line);
		if (error) {
			writer->length = 0;
			return error;
		}
	}
	writer->length = strlen(line);
	memmove(writer->text, line, writer->length + 1);
	return size;
}

/* A last line may come without its end. */
static int fire_release(struct inode *inode, struct file *file)
{
	struct fire_writer *writer = file->private_data;
	int error = 0;

	if (writer->length)
		error = fire_run(writer->event, writer->text);
	if (error)
		pr_warn("the last line was refused: %d\n", error);
	kvfree(writer);
	return 0;
}

static const struct file_operations fire_fops = {
	.owner = THIS_MODULE,
	.open = fire_open,
	.write = fire_write,
	.release = fire_release,
	.llseek = noop_llseek,
};

static int __init fire_init(void)
{
	const struct fire_event *event;
	size_t i;

	fire_dir = debugfs_create_dir("demo", NULL);
	if (IS_ERR(fire_dir))
		return PTR_ERR(fire_dir);

	for (i = 0; i < ARRAY_SIZE(fire_events); i++) {
		event = &fire_events[i];
		debugfs_create_file(event->name, 0200, fire_dir, (void *)event,
				    &fire_fops);
	}
	return 0;
}

static void __exit fire_exit(void)
{
	debugfs_remove(fire_dir);
}

module_init(fire_init);
module_exit(fire_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Fires the trace events of demo_trace.h");
