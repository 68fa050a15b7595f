/*-------------------------------------------------------------------------
 *
 * fuzz_definition.c
 *	  Definitions of tables, as log and checkpoints have them, with stamps that fit.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include "../../src/relation/definition.c"

/* a stamp is checked with this, and the harness writes it */
#define STAMP UINT64CONST(0x1122334455667788)

uint64
hash_bytes_extended(const unsigned char *k, int keylen, uint64 seed)
{
	fuzz_read(k, keylen);
	return STAMP;
}

void
MotRowShapeInit(MotRowShape *shape, TupleDesc desc)
{
}

/* any number is an encoding's that the codec may have */
bool
MotKeySetEncoding(MotKeyColumn *column, int number)
{
	column->encoding = (uint8) number;
	return number > 0 && number < 23;
}

void
MotKeySummarize(MotKey *key)
{
	for (int i = 0; i < key->ncolumns; i++)
		fuzz_read(&key->columns[i], sizeof(MotKeyColumn));
}

MotKey *
MotKeyPlain(MotKey *key)
{
	return key;
}

void
MotIndexComplete(MotIndex *index, TupleDesc desc)
{
	for (int i = 0; i < index->key->ncolumns && !index->key->computed; i++)
		fuzz_read(TupleDescAttr(desc, index->key->columns[i].attnum - 1), ATTRIBUTE_FIXED_PART_SIZE);
}

/* as the collation's own is: a string with its length before it */
const struct MotCollation *
MotCollationTake(const char **p, const char *end)
{
	if (end - *p < 1 || end - *p - 1 < (uint8) **p)
		return NULL;
	*p += 1 + (uint8) **p;
	return (const struct MotCollation *) *p;
}

static void
read_it(const char *bytes, size_t size)
{
	MotDefinition *def = MotDefinitionDecode(bytes, size, NULL);
	TupleDesc	desc = def->desc;

	fuzz_read(def->name, strlen(def->name));
	fuzz_read(def->conditions, Max(def->nconditions, 0) * sizeof(uint64));
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->atthasmissing || att->attbyval)
			continue;
		if (att->attlen == -1)
			fuzz_read(DatumGetPointer(desc->constr->missing[i].am_value),
					  VARSIZE_ANY(DatumGetPointer(desc->constr->missing[i].am_value)));
		else if (att->attlen == -2)
			fuzz_read(DatumGetPointer(desc->constr->missing[i].am_value),
					  strlen(DatumGetCString(desc->constr->missing[i].am_value)));
		else
			fuzz_read(DatumGetPointer(desc->constr->missing[i].am_value), att->attlen);
	}
}

int
LLVMFuzzerTestOneInput(const uint8 *data, size_t size)
{
	static const uint32 formats[] = {FORMAT_1, FORMAT_2, FORMAT_3, FORMAT_4, FORMAT};
	Header		header = {0};
	char	   *bytes;

	if (size == 0)
		return 0;
	/* behind a header that fits, of the format that the first byte says */
	header.format = formats[data[0] % lengthof(formats)];
	header.len = (uint32) (sizeof(header) + size - 1);
	header.stamp = STAMP;
	bytes = palloc(header.len);
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), data + 1, size - 1);
	(void) FUZZ(read_it(bytes, header.len));
	bytes = memcpy(palloc(size), data, size);
	(void) FUZZ(read_it(bytes, size));
	fuzz_free_all();
	return 0;
}
