/*-------------------------------------------------------------------------
 *
 * spill.h
 *	  Files for what replay needs beside the tables (spill.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_WAL_SPILL_H
#define MOT_WAL_SPILL_H

#include "wal/file.h"
#include "wal/internal.h"

#define MOT_SPILL_DIRECTORY MOT_DIRECTORY "/" PG_TEMP_FILE_PREFIX

/* one there, by its name; palloc'd */
#define MotSpillPath(...) psprintf(MOT_SPILL_DIRECTORY "/" __VA_ARGS__)

extern void MotSpillBegin(void);
extern void MotSpillDirectory(void);
extern bool MotSpillWriteIfRoom(const char *path, uint64 offset, const void *bytes, Size len);
extern void MotSpillWrite(const char *path, uint64 offset, const void *bytes, Size len);
extern int	MotSpillAllocate(int fd, uint64 offset, Size len);
extern bool MotSpillIsFull(int error);
extern void *MotSpillMapFile(const char *path, Size len, bool new);
extern void *MotSpillMap(const char *path, Size len);
extern void MotSpillUnmap(const void *p, Size len);
extern void MotSpillUnmapLater(MemoryContext cxt, const void *p, Size len);

#endif							/* MOT_WAL_SPILL_H */
