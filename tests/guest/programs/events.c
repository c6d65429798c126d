/*
 * Makes many kinds of trace events fire: processes, signals, timers, memory, files, sockets.
 * Every part runs in a child with an alarm, so that one that fails or hangs stops nobody else.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/rtnetlink.h>
#include <linux/userfaultfd.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

static void files(const char *folder)
{
	char name[256], other[256];
	char *block = aligned_alloc(4096, 1 << 16);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 100 };

	memset(block, 'x', 1 << 16);
	snprintf(name, sizeof(name), "%s/file", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	for (int i = 0; i < 40; i++)
		if (pwrite(file, block, 1 << 16, (off_t)i << 17) < 0)
			break;
	fsync(file);
	fdatasync(file);
	sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE);
	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	for (int i = 0; i < 40; i++)
		if (pread(file, block, 1 << 16, (off_t)i << 17) < 0)
			break;
	readahead(file, 0, 1 << 20);
	char *map = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (map != MAP_FAILED) {
		memset(map, 'y', 1 << 16);
		msync(map, 1 << 16, MS_SYNC);
		munmap(map, 1 << 16);
	}
	fallocate(file, 0, 1 << 23, 1 << 20);
	fallocate(file, FALLOC_FL_KEEP_SIZE, 1 << 24, 1 << 20);
	fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 1 << 16);
	fallocate(file, FALLOC_FL_ZERO_RANGE, 1 << 17, 1 << 16);
	fallocate(file, FALLOC_FL_COLLAPSE_RANGE, 1 << 18, 1 << 16);
	fallocate(file, FALLOC_FL_INSERT_RANGE, 1 << 18, 1 << 16);
	lseek(file, 0, SEEK_HOLE);
	lseek(file, 0, SEEK_DATA);
	fcntl(file, F_SETLK, &lock);
	fcntl(file, F_GETLK, &lock);
	lock.l_type = F_UNLCK;
	fcntl(file, F_SETLK, &lock);
	flock(file, LOCK_EX);
	flock(file, LOCK_UN);
	fcntl(file, F_SETLEASE, F_RDLCK);
	fcntl(file, F_SETLEASE, F_UNLCK);
	if (ftruncate(file, 5000) == 0)
		fsync(file);
	close(file);
	file = open(name, O_RDWR | O_DIRECT);
	if (file >= 0) {
		if (pwrite(file, block, 1 << 16, 0) > 0 && pread(file, block, 1 << 16, 0) > 0)
			fsync(file);
		aio_context_t context = 0;
		struct iocb job = { .aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = file, .aio_buf = (uintptr_t)block,
				    .aio_nbytes = 4096 }, *jobs[] = { &job };
		struct io_event done;
		if (syscall(SYS_io_setup, 8, &context) == 0) {
			syscall(SYS_io_submit, context, 1L, jobs);
			syscall(SYS_io_getevents, context, 1L, 1L, &done, NULL);
			syscall(SYS_io_destroy, context);
		}
		close(file);
	}
	syscall(SYS_renameat2, AT_FDCWD, name, AT_FDCWD, other, 0);
	if (link(other, name) == 0)
		unlink(name);
	if (symlink(other, name) == 0)
		unlink(name);
	snprintf(name, sizeof(name), "%s/folder", folder);
	mkdir(name, 0755);
	syscall(SYS_setxattr, other, "user.colour", "green", 5L, 0);
	syscall(SYS_getxattr, other, "user.colour", block, 100L);
	syscall(SYS_listxattr, other, block, 100L);
	syscall(SYS_removexattr, other, "user.colour");
	chmod(other, 0600);
	if (chown(other, 1, 1) == 0 && truncate(other, 100) == 0)
		utimensat(AT_FDCWD, other, NULL, 0);
	char fiemap[4096] = { 0 };
	((uint64_t *)fiemap)[1] = ~0UL;
	((uint32_t *)fiemap)[6] = 20;
	file = open(other, O_RDWR);
	ioctl(file, 0xC020660BUL, fiemap);
	int flags = 0;
	ioctl(file, 0x80086601UL, &flags);
	flags |= 0x40;
	ioctl(file, 0x40086602UL, &flags);
	close(file);
	for (int i = 0; i < 300; i++) {
		snprintf(other, sizeof(other), "%s/folder/a-rather-long-name-for-a-file-%d", folder, i);
		file = open(other, O_RDWR | O_CREAT, 0644);
		if (write(file, block, 100) < 0)
			break;
		close(file);
	}
	for (int i = 0; i < 300; i += 2) {
		snprintf(other, sizeof(other), "%s/folder/a-rather-long-name-for-a-file-%d", folder, i);
		unlink(other);
	}
	rmdir(name);
	file = open(folder, O_RDONLY | O_DIRECTORY);
	syscall(SYS_getdents64, file, block, 4096L);
	syncfs(file);
	struct { uint64_t start, length, least; } range = { 0, ~0UL, 0 };
	ioctl(file, 0xC0185879UL /* FITRIM */, &range);
	ioctl(file, 0xC0045877UL /* FIFREEZE */, 0);
	ioctl(file, 0xC0045878UL /* FITHAW */, 0);
	close(file);
}

