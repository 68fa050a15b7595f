/*-------------------------------------------------------------------------
 *
 * analyze.c
 *	  ANALYZE and TRUNCATE.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/vacuum.h"
#include "compat/calls.h"
#include "fdw/fdw.h"
#include "miscadmin.h"
#include "utils/sampling.h"

/* rows in the order of the scan, as which each is numbered */
static int
compare_positions(const void *a, const void *b)
{
	return ItemPointerCompare(&(*(HeapTuple *) a)->t_self, &(*(HeapTuple *) b)->t_self);
}

/*
 * A sample of "targrows" rows (Vitter's reservoir, as the server takes its
 * own), in physical order, of those that are there now, whatever snapshot the
 * transaction has.  All rows are counted on the way.
 */
static int
acquire_sample(Relation rel, int elevel, HeapTuple *rows, int targrows,
			   double *totalrows, double *totaldeadrows)
{
	TupleDesc	desc = RelationGetDescr(rel);
	mot_session *session = MotSession();
	MotRelation *relation = MotRelationGet(rel);
	Datum	   *values = palloc(desc->natts * sizeof(Datum));
	bool	   *isnull = palloc(desc->natts * sizeof(bool));
	ReservoirStateData reservoir;
	mot_build	scan;
	mot_view	view;
	mot_row    *row;
	const mot_version *version;
	double		nrows = 0;
	double		toskip = -1;
	int			nsamples = 0;
	int			i;

	reservoir_init_selection_state(&reservoir, targrows);
	view = MotLooseView();
	mot_build_rows(session, &scan, relation->table, &view);
	while (mot_build_next(&scan, &row, &version))
	{
		MotAnalyzeDelayPoint();
		if (nsamples < targrows)
			i = nsamples++;
		else
		{
			if (toskip < 0)
				toskip = reservoir_get_next_S(&reservoir, nrows, targrows);
			if (toskip <= 0)
			{
				i = (int) (targrows * sampler_random_fract(&reservoir.randstate));
				heap_freetuple(rows[i]);
			}
			else
				i = -1;
			toskip -= 1;
		}
		if (i >= 0)
		{
			uint64		number = (uint64) nrows;

			MotRowDeform(desc, version, desc->natts, values, isnull);
			rows[i] = heap_form_tuple(desc, values, isnull);
			rows[i]->t_tableOid = RelationGetRelid(rel);
			ItemPointerSet(&rows[i]->t_self, (BlockNumber) (number >> 15), (OffsetNumber) (number & 0x7fff));
		}
		nrows += 1;
	}
	MotLooseViewRelease();

	qsort(rows, nsamples, sizeof(HeapTuple), compare_positions);

	*totalrows = nrows;
	*totaldeadrows = 0;
	ereport(elevel,
			(errmsg("\"%s\": scanned %.0f rows in memory; %d rows in sample",
					RelationGetRelationName(rel), nrows, nsamples)));
	return nsamples;
}

bool
MotAnalyzeForeignTable(Relation rel, AcquireSampleRowsFunc *func, BlockNumber *totalpages)
{
	mot_table_stat stat;
	uint64		pages;

	/* of one that is not in memory the server warns, and goes on */
	if (MotRelationUnreadable(rel))
		return false;
	mot_table_stats(MotRelationGet(rel)->table, &stat);
	pages = (stat.row_bytes + BLCKSZ - 1) / BLCKSZ;
	*totalpages = (BlockNumber) Max(1, Min(pages, (uint64) MaxBlockNumber));
	*func = acquire_sample;
	return true;
}

void
MotExecForeignTruncate(List *rels, DropBehavior behavior, bool restart_seqs)
{
	foreach_ptr(RelationData, rel, rels)
		MotStorageTruncate(rel);
}
