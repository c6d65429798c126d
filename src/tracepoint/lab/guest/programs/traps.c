/* SPDX-License-Identifier: MIT */
/*
 * traps - raises every trap of an x86-64 processor that a program can raise.
 *
 * traps            raise all, each in a child of its own, and print what the child got
 * traps NAME...    raise those, in that order
 * traps -l         list them, and say why the other vectors cannot be raised
 * traps -i         run "int N" for every N from 0 to 255 and print what comes of it
 *
 * A line has the words: vector, name, pid of the child, signal, code of the signal, the number and
 * the error code that the kernel noted for the thread, and what was done.  Exit status: 0.
 */
#define _GNU_SOURCE
#include <asm/ldt.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define MODIFY_LDT	1
#define LDT_SELECTOR	7	/* entry 0 of the local table, user privilege */
#define CODE32		0x23	/* the kernel's 32-bit code segment for programs */
#define SECONDS		10

/* What a child sends home from its signal handler. */
struct outcome {
	int signal, code;
	long trap, error;
};

struct trap {
	int vector;
	const char *name;
	void (*raise)(void);
	const char *what;
};

struct impossible {
	int vector;
	const char *name, *reason;
};

static int report[2];
static volatile long watched;

static void on_signal(int number, siginfo_t *info, void *data)
{
	const greg_t *registers = ((ucontext_t *)data)->uc_mcontext.gregs;
	struct outcome got = { number, info->si_code, registers[REG_TRAPNO], registers[REG_ERR] };

	if (write(report[1], &got, sizeof(got)) != sizeof(got))
		_exit(3);
	_exit(0);
}

/* Changes the code segment in which the program is to go on after a handler to one that is refused. */
static void on_request(int number, siginfo_t *info, void *data)
{
	greg_t *segments = &((ucontext_t *)data)->uc_mcontext.gregs[REG_CSGSFS];

	(void)number;
	(void)info;
	*segments = (*segments & ~0xffffL) | LDT_SELECTOR;
}

static void catch_signals(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS };
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t stack = { .ss_size = 1 << 16 };

	stack.ss_sp = malloc(stack.ss_size);
	sigaltstack(&stack, NULL);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigaction(faults[i], &action, NULL);
	action.sa_sigaction = on_request;
	sigaction(SIGUSR1, &action, NULL);
}

static void divide(void)
{
	__asm__ volatile("xorl %%edx, %%edx; movl $1, %%eax; xorl %%ecx, %%ecx; divl %%ecx" ::: "eax", "ecx", "edx");
}

static void divide_overflow(void)
{
	__asm__ volatile("movl $0x80000000, %%eax; cltd; movl $-1, %%ecx; idivl %%ecx" ::: "eax", "ecx", "edx");
}

static void single_step(void)
{
	__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq; nop; nop" ::: "memory", "cc");
}

static void debug_instruction(void)
{
	__asm__ volatile(".byte 0xf1");
}

/* A tracer sets a debug register of its parent: bit 0 of DR7 for DR0, a write of 8 bytes. */
static void watch(pid_t parent, int ready)
{
	int status;

	if (ptrace(PTRACE_ATTACH, parent, NULL, NULL) < 0)
		_exit(1);
	waitpid(parent, &status, 0);
	ptrace(PTRACE_POKEUSER, parent, offsetof(struct user, u_debugreg[0]), &watched);
	ptrace(PTRACE_POKEUSER, parent, offsetof(struct user, u_debugreg[7]), 0x90001L);
	if (write(ready, "", 1) == 1)
		ptrace(PTRACE_CONT, parent, NULL, NULL);
	while (waitpid(parent, &status, 0) == parent && WIFSTOPPED(status))
		ptrace(PTRACE_CONT, parent, NULL, (long)WSTOPSIG(status));
	_exit(0);
}

