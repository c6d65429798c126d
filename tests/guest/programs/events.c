/*
 * Makes many kinds of trace events fire: processes, signals, timers, memory, files, sockets.
 * Every part runs in a child with an alarm, so that one that fails or hangs stops nobody else.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* In events_files.c and events_sockets.c. */
void files(const char *folder);
void sockets(void);

static void nothing(int number)
{
	(void)number;
}

static void *thread_body(void *data)
{
	prctl(PR_SET_NAME, data);
	usleep(1000);
	return NULL;
}

static void processes(void)
{
	pthread_t threads[4];
	struct sched_param real = { .sched_priority = 10 };
	cpu_set_t set;

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, thread_body, "a name");
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 8; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			if (i & 1)
				execl("/bin/busybox", "true", NULL);
			_exit(i);
		}
		waitpid(pid, NULL, 0);
	}
	sched_setscheduler(0, SCHED_FIFO, &real);
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
	for (int i = 0; i < 2; i++) {
		CPU_ZERO(&set);
		CPU_SET(i, &set);
		sched_setaffinity(0, sizeof(set), &set);
		sched_yield();
	}
	setpriority(PRIO_PROCESS, 0, 5);
	struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t run, dead, period; }
		deadline = { 48, 6, 0, 0, 0, 1000000, 10000000, 10000000 };
	syscall(SYS_sched_setattr, 0, &deadline, 0);
	usleep(2000);
}

static void *pi_locker(void *lock)
{
	pthread_mutex_lock(lock);
	usleep(3000);
	pthread_mutex_unlock(lock);
	return NULL;
}

static void priority_inheritance(void)
{
	pthread_mutexattr_t kind;
	pthread_mutex_t lock;
	pthread_t threads[3];
	struct sched_param real = { .sched_priority = 3 };
	pthread_attr_t how;

	pthread_mutexattr_init(&kind);
	pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lock, &kind);
	pthread_attr_init(&how);
	for (int i = 0; i < 3; i++) {
		pthread_create(&threads[i], &how, pi_locker, &lock);
		usleep(500);
		pthread_attr_setinheritsched(&how, PTHREAD_EXPLICIT_SCHED);
		pthread_attr_setschedpolicy(&how, SCHED_FIFO);
		real.sched_priority += i;
		pthread_attr_setschedparam(&how, &real);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = nothing };
	siginfo_t info = { .si_code = SI_QUEUE, .si_signo = SIGUSR2 };

	for (int number = 1; number < 65; number++)
		sigaction(number, &action, NULL);
	for (int number = 1; number < 65; number++)
		if (number != SIGKILL && number != SIGSTOP && number != 32 && number != 33)
			kill(getpid(), number);
	syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR2, &info);
	signal(SIGUSR1, SIG_IGN);
	raise(SIGUSR1);
	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			signal(SIGFPE, SIG_DFL);
			signal(SIGSEGV, SIG_DFL);
			signal(SIGILL, SIG_DFL);
			signal(SIGTRAP, SIG_DFL);
			if (i == 0)
				*(volatile int *)8 = 1;
			if (i == 1)
				__asm__ volatile("ud2");
			if (i == 2)
				__asm__ volatile("int3");
			if (i == 3)
				__asm__ volatile("xorl %%edx,%%edx; movl $1,%%eax; divl %%edx" ::: "eax", "edx");
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

static void timers(void)
{
	struct itimerval soon = { .it_value = { 0, 2000 }, .it_interval = { 0, 2000 } };
	struct itimerspec later = { .it_value = { 0, 3000000 }, .it_interval = { 0, 2000000 } };
	struct sigaction action = { .sa_handler = nothing };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI,
				     CLOCK_REALTIME_ALARM, CLOCK_BOOTTIME_ALARM };
	timer_t timer;
	uint64_t fired;

	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGVTALRM, &action, NULL);
	sigaction(SIGPROF, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++)
		setitimer(which, &soon, NULL);
	for (volatile long spin = 0; spin < 30000000; spin++)
		;
	for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++)
		setitimer(which, &(struct itimerval){ 0 }, NULL);
	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		int file = timerfd_create(clocks[i], 0);
		if (file >= 0) {
			timerfd_settime(file, 0, &later, NULL);
			if (read(file, &fired, 8) < 0)
				perror("timerfd");
			timerfd_settime(file, 0, &(struct itimerspec){ 0 }, NULL);
			close(file);
		}
		if (timer_create(clocks[i], &event, &timer) == 0) {
			timer_settime(timer, 0, &later, NULL);
			usleep(5000);
			timer_delete(timer);
		}
		clock_nanosleep(clocks[i], 0, &(struct timespec){ 0, 1000000 }, NULL);
	}
	timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer);
	timer_settime(timer, 0, &later, NULL);
	for (volatile long spin = 0; spin < 10000000; spin++)
		;
	prctl(PR_SET_TIMERSLACK, 1);
	poll(NULL, 0, 3);
	select(0, NULL, NULL, NULL, &(struct timeval){ 0, 1000 });
}

