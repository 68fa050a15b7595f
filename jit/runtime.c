/*-------------------------------------------------------------------------
 *
 * runtime.c
 *	  What compiled code calls.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_collation_d.h"
#include "emit.h"
#include "fmgr.h"
#include "pgstat.h"
#include "utils/array.h"
#include "utils/builtins.h"

/* The errors of integer arithmetic, as the server words them (int.c, int8.c). */
void
MotRaiseOverflow(int bits)
{
	ereport(ERROR,
			(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
			 bits == 16 ? errmsg("smallint out of range") :
			 bits == 32 ? errmsg("integer out of range") : errmsg("bigint out of range")));
}

void
MotRaiseDivisionByZero(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_DIVISION_BY_ZERO),
			 errmsg("division by zero")));
}

/* Bytes that need no preparation? */
static inline bool
is_plain(Datum datum)
{
	return !VARATT_IS_EXTENDED(DatumGetPointer(datum)) || VARATT_IS_SHORT(DatumGetPointer(datum));
}

/* texteq under a deterministic collation: equal bytes */
bool
MotTextEqual(Datum a, Datum b)
{
	const char *pa = DatumGetPointer(a);
	const char *pb = DatumGetPointer(b);

	if (unlikely(!is_plain(a) || !is_plain(b) || VARATT_IS_EXTERNAL(pa) || VARATT_IS_EXTERNAL(pb)))
		return DatumGetBool(DirectFunctionCall2Coll(texteq, C_COLLATION_OID, a, b));
	return VARSIZE_ANY_EXHDR(pa) == VARSIZE_ANY_EXHDR(pb) &&
		memcmp(VARDATA_ANY(pa), VARDATA_ANY(pb), VARSIZE_ANY_EXHDR(pa)) == 0;
}

/* bpchareq likewise: blanks at the end don't count */
bool
MotBpcharEqual(Datum a, Datum b)
{
	const char *pa = DatumGetPointer(a);
	const char *pb = DatumGetPointer(b);
	int			la;
	int			lb;

	if (unlikely(!is_plain(a) || !is_plain(b) || VARATT_IS_EXTERNAL(pa) || VARATT_IS_EXTERNAL(pb)))
		return DatumGetBool(DirectFunctionCall2Coll(bpchareq, C_COLLATION_OID, a, b));
	la = bpchartruelen(VARDATA_ANY(pa), VARSIZE_ANY_EXHDR(pa));
	lb = bpchartruelen(VARDATA_ANY(pb), VARSIZE_ANY_EXHDR(pb));
	return la == lb && memcmp(VARDATA_ANY(pa), VARDATA_ANY(pb), la) == 0;
}

Datum
MotArrayElement(Datum array, int *subscripts, const MotSubscripts * of, bool *isnull)
{
	return array_get_element(array, of->n, subscripts, -1, of->typlen, of->typbyval, of->typalign, isnull);
}

/* A call of a function that track_functions may ask to count. */
Datum
MotCallTracked(FunctionCallInfo fcinfo)
{
	PgStat_FunctionCallUsage usage;
	Datum result;

	if (likely(pgstat_track_functions <= fcinfo->flinfo->fn_stats))
		return FunctionCallInvoke(fcinfo);
	pgstat_init_function_usage(fcinfo, &usage);
	result = FunctionCallInvoke(fcinfo);

	pgstat_end_function_usage(&usage, true);
	return result;
}
