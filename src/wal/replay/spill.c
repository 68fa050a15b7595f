/*-------------------------------------------------------------------------
 *
 * spill.c
 *	  Files for what replay needs beside the tables.
 *
 * What a server held within mot.max_memory has to come back within it.  So
 * whatever only replay needs (the redo of a large transaction until its fate is
 * known, where the rows of a table without a key are) lies in files, which the
 * kernel keeps in memory as far as there is some.  They are read and written
 * through mappings, so those who apply redo need not know.
 *
 * They are of use to the processes of one recovery only: nothing is flushed,
 * the next one removes what it finds before it begins.  The directory's name is
 * the server's for temporary files, so base backups leave it out.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/fd.h"
#include "wal/checkpoint/checkpoint.h"
#include "wal/replay/spill.h"

/* Recovery begins: nothing of an earlier one is there. */
void
MotSpillBegin(void)
{
	struct stat st;

	if (stat(MOT_SPILL_DIRECTORY, &st) == 0)
		MotDirectoryRemove(MOT_SPILL_DIRECTORY);
}

/* To be called by who makes a file there. */
void
MotSpillDirectory(void)
{
	MotDirectoryMake();
	(void) MotFileMakeDirectory(MOT_SPILL_DIRECTORY, true);
}

/* the disk, according to this errno */
bool
MotSpillIsFull(int error)
{
	return error == ENOSPC || error == EDQUOT;
}

static int
open_spill(const char *path, int flags)
{
	int			fd = BasicOpenFile(path, flags | PG_BINARY);

	if (fd < 0)
		MotFileRaise("open file", path);
	return fd;
}

/*
 * Write at this place of the file, which is made at place 0.  false: the disk is
 * full (errno says how), and what lies before this place is as it was.
 */
bool
MotSpillWriteIfRoom(const char *path, uint64 offset, const void *bytes, Size len)
{
	int			fd;

	if (offset == 0)
	{
		MotDirectoryMake();
		if (MakePGDirectory(MOT_SPILL_DIRECTORY) != 0 && errno != EEXIST)
		{
			if (MotSpillIsFull(errno))
				return false;
			MotFileRaise("write to file", MOT_SPILL_DIRECTORY);
		}
		fd = BasicOpenFile(path, O_RDWR | O_CREAT | O_TRUNC | PG_BINARY);
		if (fd < 0 && MotSpillIsFull(errno))
			return false;
		if (fd < 0)
			MotFileRaise("create file", path);
	}
	else
		fd = open_spill(path, O_RDWR);
	if (!MotWriteAll(fd, bytes, len, offset))
	{
		int			save_errno = errno;

		(void) close(fd);
		errno = save_errno;
		if (MotSpillIsFull(errno))
			return false;
		MotFileRaise("write to file", path);
	}
	(void) close(fd);
	return true;
}

void
MotSpillWrite(const char *path, uint64 offset, const void *bytes, Size len)
{
	if (!MotSpillWriteIfRoom(path, offset, bytes, len))
		MotFileRaise("write to file", path);
}

/* So much of it is there from now on: 0, or what is wrong.  (A signal is not.) */
int
MotSpillAllocate(int fd, uint64 offset, Size len)
{
	int			error;

	do
		error = posix_fallocate(fd, offset, len);
	while (error == EINTR);
	return error;
}

/*
 * A file of so many bytes, to be written by its mapping, which all who have it share; new: it is
 * made anew.  NULL: errno says why not, and a new one is gone.
 */
void *
MotSpillMapFile(const char *path, Size len, bool new)
{
	void	   *p = MAP_FAILED;
	int			error = 0;
	int			fd;

	if (new)
		MotSpillDirectory();
	fd = BasicOpenFile(path, O_RDWR | PG_BINARY | (new ? O_CREAT | O_TRUNC : 0));
	if (fd < 0)
		return NULL;
	/* what is touched has to be there: a full disk would be a signal */
	if (new)
		error = MotSpillAllocate(fd, 0, len);
	if (error == 0)
		p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (error == 0 && p == MAP_FAILED)
		error = errno;
	(void) close(fd);
	if (error == 0)
		return p;
	if (new)
		(void) unlink(path);
	errno = error;
	return NULL;
}

/* The first len bytes (not 0) of the file; the mapping outlives the file's name. */
void *
MotSpillMap(const char *path, Size len)
{
	int			fd = open_spill(path, O_RDONLY);
	void	   *p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	int			save_errno = errno;

	(void) close(fd);
	if (p == MAP_FAILED)
	{
		errno = save_errno;
		MotFileRaise("map file", path);
	}
	return p;
}

void
MotSpillUnmap(const void *p, Size len)
{
	(void) munmap(unconstify(void *, p), len);
}

typedef struct Mapping
{
	MemoryContextCallback callback;
	const void *p;
	Size		len;
} Mapping;

static void
unmap_mapping(void *arg)
{
	Mapping    *mapping = arg;

	MotSpillUnmap(mapping->p, mapping->len);
}

/* when this memory goes */
void
MotSpillUnmapLater(MemoryContext cxt, const void *p, Size len)
{
	Mapping    *mapping = MemoryContextAlloc(cxt, sizeof(Mapping));

	mapping->p = p;
	mapping->len = len;
	mapping->callback.func = unmap_mapping;
	mapping->callback.arg = mapping;
	MemoryContextRegisterResetCallback(cxt, &mapping->callback);
}
