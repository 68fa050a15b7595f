/*-------------------------------------------------------------------------
 *
 * fuzz_collation.c
 *	  Collations, as definitions have them: what is taken is written as it was.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "../../src/relation/collation.c"

MemoryContext TopMemoryContext = NULL;

static void
read_it(const char *bytes, size_t size)
{
	const char *p = bytes;
	const MotCollation *collation = MotCollationTake(&p, bytes + size);
	const MotCollation *again;
	StringInfoData buf;

	if (collation == NULL)
		return;
	if (p < bytes || p > bytes + size)
		abort();
	initStringInfo(&buf);
	MotCollationWrite(collation, &buf);
	/* (but for flags that nobody knows) */
	if (buf.len != p - bytes || buf.data[0] != bytes[0] || memcmp(buf.data + 2, bytes + 2, buf.len - 2) != 0)
		abort();
	p = buf.data;
	again = MotCollationTake(&p, buf.data + buf.len);
	if (again != collation || p != buf.data + buf.len)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8 *data, size_t size)
{
	/* a copy that ends where the bytes end */
	char	   *bytes = memcpy(palloc(size), data, size);

	known_ones = NULL;
	(void) FUZZ(read_it(bytes, size));
	fuzz_free_all();
	return 0;
}
