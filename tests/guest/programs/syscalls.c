/*
 * Calls every system call number with several sets of arguments, each in a child of its own.
 * Calls that would end the guest or need more than a child's life are left out.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAST_CALL 460

static const long left_out[] = {
	SYS_reboot, SYS_kexec_load, SYS_kexec_file_load, SYS_vhangup, SYS_syslog, SYS_sync,
	SYS_rt_sigreturn, /* would go on at a random place; signal handlers call it anyway */
};

static void on_alarm(int number)
{
	(void)number;
}

static int is_left_out(long call)
{
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (left_out[i] == call)
			return 1;
	return 0;
}

static void child(long call, const long *a)
{
	struct sigaction action = { .sa_handler = on_alarm };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGALRM, &action, NULL);
	ualarm(40000, 40000);
	syscall(call, a[0], a[1], a[2], a[3], a[4], a[5]);
	syscall(SYS_exit_group, 0);
}

static void run(long call, const long *arguments)
{
	int status, tries;
	pid_t pid = fork();

	if (pid == 0)
		child(call, arguments);
	if (pid < 0) {
		perror("fork");
		exit(1);
	}
	for (tries = 0; tries < 200; tries++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return;
		usleep(1000);
	}
	if (pid > 0)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

int main(void)
{
	char *room = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long text = (long)strcpy(room, "/tmp/no-such-file");
	long spare = (long)(room + 4096), high = (long)(room + 8192);
	const long sets[][6] = {
		{ 0, 0, 0, 0, 0, 0 },
		{ -1, -1, -1, -1, -1, -1 },
		{ text, spare, 0, 0, 0, 0 },
		{ 1, spare, 64, high, 3, 5 },
		{ 4096, 0x7fffffff, 0x80000000, 0x123456789abcdefL, -2, -4096 },
	};

	for (long call = 0; call < LAST_CALL; call++) {
		if (is_left_out(call))
			continue;
		for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
			/* A valid time of day or host name would be taken for real. */
			if (i >= 2 && (call == SYS_settimeofday || call == SYS_clock_settime || call == SYS_clock_adjtime
				       || call == SYS_sethostname || call == SYS_setdomainname || call == SYS_adjtimex))
				continue;
			if (i == 1 && (call == SYS_kill || call == SYS_tkill))
				continue;
			run(call, sets[i]);
		}
	}
	run(SYS_syslog, (const long[]){ 10, 0, 0, 0, 0, 0 });
	run(SYS_sync, sets[0]);
	puts("done");
	return 0;
}
