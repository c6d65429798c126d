/* Looks at a tracing directory with libtracefs and libtraceevent, and prints what they make of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <event-parse.h>
#include <tracefs.h>

static int show(struct tep_event *event, struct tep_record *record, int cpu, void *context)
{
	struct tep_handle *tep = context;
	struct trace_seq line;

	(void)cpu;
	trace_seq_init(&line);
	tep_print_event(tep, &line, record, "%d %d %s:", TEP_PRINT_PID, TEP_PRINT_TIME, TEP_PRINT_NAME);
	trace_seq_printf(&line, " ");
	tep_print_event(tep, &line, record, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&line);
	printf("record %s:%s\n", event->system, line.buffer);
	trace_seq_destroy(&line);
	return 0;
}

static void show_events(const char *directory, struct tep_handle *tep)
{
	char **systems = tracefs_event_systems(directory);

	for (char **system = systems; system && *system; system++) {
		char **events = tracefs_system_events(directory, *system);

		for (char **name = events; name && *name; name++) {
			struct tep_event *event = tep_find_event_by_name(tep, *system, *name);
			struct tep_format_field **fields = event ? tep_event_fields(event) : NULL;

			printf("event %s:%s\n", *system, *name);
			for (struct tep_format_field **at = fields; at && *at; at++)
				printf("field %s:%s %s %s %d %d\n", *system, *name, (*at)->type, (*at)->name,
				       (*at)->offset, (*at)->size);
			free(fields);
		}
		tracefs_list_free(events);
	}
	tracefs_list_free(systems);
}

/*
 * Makes an event probe, shows its fields and records, and takes it away.  The library does so only below the
 * directory that it finds by itself.
 */
static int try_probe(const char *system, const char *name)
{
	struct tracefs_dynevent *probe = tracefs_eprobe_alloc(
		NULL, "seen", system, name, "id=$order_id:u16 who=$customer:string code=+0($code):u8[2]");
	struct tep_handle *tep;

	if (!probe || tracefs_dynevent_create(probe))
		return 7;
	tep = tracefs_local_events(tracefs_tracing_dir());
	show_events(tracefs_tracing_dir(), tep);
	if (tracefs_event_enable(NULL, "eprobes", "seen"))
		return 8;
	usleep(300000);
	if (tracefs_event_disable(NULL, "eprobes", "seen"))
		return 9;
	if (tracefs_iterate_raw_events(tep, NULL, NULL, 0, show, tep))
		return 10;
	tep_free(tep);
	if (tracefs_dynevent_destroy(probe, false))
		return 11;
	tracefs_dynevent_free(probe);
	return tracefs_dir_exists(NULL, "events/eprobes") ? 12 : 0;
}

int main(int argc, char **argv)
{
	struct tep_handle *tep;

	if (argc == 3)
		return try_probe(argv[1], argv[2]);
	if (argc != 4 || tracefs_set_tracing_dir(argv[1]))
		return 2;
	tep = tracefs_local_events(argv[1]);
	if (!tep)
		return 3;
	show_events(argv[1], tep);
	if (tracefs_event_enable(NULL, argv[2], argv[3]) || !tracefs_event_is_enabled(NULL, argv[2], argv[3]))
		return 4;
	sleep(1);
	if (tracefs_event_disable(NULL, argv[2], argv[3]))
		return 5;
	/* What our own text says of the same records, before they are taken. */
	fflush(stdout);
	char *text = tracefs_instance_file_read(NULL, "trace", NULL);
	printf("%s\n---\n", text ? text : "no trace");
	free(text);
	if (tracefs_iterate_raw_events(tep, NULL, NULL, 0, show, tep))
		return 6;
	tep_free(tep);
	return 0;
}
