/*-------------------------------------------------------------------------
 *
 * snapshotfile.c
 *	  Row files of a checkpoint: blocks with checksums.
 *
 * A block is a header and rows; the header says to which table, part and
 * place in the file the block belongs, so that a block of another file, or one
 * that was written over an older one, is noticed as well as a changed bit.
 * Its checksum covers header and rows.  The last block has no rows but the
 * totals; a file that ends without it was cut short.
 *
 * A row is its size, the bits the engine keeps with it, and its bytes.
 *
 * The manifest has a checksum of each file: that of all its block headers,
 * each of which has the checksum of its block in it.  So nothing has to be
 * summed up twice, and a file cannot be mistaken for the same one of another
 * checkpoint.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compat/waitevent.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "utils/memutils.h"
#include "wal/checkpoint/checkpoint.h"
#include "wal/replay/spill.h"

#define ROWS_MAGIC	0x314d4f54	/* "TOM1" */
#define END_MAGIC	0x454d4f54	/* "TOME" */
#define BLOCK_SIZE	(256 * 1024)	/* of the rows in a block; a larger row
									 * has one of its own */
#define PIECE_SIZE	(1024 * 1024)	/* that is handed to the disk as we go */

typedef struct BlockHeader
{
	uint32		magic;
	Oid			dbid;
	Oid			relid;
	uint32		part;
	uint32		block;			/* number in the file */
	uint32		rows;
	uint32		length;			/* bytes behind this header */
	pg_crc32c	crc;			/* of the header before it, and those bytes */
} BlockHeader;

typedef struct EndBlock
{
	uint64		rows;
	uint64		bytes;			/* of the file before this block's header */
} EndBlock;

#define ROW_HEADER	(sizeof(uint32) + sizeof(uint16))

struct MotRowFileWriter
{
	char	   *path;
	int			fd;
	char	   *buffer;			/* header and rows */
	Size		size;			/* of the buffer */
	Size		used;			/* header included */
	BlockHeader header;
	uint64		rows;
	uint64		offset;
	uint64		flushed;		/* handed to the disk */
	uint64		arrived;		/* there, too */
	pg_crc32c	crc;
};

struct MotRowFileReader
{
	char	   *path;
	int			fd;
	const MotManifestFile *file;
	char	   *buffer;
	Size		size;
	uint32		block;
	uint32		rows_left;
	const char *next;			/* row, in the buffer */
	const char *end;
	uint64		rows;
	uint64		offset;			/* of the next block */
	uint64		block_offset;	/* of the present one */
	bool		at_end;
	pg_crc32c	crc;
};

/* complete, not on the disk yet; of this process */
#define MAX_UNSYNCED 64
static MotRowFileWriter *unsynced[MAX_UNSYNCED];
static int	nunsynced = 0;

char *
MotRowFilePath(const char *dir, Oid dbid, Oid relid, uint32 part)
{
	return psprintf("%s/%u.%u.%u", dir, dbid, relid, part);
}

static pg_crc32c
block_crc(const BlockHeader *header, const char *bytes)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, header, offsetof(BlockHeader, crc));
	COMP_CRC32C(crc, bytes, header->length);
	FIN_CRC32C(crc);
	return crc;
}

/* ----------------------------------------------------------------- writing */

/*
 * The last piece begins its way to the disk, once the one before has arrived.
 * So the disk has little of ours before it at a time, and the fsync in the end
 * finds little to do.
 *
 * Waiting tells of a failure that fsync would then not tell of again, so it
 * is one here.
 */
static void
hand_over(MotRowFileWriter *w)
{
	int			failed = 0;

	if (!enableFsync)
		return;
	pgstat_report_wait_start(MotWaitEvent(MOT_FOR_FILE_SYNC));
	if (w->flushed > w->arrived)
		failed = sync_file_range(w->fd, w->arrived, w->flushed - w->arrived,
								 SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
								 SYNC_FILE_RANGE_WAIT_AFTER);
	if (!failed)
		failed = sync_file_range(w->fd, w->flushed, w->offset - w->flushed, SYNC_FILE_RANGE_WRITE);
	pgstat_report_wait_end();

	/*
	 * a file system, or an emulated kernel, that has no such thing: fsync
	 * does it all
	 */
	if (failed && errno != ENOSYS && errno != EINVAL && errno != ESPIPE)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not flush file \"%s\" to disk: %m", w->path)));
	w->arrived = w->flushed;
	w->flushed = w->offset;
}