static void *echo(void *data)
{
	int server = *(int *)data, talk = accept(server, NULL, NULL);
	char text[8192];
	ssize_t got;

	while (talk >= 0 && (got = read(talk, text, sizeof(text))) > 0)
		if (write(talk, text, got) < 0)
			break;
	close(talk);
	return NULL;
}

static void talk(int family, int protocol, const struct sockaddr *address, socklen_t size)
{
	int server = socket(family, SOCK_STREAM, protocol), client = socket(family, SOCK_STREAM, protocol), one = 1;
	char text[8192] = "hello";
	pthread_t thread;

	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(client, SOL_TCP, TCP_CONGESTION, "cubic", 5);
	if (bind(server, address, size) < 0 || listen(server, 4) < 0)
		return;
	pthread_create(&thread, NULL, echo, &server);
	if (connect(client, address, size) == 0) {
		for (int i = 0; i < 20; i++)
			if (send(client, text, sizeof(text), MSG_NOSIGNAL) < 0 || recv(client, text, sizeof(text), 0) < 0)
				break;
		shutdown(client, SHUT_RDWR);
	}
	close(client);
	shutdown(server, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(server);
}

static void datagrams(int family, const struct sockaddr *address, socklen_t size)
{
	int server = socket(family, SOCK_DGRAM, 0), client = socket(family, SOCK_DGRAM, 0), small = 2048;
	char text[600] = "hello";

	setsockopt(server, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	if (bind(server, address, size) == 0) {
		for (int i = 0; i < 40; i++)
			sendto(client, text, sizeof(text), MSG_DONTWAIT, address, size);
		while (recv(server, text, sizeof(text), MSG_DONTWAIT) > 0)
			;
	}
	close(server);
	sendto(client, text, sizeof(text), MSG_DONTWAIT, address, size);
	close(client);
}

static void sockets(void)
{
	struct sockaddr_in four = { AF_INET, htons(7777), { htonl(INADDR_LOOPBACK) }, { 0 } };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(7778), .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_un local = { AF_UNIX, "/tmp/socket" };
	struct sockaddr_vm virtual = { .svm_family = AF_VSOCK, .svm_port = 99, .svm_cid = VMADDR_CID_LOCAL };
	struct { struct nlmsghdr head; struct ifinfomsg body; } ask = {
		{ sizeof(ask), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 }, { .ifi_family = AF_UNSPEC } };
	char text[65536];

	unlink("/tmp/socket");
	talk(AF_INET, 0, (void *)&four, sizeof(four));
	talk(AF_INET6, 0, (void *)&six, sizeof(six));
	talk(AF_UNIX, 0, (void *)&local, sizeof(local));
	talk(AF_INET, IPPROTO_SCTP, (void *)&four, sizeof(four));
	talk(AF_INET, 262 /* MPTCP */, (void *)&four, sizeof(four));
	talk(AF_INET6, 262, (void *)&six, sizeof(six));
	talk(AF_VSOCK, 0, (void *)&virtual, sizeof(virtual));
	datagrams(AF_INET, (void *)&four, sizeof(four));
	datagrams(AF_INET6, (void *)&six, sizeof(six));
	four.sin_port = htons(9);
	int client = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(client, (void *)&four, sizeof(four)) == 0)
		puts("somebody listens on port 9");
	close(client);
	int link = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	send(link, &ask, sizeof(ask), 0);
	recv(link, text, sizeof(text), 0);
	int kernel = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	ask.head.nlmsg_type = 200;
	ask.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	send(kernel, &ask, sizeof(ask), 0);
	recv(kernel, text, sizeof(text), 0);
	int raw = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	four.sin_addr.s_addr = htonl(0x7f000002);
	sendto(raw, "\x08\0\xf7\xff\0\0\0\0", 8, 0, (void *)&four, sizeof(four));
	four.sin_addr.s_addr = htonl(0x0a090807);
	sendto(raw, "\x08\0\xf7\xff\0\0\0\0", 8, 0, (void *)&four, sizeof(four));
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