static void memory(void)
{
	size_t size = 64 << 20;
	char *room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(room, size, MADV_HUGEPAGE);
	for (size_t i = 0; i < size / 2; i += 4096)
		room[i] = 1;
	if (fork() == 0) {
		for (size_t i = 0; i < size / 4; i += 4096)
			room[i] = 2;
		_exit(0);
	}
	wait(NULL);
	madvise(room, size / 4, 25 /* MADV_COLLAPSE */);
	mprotect(room + 4096, 4096, PROT_READ);
	mlock(room + 8192, 1 << 16);
	munlock(room + 8192, 1 << 16);
	madvise(room, 1 << 20, MADV_PAGEOUT);
	madvise(room, 1 << 20, MADV_COLD);
	madvise(room, 1 << 20, MADV_FREE);
	madvise(room, 1 << 20, MADV_DONTNEED);
	mremap(room, size, size / 2, 0);
	munmap(room, size / 2);
	room = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (room != MAP_FAILED)
		memset(room, 1, 2 << 20);
	int shared = shmget(IPC_PRIVATE, 1 << 20, 0600);
	char *segment = shmat(shared, NULL, 0);
	memset(segment, 1, 1 << 20);
	shmctl(shared, IPC_RMID, NULL);
	int file = memfd_create("memory", 0);
	if (ftruncate(file, 1 << 20) == 0 && fallocate(file, 0, 0, 1 << 20) == 0)
		fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 8192);
	sbrk(1 << 20);
	free(malloc(1 << 22));
}

static void rings(void)
{
	struct io_uring_params setup = { 0 };
	int ring = syscall(SYS_io_uring_setup, 8, &setup), pipes[2], events;
	if (ring < 0 || pipe(pipes) < 0)
		return;
	char *submit = mmap(NULL, 4096 * 4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
	struct io_uring_sqe *jobs = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	unsigned *tail = (unsigned *)(submit + setup.sq_off.tail), *order = (unsigned *)(submit + setup.sq_off.array);
	struct __kernel_timespec soon = { 0, 1000000 };
	static char text[16];
	const struct io_uring_sqe wanted[] = {
		{ .opcode = IORING_OP_NOP, .user_data = 1 },
		{ .opcode = IORING_OP_READ, .fd = pipes[0], .addr = (uintptr_t)text, .len = 8, .user_data = 2 },
		{ .opcode = IORING_OP_POLL_ADD, .fd = pipes[0], .poll32_events = POLLIN, .user_data = 3 },
		{ .opcode = IORING_OP_TIMEOUT, .addr = (uintptr_t)&soon, .len = 1, .user_data = 4 },
		{ .opcode = IORING_OP_NOP, .flags = IOSQE_IO_LINK, .user_data = 5 },
		{ .opcode = IORING_OP_READ, .fd = 9999, .addr = (uintptr_t)text, .len = 8, .user_data = 6 },
		{ .opcode = 200, .user_data = 7 },
		{ .opcode = IORING_OP_NOP, .flags = IOSQE_ASYNC | IOSQE_IO_DRAIN, .user_data = 8 },
	};

	events = eventfd(0, 0);
	syscall(SYS_io_uring_register, ring, IORING_REGISTER_EVENTFD, &events, 1);
	syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, pipes, 2);
	for (unsigned i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		jobs[i] = wanted[i];
		order[i] = i;
		__atomic_store_n(tail, i + 1, __ATOMIC_RELEASE);
		syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0);
	}
	if (write(pipes[1], "12345678", 8) == 8)
		syscall(SYS_io_uring_enter, ring, 0, 3, IORING_ENTER_GETEVENTS, NULL, 0);
	close(ring);
}

static void counters_and_programs(void)
{
	struct perf_event_attr want = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(want), .config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = 1000000, .wakeup_events = 1 };
	int counter = syscall(SYS_perf_event_open, &want, 0, -1, -1, 0);
	struct bpf_insn code[] = { { 0xb7, 0, 0, 0, 1 }, { 0x95, 0, 0, 0, 0 } };
	union bpf_attr load = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insn_cnt = 2, .insns = (uintptr_t)code,
				.license = (uintptr_t)"GPL" };
	int program = syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));
	char packet[64] = { 0 }, back[64];
	union bpf_attr test = { .test = { .prog_fd = program, .data_size_in = 64, .data_in = (uintptr_t)packet,
					  .data_out = (uintptr_t)back, .data_size_out = 64, .repeat = 2 } };

	syscall(SYS_bpf, BPF_PROG_TEST_RUN, &test, sizeof(test));
	for (volatile long spin = 0; spin < 5000000; spin++)
		;
	close(counter);
	int model = open("/dev/cpu/0/msr", O_RDWR);
	uint64_t value;
	if (model >= 0 && pread(model, &value, 8, 0x10) == 8 && pread(model, &value, 8, 0xc0000080) == 8)
		close(model);
	int message = open("/dev/kmsg", O_WRONLY);
	if (write(message, "<4>a line for the kernel log\n", 29) > 0)
		close(message);
	syscall(SYS_seccomp, 99, 0, NULL);
	int rseq[8] __attribute__((aligned(32))) = { 0 };
	syscall(SYS_rseq, rseq, 32, 0, 0x53053053);
	usleep(100);
}

int main(int count, char **arguments)
{
	static const struct { const char *name; void (*part)(void); } parts[] = {
		{ "processes", processes }, { "priority", priority_inheritance }, { "signals", signals },
		{ "timers", timers }, { "memory", memory }, { "sockets", sockets }, { "rings", rings },
		{ "counters", counters_and_programs },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (count < 2 || strcmp(arguments[1], parts[i].name) != 0)
			continue;
		pid_t pid = fork();
		if (pid == 0) {
			alarm(20);
			parts[i].part();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	if (count > 2 && strcmp(arguments[1], "files") == 0) {
		alarm(60);
		files(arguments[2]);
	}
	return 0;
}
