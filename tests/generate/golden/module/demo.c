// SPDX-License-Identifier: GPL-2.0
/*
 * demo - declares the events of demo_trace.h and fires them on demand
 *
 * A line written to /sys/kernel/debug/demo/EVENT fires EVENT once.
 * The words of a line are the arguments; missing ones are zero:
 *   tick: n: a number, is_hot: a number, name: a text,
 *     list: numbers joined by commas, where: an address
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#define CREATE_TRACE_POINTS
#include "demo_trace.h"

EXPORT_TRACEPOINT_SYMBOL_GPL(tick);

static DEFINE_MUTEX(fire_lock);
/* What every pointer to a struct points to. */
static u8 fire_zeros[16384] __aligned(64);
static struct dentry *fire_dir;

/* Takes the next word of a line, NULL at its end. */
static char *fire_word(char **line)
{
	char *word;

	do {
		word = strsep(line, " \t");
	} while (word && !*word);
	return word;
}

static int fire_parse(const char *word, u64 *to)
{
	*to = 0;
	if (!word || !strcmp(word, "NULL"))
		return 0;
	return *word == '-' ? kstrtos64(word, 0, (s64 *)to) :
			      kstrtou64(word, 0, to);
}

/* Stores a word as a number that fits into the type of "to". */
#define fire_put(word, to)						\
({									\
	typeof(to) *fire_to = &(to);					\
	u64 fire_value;							\
	int fire_error = fire_parse(word, &fire_value);			\
									\
	*fire_to = fire_value;						\
	fire_error ?: (u64)*fire_to == fire_value ? 0 : -ERANGE;	\
})

/* Takes the next word as a number, zero without one. */
#define fire_number(line, to) fire_put(fire_word(line), to)

/* Takes the next word as numbers joined by commas; missing ones are zero. */
#define fire_list(line, to)						\
({									\
	typeof(to) *fire_all = &(to);					\
	char *fire_rest = fire_word(line);				\
	int fire_at, fire_bad = 0;					\
									\
	memset(fire_all, 0, sizeof(*fire_all));				\
	for (fire_at = 0; fire_rest && !fire_bad; fire_at++)		\
		fire_bad = fire_at == ARRAY_SIZE(*fire_all) ? -E2BIG :	\
			   fire_put(strsep(&fire_rest, ","),		\
				    (*fire_all)[fire_at]);		\
	fire_bad;							\
})

/* Takes the next word as a text, with its blanks if it stands in quotes. */
static int fire_text(char **line, const char **to)
{
	if (*line)
		*line = skip_spaces(*line);
	if (*line && **line == '"') {
		++*line;
		*to = strsep(line, "\"");
		return *line ? 0 : -EINVAL;
	}
	*to = fire_word(line) ?: "";
	if (!strcmp(*to, "NULL"))
		*to = NULL;
	return 0;
}

static int fire_trace_tick(char *line)
{
	int n;
	bool is_hot;
	const char *name;
	static u16 list[64];
	unsigned long where;
	int error;

	error = fire_number(&line, n) ?:
		fire_number(&line, is_hot) ?:
		fire_text(&line, &name) ?:
		fire_list(&line, list) ?:
		fire_number(&line, where) ?:
		(fire_word(&line) ? -EINVAL : 0);
	if (error)
		return error;

	trace_tick(n, is_hot, name, list, (void *)fire_zeros, (void *)where);
	return 0;
}

/* Fires for each whole line; what comes after the last one is written again. */
static ssize_t fire_write(struct file *file, const char __user *data,
			  size_t size, loff_t *pos)
{
	int (*fire)(char *line) = file->private_data;
	char *text, *rest, *end;
	int error = 0;

	size = min_t(size_t, size, PAGE_SIZE);
	text = memdup_user_nul(data, size);
	if (IS_ERR(text))
		return PTR_ERR(text);

	end = strrchr(text, '\n');
	if (end) {
		*end = '\0';
		size = end + 1 - text;
	}
	mutex_lock(&fire_lock);
	for (rest = text; rest && !error;)
		error = fire(strsep(&rest, "\n"));
	mutex_unlock(&fire_lock);
	kfree(text);
	return error ?: size;
}

static const struct file_operations fire_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = fire_write,
	.llseek = noop_llseek,
};

static int __init fire_init(void)
{
	fire_dir = debugfs_create_dir("demo", NULL);
	if (IS_ERR(fire_dir))
		return PTR_ERR(fire_dir);

	debugfs_create_file("tick", 0200, fire_dir, fire_trace_tick,
			    &fire_fops);
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
