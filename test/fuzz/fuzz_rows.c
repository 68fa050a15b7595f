/*-------------------------------------------------------------------------
 *
 * fuzz_rows.c
 *	  Row files of checkpoints, with checksums that fit.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "../../src/wal/checkpoint/snapshotfile.c"

static const uint8 *file_bytes;
static size_t file_size;

int
MotFileOpen(const char *path, uint64 *size)
{
	*size = file_size;
	return -1;
}

Size
MotFileRead(int fd, const char *path, void *bytes, Size len, off_t offset)
{
	Size		n = (size_t) offset >= file_size ? 0 : Min(len, file_size - (size_t) offset);

	memcpy(bytes, file_bytes + Min((size_t) offset, file_size), n);
	return n;
}

int
CloseTransientFile(int fd)
{
	return 0;
}

static void
read_it(const MotManifestFile *file)
{
	MotRowFileReader *reader = MotRowFileOpen("mot/x", file);
	unsigned	host_bits;
	const void *row;
	size_t		size;

	while (MotRowFileNext(reader, &host_bits, &row, &size))
		fuzz_read(row, size);
	MotRowFileReaderClose(reader);
}

int
LLVMFuzzerTestOneInput(const uint8 *data, size_t size)
{
	MotManifestFile file = {0};
	uint8	   *bytes;
	uint8	   *end;
	BlockHeader header = {ROWS_MAGIC};
	EndBlock	totals;

	file_bytes = data;
	file_size = file.bytes = size;
	(void) FUZZ(read_it(&file));

	/* as the rows of one block of a whole file, whose number the first byte says */
	if (size > 0)
	{
		header.rows = data[0];
		header.length = (uint32) size - 1;
		file.rows = header.rows;
		file_size = file.bytes = 2 * sizeof(header) + header.length + sizeof(totals);
		end = bytes = palloc(file_size);
		memcpy(end, &header, sizeof(header));
		memcpy(end + sizeof(header), data + 1, header.length);
		end += sizeof(header) + header.length;
		totals.rows = header.rows;
		totals.bytes = end - bytes;
		header.magic = END_MAGIC;
		header.block = 1;
		header.rows = 0;
		header.length = sizeof(totals);
		memcpy(end, &header, sizeof(header));
		memcpy(end + sizeof(header), &totals, sizeof(totals));
		file_bytes = bytes;
		(void) FUZZ(read_it(&file));
	}
	fuzz_free_all();
	return 0;
}
