// SPDX-License-Identifier: GPL-2.0
/*
 * Raises in kernel mode what no program can raise, when it is loaded: vectors 7, 9, 15 and 19.
 *
 * A handler of a trap of the kernel looks for a fixup of the instruction that comes next, finds the
 * one that each of these has, and goes on there.  Vector 7 needs CR0.TS, which the kernel never sets
 * itself; its handler warns and clears it.
 */
#include <linux/module.h>
#include <linux/preempt.h>
#include <asm/asm.h>

#define CR0_TS	8UL

#define RAISE(number)	asm volatile("int $" #number "\n1:\n" _ASM_EXTABLE(1b, 1b) ::: "memory")

static void use_fpu_when_it_is_off(void)
{
	unsigned long cr0;

	preempt_disable();
	asm volatile("mov %%cr0, %0" : "=r"(cr0));
	asm volatile("mov %0, %%cr0" :: "r"(cr0 | CR0_TS) : "memory");
	asm volatile("fnop" ::: "memory");
	preempt_enable();
}

static int __init raise_traps_init(void)
{
	use_fpu_when_it_is_off();
	RAISE(9);
	RAISE(15);
	RAISE(19);
	return 0;
}

static void __exit raise_traps_exit(void)
{
}

module_init(raise_traps_init);
module_exit(raise_traps_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Raises traps that no program can raise");