static void watchpoint(void)
{
	pid_t self = getpid();
	int ready[2];
	char byte;

	if (pipe(ready) < 0)
		_exit(1);
	if (fork() == 0)
		watch(self, ready[1]);
	if (read(ready[0], &byte, 1) == 1)
		watched = 1;
}

static void breakpoint(void)
{
	__asm__ volatile("int3");
}

static void int_3(void)
{
	__asm__ volatile(".byte 0xcd, 3");
}

static void int_4(void)
{
	__asm__ volatile("int $4");
}

/*
 * Runs 32-bit code; `into` and `bound` exist only there. Both the code and what it reads lie low.
 * It gets there by a jump: QEMU 7.2 emulates a far return of a program with accesses of the kernel's
 * privilege, at which the guest's kernel dies.
 */
static void run_32(const unsigned char *code, size_t size)
{
	unsigned char *low = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int *limits = (int *)(low + 4096);

	if (low == MAP_FAILED)
		_exit(1);
	memcpy(low, code, size);
	limits[0] = 1;
	limits[1] = 4;
	struct { unsigned int address; unsigned short segment; } target = { (unsigned long)low, CODE32 };
	__asm__ volatile("movq %0, %%rbx; ljmpl *%1" :: "r"(limits), "m"(target) : "rbx", "memory");
}

static void into(void)
{
	/* mov $0x7f, %al; add $1, %al; into */
	static const unsigned char code[] = { 0xb0, 0x7f, 0x04, 0x01, 0xce, 0xf4 };

	run_32(code, sizeof(code));
}

static void bound(void)
{
	/* mov $5, %eax; bound %eax, (%ebx) with the limits 1 and 4 */
	static const unsigned char code[] = { 0xb8, 5, 0, 0, 0, 0x62, 0x03, 0xf4 };

	run_32(code, sizeof(code));
}

static void undefined(void)
{
	__asm__ volatile("ud2");
}

static void make_segment(int is_code)
{
	struct user_desc segment = { .entry_number = 0, .limit = 0xfffff, .seg_32bit = 1, .limit_in_pages = 1,
				     .contents = is_code ? MODIFY_LDT_CONTENTS_CODE : MODIFY_LDT_CONTENTS_DATA,
				     .seg_not_present = 1 };

	if (syscall(SYS_modify_ldt, MODIFY_LDT, &segment, sizeof(segment)) != 0)
		_exit(2);
}

static void segment_not_present(void)
{
	make_segment(0);
	__asm__ volatile("movw %0, %%es" :: "r"((short)LDT_SELECTOR));
}

static void return_to_not_present(void)
{
	make_segment(1);
	raise(SIGUSR1);
}

static void return_to_nothing(void)
{
	raise(SIGUSR1);
}

static void stack_segment(void)
{
	make_segment(0);
	__asm__ volatile("movw %0, %%ss" :: "r"((short)LDT_SELECTOR));
}

static void stack_address(void)
{
	__asm__ volatile("movq %0, %%rsp; popq %%rax" :: "r"(1UL << 62) : "rax");
}

static void halt(void)
{
	__asm__ volatile("hlt");
}

static void far_address(void)
{
	__asm__ volatile("movq (%0), %%rax" :: "r"(1UL << 62) : "rax");
}

static void nested_task(void)
{
	__asm__ volatile("pushfq; orq $0x4000, (%%rsp); popfq; iretq" ::: "memory", "cc");
}

/* Refused by processors that hide their tables from programs; the kernel then answers in their stead. */
static void table_register(void)
{
	char table[10];

	__asm__ volatile("sgdt %0" : "=m"(table));
}

static void null(void)
{
	__asm__ volatile("movq %0, %%rcx; movl $1, (%%rcx)" :: "i"(8) : "rcx", "memory");
}

static void kernel_address(void)
{
	__asm__ volatile("movq (%0), %%rax" :: "r"(0xffffffff81000000UL) : "rax");
}

static void x87(void)
{
	unsigned short control = 0x37b;	/* division by zero is not masked */

	__asm__ volatile("fninit; fldcw %0; fld1; fldz; fdivrp; fwait" :: "m"(control));
}

