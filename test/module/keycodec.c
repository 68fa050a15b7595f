/*-------------------------------------------------------------------------
 *
 * keycodec.c
 *	  The key codec seen from SQL, for its tests.
 *
 * The extension's script declares none of these; sql/keycodec*.sql do.  They
 * work on any index whose operator classes have btree's comparison
 * functions, which lets a test hold keys against real btree indexes of
 * ordinary tables:
 *
 *	mot_key_bytes(index, row)		the key of a row of the index's table
 *	mot_key_answers(index, row, strategy, value)
 *									"first column <strategy> value" by
 *									conversion and comparison of keys
 *	mot_key_is_lossy(index, value)	may that admit too much?
 *	mot_key_describe(index)			what was made of its columns
 *	mot_key_type_supported(type)
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/index.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "relation/keycodec_types.h"
#include "utils/builtins.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(mot_key_bytes);
PG_FUNCTION_INFO_V1(mot_key_answers);
PG_FUNCTION_INFO_V1(mot_key_is_lossy);
PG_FUNCTION_INFO_V1(mot_key_describe);
PG_FUNCTION_INFO_V1(mot_key_type_supported);

/* kept for the calls of one query */
typedef struct TestKey
{
	Oid			indexoid;
	MotKey	   *key;
	TupleDesc	desc;			/* the table's */
	Datum	   *values;
	bool	   *isnull;
} TestKey;

static TestKey *
get_test_key(FunctionCallInfo fcinfo)
{
	Oid			indexoid = PG_GETARG_OID(0);
	TestKey    *test = fcinfo->flinfo->fn_extra;
	MemoryContext cxt = fcinfo->flinfo->fn_mcxt;
	MemoryContext old;
	Relation	index;
	Relation	heap;

	if (test != NULL && test->indexoid == indexoid)
		return test;

	heap = table_open(IndexGetRelation(indexoid, false), AccessShareLock);
	index = index_open(indexoid, AccessShareLock);
	old = MemoryContextSwitchTo(cxt);
	test = palloc(sizeof(TestKey));
	test->indexoid = indexoid;
	test->key = MotKeyCreate(heap, index);
	test->desc = CreateTupleDescCopy(RelationGetDescr(heap));
	test->values = palloc(test->desc->natts * sizeof(Datum));
	test->isnull = palloc(test->desc->natts * sizeof(bool));
	MemoryContextSwitchTo(old);
	index_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
	fcinfo->flinfo->fn_extra = test;
	return test;
}

static void
deform_row(TestKey *test, HeapTupleHeader row)
{
	HeapTupleData tuple;

	if (HeapTupleHeaderGetTypeId(row) != test->desc->tdtypeid)
		elog(ERROR, "the row is not of the index's table");
	tuple.t_len = HeapTupleHeaderGetDatumLength(row);
	tuple.t_data = row;
	heap_deform_tuple(&tuple, test->desc, test->values, test->isnull);
}

Datum
mot_key_bytes(PG_FUNCTION_ARGS)
{
	TestKey    *test = get_test_key(fcinfo);
	MotKeyBuffer buf;
	bool		has_null;
	bool		expect_null = false;
	bytea	   *result;

	deform_row(test, PG_GETARG_HEAPTUPLEHEADER(1));
	MotKeyBufferInit(&buf, NULL);
	has_null = (MotKeyFromRow(test->key, test->values, test->isnull, &buf) & MOT_KEY_DISTINCT) != 0;

	for (int i = 0; i < test->key->ncolumns; i++)
		expect_null |= test->isnull[test->key->columns[i].attnum - 1];
	if (has_null != expect_null)
		elog(ERROR, "has_null is wrong");
	if (test->key->width >= 0 && (size_t) test->key->width != buf.len)
		elog(ERROR, "key of %zu bytes should have %d", buf.len, test->key->width);

	result = palloc(VARHDRSZ + buf.len);
	SET_VARSIZE(result, VARHDRSZ + buf.len);
	memcpy(VARDATA(result), buf.data, buf.len);
	PG_RETURN_BYTEA_P(result);
}

Datum
mot_key_answers(PG_FUNCTION_ARGS)
{
	TestKey    *test = get_test_key(fcinfo);
	StrategyNumber strategy = PG_GETARG_INT32(2);
	Datum		value = PG_GETARG_DATUM(3);
	MotKeyColumn column = test->key->columns[0];
	MotKeyBuffer left;
	MotKeyBuffer right;
	Datum		converted;
	int			order;

	deform_row(test, PG_GETARG_HEAPTUPLEHEADER(1));
	if (test->isnull[column.attnum - 1])
		PG_RETURN_NULL();
	switch (MotKeyConvert(&column, get_fn_expr_argtype(fcinfo->flinfo, 3), value, &strategy, &converted))
	{
		case MOT_KEY_ALL:
			PG_RETURN_BOOL(true);
		case MOT_KEY_NONE:
			PG_RETURN_BOOL(false);
		case MOT_KEY_USE:
			break;
	}

	MotKeyBufferInit(&left, NULL);
	MotKeyBufferInit(&right, NULL);
	MotKeyAppendColumn(&column, test->values[column.attnum - 1], false, &left);
	MotKeyAppendColumn(&column, converted, false, &right);
	(void) MotKeyFitBound(&right);
	order = memcmp(left.data, right.data, Min(left.len, right.len));
	if (order == 0)
		order = (left.len > right.len) - (left.len < right.len);
	if (column.descending)
		order = -order;
	switch (strategy)
	{
		case BTLessStrategyNumber:
			PG_RETURN_BOOL(order < 0);
		case BTLessEqualStrategyNumber:
			PG_RETURN_BOOL(order <= 0);
		case BTEqualStrategyNumber:
			PG_RETURN_BOOL(order == 0);
		case BTGreaterEqualStrategyNumber:
			PG_RETURN_BOOL(order >= 0);
		default:
			PG_RETURN_BOOL(order > 0);
	}
}

Datum
mot_key_is_lossy(PG_FUNCTION_ARGS)
{
	TestKey    *test = get_test_key(fcinfo);

	PG_RETURN_BOOL(MotKeyConvertIsLossy(test->key->columns[0].typid,
										get_fn_expr_argtype(fcinfo->flinfo, 1)));
}

Datum
mot_key_describe(PG_FUNCTION_ARGS)
{
	TestKey    *test = get_test_key(fcinfo);
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < test->key->ncolumns; i++)
	{
		const MotKeyColumn *column = &test->key->columns[i];

		appendStringInfo(&text, "%s%d %s%s%s%s%s", i > 0 ? ", " : "",
						 column->attnum, format_type_be(column->typid),
						 column->enumerated ? " enumerated" : column->ordered ? "" : " unordered",
						 column->nullable ? "" : " not null",
						 column->descending ? " desc" : "",
						 column->nulls_first ? " nulls first" : "");
	}
	PG_RETURN_TEXT_P(cstring_to_text(text.data));
}

Datum
mot_key_type_supported(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(MotKeyTypeSupported(PG_GETARG_OID(0)));
}
