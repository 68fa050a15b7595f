/*-------------------------------------------------------------------------
 *
 * file.c
 *	  Files and directories; what fails raises an error that names it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compat/waitevent.h"
#include "storage/fd.h"
#include "wal/checkpoint/checkpoint.h"
#include "wal/file.h"

void
MotFileRaise(const char *doing, const char *path)
{
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not %s \"%s\": %m", doing, path)));
}

void
MotFileRaiseDamaged(const char *path, uint64 offset, const char *what)
{
	MotRaiseDamage("checkpoint file \"%s\" is damaged at offset %llu: %s", path, (unsigned long long) offset, what);
}

/* A transient file to be written; O_EXCL among "flags": one that is not there. */
int
MotFileCreate(const char *path, int flags)
{
	int			fd = OpenTransientFile(path, O_RDWR | O_CREAT | PG_BINARY | flags);

	if (fd < 0)
		MotFileRaise("create file", path);
	return fd;
}

/* A transient file to be read, and its size, if that is asked for. */
int
MotFileOpen(const char *path, uint64 *size)
{
	int			fd = OpenTransientFile(path, O_RDONLY | PG_BINARY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		MotFileRaise("open file", path);
	if (size != NULL)
		*size = st.st_size;
	return fd;
}

void
MotFileClose(int fd, const char *path)
{
	if (CloseTransientFile(fd) != 0)
		MotFileRaise("close file", path);
}

/*
 * No PANIC, as the server has it for files of its own: what may not have
 * reached the disk is not tried again but written anew.
 */
void
MotFileSync(int fd, const char *path)
{
	int			failed;

	pgstat_report_wait_start(MotWaitEvent(MOT_FOR_FILE_SYNC));
	failed = pg_fsync(fd);
	pgstat_report_wait_end();
	if (failed)
		MotFileRaise("fsync file", path);
}

/* false: errno says why not all of it could be written */
bool
MotWriteAll(int fd, const void *bytes, Size len, off_t offset)
{
	Size		done = 0;

	while (done < len)
	{
		ssize_t		n;

		errno = 0;
		pgstat_report_wait_start(MotWaitEvent(MOT_FOR_FILE_WRITE));
		n = pg_pwrite(fd, (const char *) bytes + done, len - done, offset + done);
		pgstat_report_wait_end();
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
		{
			/* a disk that takes nothing and says nothing is full */
			if (errno == 0)
				errno = ENOSPC;
			return false;
		}
		done += n;
	}
	return true;
}

void
MotFileWrite(int fd, const char *path, const void *bytes, Size len, off_t offset)
{
	if (!MotWriteAll(fd, bytes, len, offset))
		MotFileRaise("write to file", path);
}

/* how much could be read; less than asked for: the file ends there */
Size
MotFileRead(int fd, const char *path, void *bytes, Size len, off_t offset)
{
	Size		done = 0;

	while (done < len)
	{
		ssize_t		n;

		pgstat_report_wait_start(MotWaitEvent(MOT_FOR_FILE_READ));
		n = pg_pread(fd, (char *) bytes + done, len - done, offset + done);
		pgstat_report_wait_end();
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			MotFileRaise("read file", path);
		if (n == 0)
			break;
		done += n;
	}
	return done;
}

/* Its size, if that is asked for; false: there is none. */
bool
MotFileSize(const char *path, uint64 *size)
{
	struct stat st;

	if (stat(path, &st) != 0)
	{
		if (errno != ENOENT)
			MotFileRaise("stat file", path);
		return false;
	}
	if (size != NULL)
		*size = st.st_size;
	return true;
}

/* false: it was not renamed, and that has been reported */
bool
MotFileRename(const char *from, const char *to, int elevel)
{
	if (rename(from, to) == 0)
		return true;
	ereport(elevel,
			(errcode_for_file_access(),
			 errmsg("could not rename file \"%s\" to \"%s\": %m", from, to)));
	return false;
}

/* It is not there any more, or that it still is has been reported. */
void
MotFileRemove(const char *path)
{
	if (unlink(path) != 0 && errno != ENOENT)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not remove file \"%s\": %m", path)));
}

/* false: it was there already, which it may if "may_exist" */
bool
MotFileMakeDirectory(const char *path, bool may_exist)
{
	if (MakePGDirectory(path) == 0)
		return true;
	if (errno != EEXIST || !may_exist)
		MotFileRaise("create directory", path);
	return false;
}

pg_crc32c
MotFileChecksum(const void *bytes, Size len)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, bytes, len);
	FIN_CRC32C(crc);
	return crc;
}