static void
write_block(MotRowFileWriter *w, uint32 magic)
{
	w->header.magic = magic;
	w->header.length = w->used - sizeof(BlockHeader);
	w->header.crc = block_crc(&w->header, w->buffer + sizeof(BlockHeader));
	memcpy(w->buffer, &w->header, sizeof(BlockHeader));
	COMP_CRC32C(w->crc, &w->header, sizeof(BlockHeader));

	MotFileWrite(w->fd, w->path, w->buffer, w->used, w->offset);
	w->offset += w->used;
	w->rows += w->header.rows;
	w->header.rows = 0;
	w->header.block++;
	w->used = sizeof(BlockHeader);
	if (w->offset - w->flushed >= PIECE_SIZE)
		hand_over(w);
}

MotRowFileWriter *
MotRowFileCreate(const char *dir, Oid dbid, Oid relid, uint32 part)
{
	MotRowFileWriter *w = palloc0(sizeof(MotRowFileWriter));

	w->path = MotRowFilePath(dir, dbid, relid, part);
	w->size = sizeof(BlockHeader) + BLOCK_SIZE;
	w->buffer = palloc(w->size);
	w->used = sizeof(BlockHeader);
	w->header.dbid = dbid;
	w->header.relid = relid;
	w->header.part = part;
	INIT_CRC32C(w->crc);
	w->fd = MotFileCreate(w->path, O_EXCL);
	return w;
}

void
MotRowFileAppend(MotRowFileWriter *w, unsigned host_bits, const void *row, size_t size)
{
	Size		needed = ROW_HEADER + size;
	uint32		size32 = (uint32) size;
	uint16		bits = (uint16) host_bits;
	char	   *p;

	if (unlikely(w->used + needed > w->size))
	{
		if (w->header.rows > 0)
			write_block(w, ROWS_MAGIC);
		if (unlikely(sizeof(BlockHeader) + needed > w->size))
		{
			pfree(w->buffer);
			w->size = sizeof(BlockHeader) + needed;
			w->buffer = MemoryContextAllocHuge(GetMemoryChunkContext(w), w->size);
		}
	}
	p = w->buffer + w->used;
	memcpy(p, &size32, sizeof(size32));
	memcpy(p + sizeof(size32), &bits, sizeof(bits));
	memcpy(p + ROW_HEADER, row, size);
	w->used += needed;
	w->header.rows++;
}

/* The rest of it, and what the manifest has to say of it. */
static void
complete_file(MotRowFileWriter *w, MotManifestFile *file)
{
	EndBlock	end;

	if (w->header.rows > 0)
		write_block(w, ROWS_MAGIC);
	end.rows = w->rows;
	end.bytes = w->offset;
	memcpy(w->buffer + sizeof(BlockHeader), &end, sizeof(end));
	w->used = sizeof(BlockHeader) + sizeof(end);
	write_block(w, END_MAGIC);
	FIN_CRC32C(w->crc);

	file->dbid = w->header.dbid;
	file->relid = w->header.relid;
	file->part = w->header.part;
	file->rows = w->rows;
	file->bytes = w->offset;
	file->crc = w->crc;
}

/* The file is complete; whoever needs it after a crash sees to that. */
void
MotRowFileClose(MotRowFileWriter *w, MotManifestFile *file)
{
	complete_file(w, file);
	MotFileClose(w->fd, w->path);
	pfree(w->buffer);
	pfree(w->path);
	pfree(w);
}

/*
 * The file is complete, and will be on the disk when MotRowFilesSync returns;
 * false: time to call that.  Each fsync that finds its file not there yet has the file
 * system write its own log; so the files of many small tables are given to the
 * disk first, and waited for afterwards: the first one takes the others along.
 */
bool
MotRowFileCloseLater(MotRowFileWriter *w, MotManifestFile *file)
{
	bool		large;

	complete_file(w, file);
	large = w->offset >= PIECE_SIZE;
	if (!large)
		hand_over(w);
	pfree(w->buffer);
	w->buffer = NULL;
	unsynced[nunsynced++] = w;
	return !large && nunsynced < Min(MAX_UNSYNCED, max_safe_fds / 8);
}

void
MotRowFilesSync(void)
{
	while (nunsynced > 0)
	{
		MotRowFileWriter *w = unsynced[--nunsynced];

		MotFileSync(w->fd, w->path);
		MotFileClose(w->fd, w->path);
		pfree(w->path);
		pfree(w);
	}
}

/*
 * An error: what they are of will be removed.  (Their memory, and the descriptors, go with the
 * caller's.)
 */
void
MotRowFilesForget(void)
{
	nunsynced = 0;
}

void
MotRowFileAbandon(MotRowFileWriter *w)
{
	(void) CloseTransientFile(w->fd);
	(void) unlink(w->path);
	pfree(w->buffer);
	pfree(w->path);
	pfree(w);
}