static void misaligned(void)
{
	char room[16];

	__asm__ volatile("pushfq; orq $0x40000, (%%rsp); popfq; movl %%eax, 1(%0);"
			 "pushfq; andq $~0x40000, (%%rsp); popfq" :: "r"(room) : "memory", "cc");
}

static void simd(void)
{
	unsigned int control = 0x1d80;	/* division by zero is not masked */
	float one = 1, zero = 0;

	__asm__ volatile("ldmxcsr %0; movss %1, %%xmm0; divss %2, %%xmm0"
			 :: "m"(control), "m"(one), "m"(zero) : "xmm0");
}

static const struct trap traps[] = {
	{ 0, "de", divide, "divl by 0" },
	{ 0, "de-overflow", divide_overflow, "idivl of the lowest number by -1" },
	{ 1, "db", debug_instruction, "int1" },
	{ 1, "db-step", single_step, "popfq with the trap flag" },
	{ 1, "db-watch", watchpoint, "write to an address in a debug register" },
	{ 3, "bp", breakpoint, "int3" },
	{ 3, "bp-int", int_3, "int $3, two bytes" },
	{ 4, "of", into, "into, 32-bit code" },
	{ 4, "of-int", int_4, "int $4" },
	{ 5, "br", bound, "bound, 32-bit code" },
	{ 6, "ud", undefined, "ud2" },
	{ 11, "np", segment_not_present, "load %es with a segment that is not present" },
	{ 11, "np-iret", return_to_not_present, "sigreturn to a code segment that is not present" },
	{ 12, "ss", stack_segment, "load %ss with a segment that is not present" },
	{ 12, "ss-address", stack_address, "popq from an address that is not canonical" },
	{ 13, "gp", halt, "hlt" },
	{ 13, "gp-address", far_address, "read from an address that is not canonical" },
	{ 13, "gp-iret", return_to_nothing, "sigreturn to a code segment that does not exist" },
	{ 13, "gp-nt", nested_task, "iretq with the nested task flag" },
	{ 13, "gp-umip", table_register, "sgdt" },
	{ 14, "pf", null, "write to address 8" },
	{ 14, "pf-kernel", kernel_address, "read of the kernel's memory" },
	{ 16, "mf", x87, "fdivrp by 0, not masked" },
	{ 17, "ac", misaligned, "misaligned movl with the alignment flag" },
	{ 19, "xf", simd, "divss by 0, not masked" },
};

