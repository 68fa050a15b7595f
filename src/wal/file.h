/*-------------------------------------------------------------------------
 *
 * file.h
 *	  Files and directories, with errors that name them (file.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_WAL_FILE_H
#define MOT_WAL_FILE_H

#include "compat/names.h"
#include "port/pg_crc32c.h"

/* errno says why it cannot be done */
extern void MotFileRaise(const char *doing, const char *path) pg_attribute_noreturn();
extern void MotFileRaiseDamaged(const char *path, uint64 offset, const char *what) pg_attribute_noreturn();

extern int	MotFileCreate(const char *path, int flags);
extern int	MotFileOpen(const char *path, uint64 *size);
extern void MotFileClose(int fd, const char *path);
extern void MotFileSync(int fd, const char *path);
extern bool MotWriteAll(int fd, const void *bytes, Size len, off_t offset);
extern void MotFileWrite(int fd, const char *path, const void *bytes, Size len, off_t offset);
extern Size MotFileRead(int fd, const char *path, void *bytes, Size len, off_t offset);
extern bool MotFileSize(const char *path, uint64 *size);
extern bool MotFileRename(const char *from, const char *to, int elevel);
extern void MotFileRemove(const char *path);
extern bool MotFileMakeDirectory(const char *path, bool may_exist);
extern pg_crc32c MotFileChecksum(const void *bytes, Size len);

#endif							/* MOT_WAL_FILE_H */
