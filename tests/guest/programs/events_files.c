/* The part of events.c that works on a file system: every call that a folder's files allow. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void files(const char *folder);

void files(const char *folder)
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