static const struct impossible impossibles[] = {
	{ 2, "nmi", "an interrupt from outside the program; int $2 is refused with #GP" },
	{ 7, "nm", "the kernel never leaves CR0.TS set (the FPU is not switched lazily any more); "
		   "processors with AMX raise it at the first use of a tile" },
	{ 8, "df", "a fault of the kernel's own, while it enters another one" },
	{ 9, "old-mf", "only a 386 with a 387 raises it" },
	{ 10, "ts", "the kernel does not switch tasks by TSS and lets no program make a task gate; "
		    "iretq with the nested task flag is #GP in 64-bit mode" },
	{ 15, "spurious", "reserved: no processor raises it; int $15 is refused with #GP" },
	{ 18, "mc", "broken hardware" },
	{ 20, "ve", "only a guest of Intel TDX gets it" },
	{ 32, "iret", "a number of 32-bit kernels for a bad iret; a 64-bit kernel reports what iret itself "
		      "raised (np-iret, gp-iret)" },
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *signal_text(int number)
{
	static char text[16];

	if (number == 0)
		return "none";
	snprintf(text, sizeof(text), "SIG%s", sigabbrev_np(number));
	return text;
}

static const char *code_text(const struct outcome *got)
{
	static const char *const fpe[] = { "", "FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV" };
	static const char *const trap[] = { "", "TRAP_BRKPT", "TRAP_TRACE", "TRAP_BRANCH", "TRAP_HWBKPT" };
	static char text[16];

	if (got->signal == 0)
		return "-";
	if (got->code == SI_KERNEL)
		return "SI_KERNEL";
	if (got->signal == SIGFPE && got->code > 0 && got->code < 4)
		return fpe[got->code];
	if (got->signal == SIGTRAP && got->code > 0 && got->code < 5)
		return trap[got->code];
	if (got->signal == SIGSEGV && got->code == SEGV_MAPERR)
		return "SEGV_MAPERR";
	if (got->signal == SIGSEGV && got->code == SEGV_ACCERR)
		return "SEGV_ACCERR";
	if (got->signal == SIGILL && got->code == ILL_ILLOPN)
		return "ILL_ILLOPN";
	if (got->signal == SIGBUS && got->code == BUS_ADRALN)
		return "BUS_ADRALN";
	snprintf(text, sizeof(text), "%d", got->code);
	return text;
}

/* Lets a child raise a trap; `got` is all zero when it went on as if nothing had been. */
static pid_t try(void (*action)(void), struct outcome *got)
{
	struct outcome nothing = { 0 };
	int status;
	pid_t pid;

	*got = nothing;
	fflush(stdout);
	if (pipe(report) < 0 || (pid = fork()) < 0) {
		perror("traps");
		exit(1);
	}
	if (pid == 0) {
		catch_signals();
		alarm(SECONDS);
		action();
		_exit(0);
	}
	close(report[1]);
	waitpid(pid, &status, 0);
	if (read(report[0], got, sizeof(*got)) != sizeof(*got) && WIFSIGNALED(status))
		got->signal = WTERMSIG(status);
	close(report[0]);
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		fprintf(stderr, "traps: child %d could not do it (status %d)\n", pid, WEXITSTATUS(status));
	return pid;
}

static void show(const struct trap *trap)
{
	struct outcome got;
	pid_t pid = try(trap->raise, &got);

	printf("%-2d %-11s pid=%-4d %-7s %-11s trap=%-2ld error=%#-6lx %s\n", trap->vector, trap->name, pid,
	       signal_text(got.signal), code_text(&got), got.trap, got.error, trap->what);
}

static void list(void)
{
	for (size_t i = 0; i < COUNT(traps); i++)
		printf("%-2d %-11s %s\n", traps[i].vector, traps[i].name, traps[i].what);
	for (size_t i = 0; i < COUNT(impossibles); i++)
		printf("%-2d %-11s never: %s\n", impossibles[i].vector, impossibles[i].name, impossibles[i].reason);
}

static unsigned char *int_code;

static void run_int(void)
{
	((void (*)(void))int_code)();
}

static void sweep(void)
{
	struct outcome got;

	int_code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int number = 0; number < 256; number++) {
		/* mov $20, %eax (getpid, were it a system call); int $number; ret */
		memcpy(int_code, (unsigned char[]){ 0xb8, 20, 0, 0, 0, 0xcd, number, 0xc3 }, 8);
		try(run_int, &got);
		printf("int %-3d %-7s %-11s trap=%-2ld error=%#lx\n", number, signal_text(got.signal),
		       code_text(&got), got.trap, got.error);
	}
}

static const struct trap *find(const char *name)
{
	for (size_t i = 0; i < COUNT(traps); i++)
		if (strcmp(traps[i].name, name) == 0)
			return &traps[i];
	fprintf(stderr, "traps: no trap %s; traps -l lists them\n", name);
	exit(2);
}

int main(int count, char **words)
{
	if (count == 2 && strcmp(words[1], "-l") == 0) {
		list();
	} else if (count == 2 && strcmp(words[1], "-i") == 0) {
		sweep();
	} else if (count > 1) {
		for (int i = 1; i < count; i++)
			find(words[i]);
		for (int i = 1; i < count; i++)
			show(find(words[i]));
	} else {
		for (size_t i = 0; i < COUNT(traps); i++)
			show(&traps[i]);
	}
	return 0;
}
