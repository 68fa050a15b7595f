/*-------------------------------------------------------------------------
 *
 * places.c
 *	  Ranges of tables on nodes, seen and moved from SQL, for tests.
 *
 * The extension's script declares none of these; test/t/places.pl and
 * bench/islands/vm do.
 *
 *	mot_places_set(table, keys bytea[], nodes int[])
 *						ranges begin at these keys, or the beginnings of keys
 *	mot_places_move(table)	everything comes to where it belongs: "rows 5,
 *						versions 3, pages 0, refused 0, skipped 0, away 0"
 *	mot_places_rows(table)	how many rows are where: the node where they belong,
 *						the one that the engine has them on, and their page's in
 *						the system (-1: it has none); and how many have their newest
 *						version elsewhere than in the row, on which node
 *	mot_places_keep(node)	this process keeps to its processors; true if it does
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <numaif.h>

#include "access/table.h"
#include "catalog/pg_type.h"
#include "engine/mot_engine.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "mot.h"
#include "relation/relation.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "xact/xact.h"

PG_FUNCTION_INFO_V1(mot_places_set);
PG_FUNCTION_INFO_V1(mot_places_move);
PG_FUNCTION_INFO_V1(mot_places_rows);
PG_FUNCTION_INFO_V1(mot_places_keep);

/* a statement that reads no rows has no snapshot of the engine's; true: it is to be let go */
static bool
hold_snapshot(mot_session *session)
{
	if (mot_snapshot_held(session) != MOT_TS_NONE)
		return false;
	(void) mot_snapshot_take(session);
	return true;
}

static void
let_go(mot_session *session, bool held)
{
	if (held)
		mot_snapshot_hold(session, MOT_TS_NONE);
}

Datum
mot_places_set(PG_FUNCTION_ARGS)
{
	Relation	rel = table_open(PG_GETARG_OID(0), AccessShareLock);
	mot_table_place places[MOT_MAX_PLACES];
	Datum	   *keys;
	Datum	   *nodes;
	int			nkeys;
	int			nnodes;
	mot_status	status;
	bool		held;

	deconstruct_array(PG_GETARG_ARRAYTYPE_P(1), BYTEAOID, -1, false, TYPALIGN_INT, &keys, NULL, &nkeys);
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(2), INT4OID, 4, true, TYPALIGN_INT, &nodes, NULL, &nnodes);
	if (nkeys != nnodes || nkeys > MOT_MAX_PLACES)
		elog(ERROR, "%d ranges and %d nodes", nkeys, nnodes);
	for (int i = 0; i < nkeys; i++)
	{
		bytea	   *key = DatumGetByteaPP(keys[i]);

		places[i].low = mot_key_position(VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key), 0);
		places[i].node = DatumGetInt32(nodes[i]);
	}
	held = hold_snapshot(MotSession());
	status = mot_table_places_set(MotSession(), MotRelationGet(rel)->table, 0, places, nkeys);
	let_go(MotSession(), held);
	table_close(rel, AccessShareLock);
	PG_RETURN_TEXT_P(cstring_to_text(mot_status_name(status)));
}

Datum
mot_places_move(PG_FUNCTION_ARGS)
{
	Relation	rel = table_open(PG_GETARG_OID(0), AccessShareLock);
	mot_table  *table = MotRelationGet(rel)->table;
	mot_place_move move = {0};
	mot_move_end end;

	do
	{
		bool		held = hold_snapshot(MotSession());

		end = mot_table_places_move(MotSession(), table, 1000, &move);
		let_go(MotSession(), held);
		CHECK_FOR_INTERRUPTS();
	} while (end == MOT_MOVE_MORE);
	table_close(rel, AccessShareLock);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("rows " UINT64_FORMAT ", versions " UINT64_FORMAT ", pages " UINT64_FORMAT
											  ", refused " UINT64_FORMAT ", skipped " UINT64_FORMAT ", away " UINT64_FORMAT,
											  (uint64) move.rows, (uint64) move.versions, (uint64) move.pages,
											  (uint64) move.refused, (uint64) move.skipped, (uint64) move.away)));
}

typedef struct Where
{
	int			wanted;
	int			node;
	int			system_node;
	int			version_node;	/* -1: it is in the row */
} Where;

typedef struct WhereCount
{
	Where		where;
	int64		rows;
} WhereCount;

static int
system_node(const void *address)
{
	void	   *page = (void *) TYPEALIGN_DOWN(4096, address);
	int			status = -1;

	if (move_pages(0, 1, &page, NULL, &status, 0) != 0 || status < 0)
		return -1;
	return status;
}

static int
wanted_node(const mot_table_place *places, unsigned n, unsigned skip, const mot_index *index, const mot_version *version)
{
	uint8_t		key[MOT_MAX_KEY];
	size_t		len;
	unsigned	flags;
	uint64_t	position;

	if (n == 0 || !mot_index_key_hook(index, version, key, &len, &flags))
		return -1;
	position = mot_key_position(key, len, skip);
	while (n > 1 && places[n - 1].low > position)
		n--;
	return places[n - 1].node;
}

Datum
mot_places_rows(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Relation	rel = table_open(PG_GETARG_OID(0), AccessShareLock);
	mot_table  *table = MotRelationGet(rel)->table;
	const mot_index *index = mot_table_index(table, mot_table_placed_by(table));
	mot_session *session = MotSession();
	mot_view	view = MotViewFor(GetActiveSnapshot());
	HASHCTL		ctl = {.keysize = sizeof(Where),.entrysize = sizeof(WhereCount),.hcxt = CurrentMemoryContext};
	HTAB	   *counts = hash_create("rows on nodes", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	HASH_SEQ_STATUS status;
	WhereCount *count;
	mot_table_place places[MOT_MAX_PLACES];
	unsigned	skip = 0;
	unsigned	n = index == NULL ? 0 : mot_table_places_get(table, &skip, places);
	mot_scan	scan;
	mot_row    *row;
	const mot_version *version;

	InitMaterializedSRF(fcinfo, 0);
	mot_scan_begin(session, &scan, table, &view);
	while (mot_scan_next(session, &scan, &row, &version))
	{
		const char *data = mot_version_data(version);
		bool		inside = data > (char *) row && data < (char *) row + 64;
		unsigned	version_node;
		Where		where = {0};
		bool		found;

		where.wanted = wanted_node(places, n, skip, index, version);
		where.node = mot_row_node(session, row, &version_node);
		where.system_node = system_node(row);
		where.version_node = inside ? -1 : (int) version_node;
		count = hash_search(counts, &where, HASH_ENTER, &found);
		count->rows = found ? count->rows + 1 : 1;
	}
	hash_seq_init(&status, counts);
	while ((count = hash_seq_search(&status)) != NULL)
	{
		Datum		values[5];
		bool		isnull[5] = {0};

		values[0] = Int32GetDatum(count->where.wanted);
		values[1] = Int32GetDatum(count->where.node);
		values[2] = Int32GetDatum(count->where.system_node);
		values[3] = Int32GetDatum(count->where.version_node);
		values[4] = Int64GetDatum(count->rows);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, isnull);
	}
	table_close(rel, AccessShareLock);
	PG_RETURN_NULL();
}

Datum
mot_places_keep(PG_FUNCTION_ARGS)
{
	int			node = PG_GETARG_INT32(0);

	PG_RETURN_BOOL(mot_process_keep_to(MotEngineRequired(), node < 0 ? MOT_NODE_ANY : (unsigned) node));
}
