/*-------------------------------------------------------------------------
 *
 * views.c
 *	  mot_islands and mot_island_decisions.
 *
 * Where ranges begin tells something of the table's keys, so only those see it who may
 * read the table, and all of its rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "islands/measure.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(mot_islands_get);
PG_FUNCTION_INFO_V1(mot_island_decisions_get);

/* a position as the first bytes of a key; the first of all is none */
static bytea *
key_bytes(uint64 position, uint32 skip, const uint8 *common)
{
	bytea	   *key = palloc(VARHDRSZ + MOT_ISLANDS_COMMON + 8);
	uint8	   *bytes = (uint8 *) VARDATA(key);
	Size		len = 0;

	if (position > 0)
	{
		memcpy(bytes, common, skip);
		len = skip;
		for (int shift = 56; shift >= 0; shift -= 8)
			bytes[len++] = (uint8) (position >> shift);
		while (len > 0 && bytes[len - 1] == 0)
			len--;
	}
	SET_VARSIZE(key, VARHDRSZ + len);
	return key;
}

/* what has been dropped nobody may read */
static bool
may_read(Oid relid)
{
	bool		gone = false;

	return pg_class_aclcheck_ext(relid, GetUserId(), ACL_SELECT, &gone) == ACLCHECK_OK && !gone &&
		check_enable_rls(relid, InvalidOid, true) != RLS_ENABLED;
}

/* the node that the engine has for a position; -1: none */
static int
node_at(const isl_range *range, unsigned n, uint64 position)
{
	int			node = -1;

	for (unsigned i = 0; i < n && range[i].low <= position; i++)
		node = range[i].place;
	return node;
}

/* under the directory's lock, and so while the table is there */
typedef struct Places
{
	uint64		serial;
	unsigned	n;
	isl_range  *range;
} Places;

static void
copy_places(void *arg, mot_table *table)
{
	Places	   *places = arg;
	unsigned	skip;

	if (mot_table_serial(table) == places->serial)
		places->n = MotIslandsPlaced(table, &skip, places->range);
}

Datum
mot_islands_get(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MotIslandsScheme *copy = palloc(sizeof(MotIslandsScheme));
	double	   *heat = palloc(sizeof(MotIslands->heat));
	Places		places = {.range = palloc(ISL_MAX_SUBS * sizeof(isl_range))};
	isl_cost	before;
	isl_cost	after;

	(void) MotEngineRequired();
	InitMaterializedSRF(fcinfo, 0);
	LWLockAcquire(MotIslands->lock, LW_SHARED);
	if (MotIslands->generation == 0 || mot_islands == MOT_ISLANDS_OFF)
		copy->scheme.tables = 0;
	else
		*copy = MotIslands->scheme[MotIslands->generation % 2];
	memcpy(heat, MotIslands->heat, sizeof(MotIslands->heat));
	before = MotIslands->before;
	after = MotIslands->after;
	LWLockRelease(MotIslands->lock);

	for (uint32 t = 0; t < copy->scheme.tables; t++)
	{
		const isl_table *table = &copy->scheme.table[t];
		const MotIslandsTable *as = &copy->table[t];
		int			number = 0;

		if (as->database != MyDatabaseId)
			continue;
		places.serial = table->key;
		places.n = 0;
		mot_table_each(MotEngine, copy_places, &places);
		for (uint32 s = table->first; s < table->first + table->subs; s++)
		{
			Datum		values[8];
			bool		nulls[8] = {0};
			int			node = node_at(places.range, places.n, copy->scheme.low[s]);

			if (!copy->scheme.starts[s])
				continue;
			values[0] = ObjectIdGetDatum(as->relid);
			values[1] = Int32GetDatum(++number);
			values[2] = PointerGetDatum(key_bytes(copy->scheme.low[s], as->skip, as->common));
			nulls[2] = !may_read(as->relid);
			values[3] = Int32GetDatum(node);
			nulls[3] = node < 0;
			values[4] = Float8GetDatum(heat[s]);
			values[5] = Int32GetDatum(copy->scheme.place[s]);
			nulls[5] = copy->scheme.place[s] == ISL_NOWHERE;
			values[6] = Float8GetDatum(isl_cost_all(before));
			values[7] = Float8GetDatum(isl_cost_all(after));
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		}
	}
	return (Datum) 0;
}

static const char *
why_text(isl_why why)
{
	switch (why)
	{
		case ISL_CHANGED:
			return "throughput has changed";
		case ISL_UNSETTLED:
			return "the last look made it better";
		case ISL_LONGEST:
			return "the longest interval has passed";
		case ISL_LOST:
			return "a node is lost";
		case ISL_NOT_NOW:
			break;
	}
	return "";
}

static Datum
actions_array(const MotIslandsDecision *d)
{
	Datum		texts[MOT_ISLANDS_ACTIONS];

	for (unsigned i = 0; i < d->actions; i++)
	{
		Oid			relid = d->action[i].relid;
		const char *name = d->action[i].database == MyDatabaseId ? get_rel_name(relid) : NULL;
		bytea	   *low = key_bytes(d->action[i].action.low, d->action[i].skip, d->action[i].common);
		StringInfoData text;

		initStringInfo(&text);
		if (name != NULL)
			appendStringInfo(&text, "move %s", quote_identifier(name));
		else
			appendStringInfo(&text, "move table %u of database %u", relid, d->action[i].database);
		if (name != NULL && may_read(relid))
		{
			appendStringInfoString(&text, " from \\x");
			for (Size b = 0; b < VARSIZE(low) - VARHDRSZ; b++)
				appendStringInfo(&text, "%02x", ((uint8 *) VARDATA(low))[b]);
			appendStringInfoString(&text, " on");
		}
		appendStringInfo(&text, " to node %u", d->action[i].action.place);
		texts[i] = CStringGetTextDatum(text.data);
	}
	return PointerGetDatum(construct_array(texts, d->actions, TEXTOID, -1, false, TYPALIGN_INT));
}

Datum
mot_island_decisions_get(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MotIslandsDecision *ring = palloc(sizeof(MotIslands->decision));
	uint64		n;

	(void) MotEngineRequired();
	InitMaterializedSRF(fcinfo, 0);
	LWLockAcquire(MotIslands->lock, LW_SHARED);
	memcpy(ring, MotIslands->decision, sizeof(MotIslands->decision));
	n = MotIslands->decisions;
	LWLockRelease(MotIslands->lock);
	for (uint64 i = n > MOT_ISLANDS_DECISIONS ? n - MOT_ISLANDS_DECISIONS : 0; i < n; i++)
	{
		const MotIslandsDecision *d = &ring[i % MOT_ISLANDS_DECISIONS];
		Datum		values[10];
		bool		nulls[10] = {0};

		values[0] = TimestampTzGetDatum(d->at);
		values[1] = CStringGetTextDatum(why_text(d->why));
		values[2] = BoolGetDatum(d->done);
		values[3] = Int32GetDatum(d->count[ISL_SPLIT]);
		values[4] = Int32GetDatum(d->count[ISL_MERGE]);
		values[5] = Int32GetDatum(d->count[ISL_MOVE]);
		values[6] = actions_array(d);
		values[7] = Float8GetDatum(d->milliseconds);
		values[8] = Float8GetDatum(isl_cost_all(d->before));
		values[9] = Float8GetDatum(isl_cost_all(d->after));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
