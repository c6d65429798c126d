// SPDX-License-Identifier: GPL-2.0
/*
 * demo - declares the events of demo_trace.h and fires them on demand
 *
 * A line written to /sys/kernel/debug/demo/EVENT fires EVENT once.
 * The words of a line are the arguments; missing ones are zero:
 *   tick: n: a number, is_hot: a number, name: a text,
 *     list: numbers joined by commas, where: an address
 * A line written to fire_all fires every event, each with what is left.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ctype.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

/* The object behind every pointer to a struct. */
static u8 fire_zeros[16384] __aligned(64);

#define CREATE_TRACE_POINTS
#include "demo_trace.h"

EXPORT_TRACEPOINT_SYMBOL_GPL(tick);

#define FIRE_LINE_MAX	(1 * PAGE_SIZE)

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

/* Takes the next word of a line; words in quotes are one. NULL at the end. */
static char *fire_word(char **line)
{
	char *word = skip_spaces(*line);
	char *end = word;

	if (!*word)
		return NULL;
	if (*word == '"')
		end = strchrnul(++word, '"');
	else
		while (*end && !isspace(*end))
			end++;
	*line = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

static int fire_end(char **line)
{
	return fire_word(line) ? -EINVAL : 0;
}

static int fire_put(void *to, size_t size, bool is_signed, const char *word)
{
	u64 top = size < 8 ? (1ULL << (8 * size)) - 1 : U64_MAX;
	u64 value;
	s64 number;
	int error;

	if (*word == '-') {
		error = kstrtos64(word, 0, &number);
		if (error)
			return error;
		if (!is_signed || number < -(s64)(top / 2) - 1)
			return -ERANGE;
		value = number;
	} else {
		error = kstrtou64(word, 0, &value);
		if (error)
			return error;
		if (value > (is_signed ? top / 2 : top))
			return -ERANGE;
	}
	/* Little-endian and big-endian kernels keep the low bytes elsewhere. */
	switch (size) {
	case 1:
		*(u8 *)to = value;
		return 0;
	case 2:
		*(u16 *)to = value;
		return 0;
	case 4:
		*(u32 *)to = value;
		return 0;
	case 8:
		*(u64 *)to = value;
		return 0;
	}
	return -EINVAL;
}

/* A missing word is zero, and so is NULL. */
static __maybe_unused int fire_number(char **line, void *to, size_t size,
				      bool is_signed)
{
	const char *word = fire_word(line);

	memset(to, 0, size);
	if (!word || !strcmp(word, "NULL"))
		return 0;
	return fire_put(to, size, is_signed, word);
}

/* A missing word is an empty text. */
static __maybe_unused int fire_text(char **line, const char **to)
{
	const char *word = fire_word(line);

	*to = word ? word : "";
	if (word && !strcmp(word, "NULL"))
		*to = NULL;
	return 0;
}

/* Numbers joined by commas; those that are missing are zero. */
static __maybe_unused int fire_list(char **line, void *to, size_t size,
				    size_t room, bool is_signed)
{
	char *rest = fire_word(line);
	char *word;
	int error;

	memset(to, 0, size * room);
	while ((word = strsep(&rest, ","))) {
		if (!room--)
			return -E2BIG;
		error = fire_put(to, size, is_signed, word);
		if (error)
			return error;
		to += size;
	}
	return 0;
}

static int fire_trace_tick(char *line)
{
	int n;
	u8 is_hot;
	const char *name;
	static u16 list[64];
	unsigned long where;
	int error;

	error = fire_number(&line, &n, sizeof(n), is_signed_type(int));
	if (!error)
		error = fire_number(&line, &is_hot, sizeof(is_hot),
				    is_signed_type(u8));
	if (!error)
		error = fire_text(&line, &name);
	if (!error)
		error = fire_list(&line, list, sizeof(list[0]),
				  ARRAY_SIZE(list), is_signed_type(u16));
	if (!error)
		error = fire_number(&line, &where, sizeof(where), false);
	if (!error)
		error = fire_end(&line);
	if (error)
		return error;

	trace_tick(n, is_hot, name, list, (void *)fire_zeros, (void *)where);
	return 0;
}

static const struct fire_event fire_events[] = {
	{ "tick", fire_trace_tick },
};

static int fire_fire_all(void)
{
	char line[1];
	size_t i;
	int error;

	for (i = 0; i < ARRAY_SIZE(fire_events); i++) {
		line[0] = '\0';
		error = fire_events[i].fire(line);
		if (error)
			return error;
	}
	return 0;
}

static int fire_run(const struct fire_event *event, char *line)
{
	int error;

	mutex_lock(&fire_lock);
	error = event ? event->fire(line) : fire_fire_all();
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
	debugfs_create_file("fire_all", 0200, fire_dir, NULL, &fire_fops);
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