/* ----------------------------------------------------------------- reading */

MotRowFileReader *
MotRowFileOpen(const char *dir, const MotManifestFile *file)
{
	MotRowFileReader *r = palloc0(sizeof(MotRowFileReader));
	uint64		size;

	r->path = MotRowFilePath(dir, file->dbid, file->relid, file->part);
	r->file = file;
	r->size = BLOCK_SIZE;
	r->buffer = palloc(r->size);
	INIT_CRC32C(r->crc);
	r->fd = MotFileOpen(r->path, &size);
	if (size != file->bytes)
		(void) CloseTransientFile(r->fd);
	if (size < file->bytes)
		MotFileRaiseDamaged(r->path, size, "the file ends here");
	if (size > file->bytes)
		MotFileRaiseDamaged(r->path, file->bytes, "the file should end here");
	(void) posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return r;
}

static void
read_bytes(MotRowFileReader *r, void *bytes, Size len, uint64 offset)
{
	Size		n = MotFileRead(r->fd, r->path, bytes, len, offset);

	if (n < len)
		MotFileRaiseDamaged(r->path, offset + n, "the file ends here");
}

/* The next block into the buffer; false: it was the last one, and all is as it should be. */
static bool
read_block(MotRowFileReader *r)
{
	BlockHeader header;
	uint64		offset = r->offset;
	uint64		left;

	if (offset + sizeof(header) > r->file->bytes)
		MotFileRaiseDamaged(r->path, offset, "the last block is missing");
	read_bytes(r, &header, sizeof(header), offset);
	left = r->file->bytes - offset - sizeof(header);
	if ((header.magic != ROWS_MAGIC && header.magic != END_MAGIC) ||
		header.dbid != r->file->dbid || header.relid != r->file->relid ||
		header.part != r->file->part || header.block != r->block ||
		header.length > left)
		MotFileRaiseDamaged(r->path, offset, "block header does not fit");
	if (header.length > r->size)
	{
		pfree(r->buffer);
		r->size = header.length;
		r->buffer = MemoryContextAllocHuge(GetMemoryChunkContext(r), r->size);
	}
	read_bytes(r, r->buffer, header.length, offset + sizeof(header));
	if (!EQ_CRC32C(block_crc(&header, r->buffer), header.crc))
		MotFileRaiseDamaged(r->path, offset, "checksum of a block does not match");
	COMP_CRC32C(r->crc, &header, sizeof(header));

	r->block++;
	r->block_offset = offset;
	r->offset = offset + sizeof(header) + header.length;
	r->rows += header.rows;
	r->rows_left = header.rows;
	r->next = r->buffer;
	r->end = r->buffer + header.length;

	if (header.magic == END_MAGIC)
	{
		EndBlock	end;
		pg_crc32c	crc = r->crc;

		if (header.length != sizeof(end))
			MotFileRaiseDamaged(r->path, offset, "block header does not fit");
		memcpy(&end, r->buffer, sizeof(end));
		FIN_CRC32C(crc);
		if (end.rows != r->rows || end.rows != r->file->rows || end.bytes != offset ||
			r->offset != r->file->bytes || !EQ_CRC32C(crc, r->file->crc))
			MotFileRaiseDamaged(r->path, offset, "the file is not the one that the manifest names");
		r->at_end = true;
		r->next = r->end;
		return false;
	}
	return true;
}

bool
MotRowFileNext(MotRowFileReader *r, unsigned *host_bits, const void **row, size_t *size)
{
	uint32		size32;
	uint16		bits;

	while (unlikely(r->rows_left == 0))
	{
		if (r->next != r->end)
			MotFileRaiseDamaged(r->path, r->block_offset, "more bytes than rows in a block");
		if (r->at_end || !read_block(r))
			return false;
	}
	if (unlikely((Size) (r->end - r->next) < ROW_HEADER))
		MotFileRaiseDamaged(r->path, r->block_offset, "fewer bytes than rows in a block");
	memcpy(&size32, r->next, sizeof(size32));
	memcpy(&bits, r->next + sizeof(size32), sizeof(bits));
	r->next += ROW_HEADER;
	if (unlikely((Size) (r->end - r->next) < size32))
		MotFileRaiseDamaged(r->path, r->block_offset, "fewer bytes than rows in a block");
	*row = r->next;
	*size = size32;
	*host_bits = bits;
	r->next += size32;
	r->rows_left--;
	return true;
}

void
MotRowFileReaderClose(MotRowFileReader *r)
{
	(void) CloseTransientFile(r->fd);
	pfree(r->buffer);
	pfree(r->path);
	pfree(r);
}
