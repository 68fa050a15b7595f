/*-------------------------------------------------------------------------
 *
 * fuzz_trail.c
 *	  A standby's trail (trail.c), with headers and checksums that fit.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "../../src/wal/recovery/trail.c"

#define START ((XLogRecPtr) 1000)

int			mot_resource_manager_id = MOT_RMGR_ID;

static const char *file_bytes;
static size_t file_size;

uint64
GetSystemIdentifier(void)
{
	return 1;
}

int
MotFileOpen(const char *path, uint64 *size)
{
	*size = file_size;
	return -1;
}

Size
MotFileRead(int file, const char *path, void *bytes, Size len, off_t offset)
{
	memcpy(bytes, file_bytes + offset, len);
	return len;
}

int
CloseTransientFile(int file)
{
	return 0;
}

/* what is asked for */
static XLogRecPtr range[2];

static void
visit_it(void *arg, XLogReaderState *record)
{
	if (record->ReadRecPtr < range[0] || record->ReadRecPtr >= range[1])
		abort();
	fuzz_read(XLogRecGetData(record), XLogRecGetDataLen(record));
}

static void
read_it(XLogRecPtr from, XLogRecPtr to)
{
	FileHeader	header;
	Size		size;
	char	   *bytes = read_file(START, &size, &header);

	range[0] = from;
	range[1] = to;
	/* a copy that ends where the bytes end */
	bytes = memcpy(palloc(size), bytes, size);
	read_entries(START, bytes, bytes + size, from, to, visit_it);
}

int
LLVMFuzzerTestOneInput(const uint8 *data, size_t size)
{
	FileHeader	header = {FILE_MAGIC, 1, START, 0, 0};
	Reach		reach;
	XLogRecPtr	from;
	XLogRecPtr	to;
	char	   *bytes;

	if (size < 3)
		return 0;

	/*
	 * behind a header that fits; how far it goes, and what of that is asked
	 * for, say the first bytes
	 */
	from = START + data[0];
	to = from + data[1];
	reach.told[0].upto = START + data[2];
	reach.told[0].inverted = ~reach.told[0].upto;
	reach.told[1] = reach.told[0];
	file_size = ENTRIES_OFFSET + size - 3;
	file_bytes = bytes = palloc0(file_size);
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + REACH_OFFSET, &reach, sizeof(reach));
	memcpy(bytes + ENTRIES_OFFSET, data + 3, size - 3);
	(void) FUZZ(read_it(from, to));

	/* and as it is */
	file_bytes = (const char *) data;
	file_size = size;
	(void) FUZZ(read_it(0, PG_UINT64_MAX));
	fuzz_free_all();
	return 0;
}
