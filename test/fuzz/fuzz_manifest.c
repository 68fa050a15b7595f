/*-------------------------------------------------------------------------
 *
 * fuzz_manifest.c
 *	  Manifests of checkpoints, with checksums that fit.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "../../src/wal/checkpoint/manifest.c"

int			mot_resource_manager_id = MOT_RMGR_ID;

static void
read_it(const char *bytes, size_t size)
{
	Input		in = {"manifest", bytes, bytes, bytes + size};
	MotManifest *m = parse_manifest(&in);

	for (int i = 0; i < m->ntables; i++)
	{
		fuzz_read(m->tables[i].definition, m->tables[i].definition_len);
		fuzz_read(m->tables[i].files, m->tables[i].nfiles * sizeof(MotManifestFile));
	}
	for (int i = 0; i < m->nindoubt; i++)
		fuzz_read(m->indoubt[i].ops, m->indoubt[i].len);
	for (int i = 0; i < m->ngiven_up; i++)
		fuzz_read(m->given_up[i].why, m->given_up[i].len);
}

int
LLVMFuzzerTestOneInput(const uint8 *data, size_t size)
{
	/* it begins and ends as one, if there is room */
	size_t		whole = size + 2 * sizeof(uint64) + sizeof(Machine) + sizeof(int) + sizeof(pg_crc32c);
	char	   *bytes = palloc0(whole);
	uint64		magic = MANIFEST_MAGIC;
	char	   *p = bytes;

	memcpy(p, &magic, sizeof(magic));
	p += sizeof(magic);
	memcpy(p, &this_machine, sizeof(Machine));
	p += sizeof(Machine);
	memcpy(p, &mot_resource_manager_id, sizeof(int));
	p += sizeof(int);
	memcpy(p, data, size);
	memcpy(p + size, &magic, sizeof(magic));
	(void) FUZZ(read_it(bytes, whole));

	/* and as it is */
	bytes = memcpy(palloc(size), data, size);
	(void) FUZZ(read_it(bytes, size));
	fuzz_free_all();
	return 0;
}
