/*-------------------------------------------------------------------------
 *
 * copy.c
 *	  COPY FROM in batches, as the server does it for heap tables.
 *
 * The server's CopyFrom hands rows to a wrapper one at a time.  All that it
 * does besides (rights, options, parsing, defaults, WHERE, triggers, progress,
 * counting) is as we want it, and so is that every other module's hook sees
 * the statement; so the rows are collected here, below it.  They are written
 * where heap's multi-insert buffer would be: after as many rows or bytes of
 * input, and never where somebody could notice that rows are missing (the
 * conditions are those of CopyFrom).  So errors come in the same order and
 * with the same context as for a heap table.
 *
 * One thing differs: what is left over at the end is written when the server
 * lets go of the table, and that is after it ran AFTER triggers.  A table that
 * has some is written row by row.
 *
 * The server keeps what we have to know of the COPY behind its error context,
 * which is on top of the stack when it calls us.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/copy.h"
#include "commands/copyfrom_internal.h"
#include "compat/calls.h"
#include "fdw/fdw.h"
#include "optimizer/optimizer.h"

typedef struct MotCopyIn
{
	CopyFromState cstate;
	MotBatch   *batch;
	int			max_rows;
	size_t		bytes;			/* in the batch */
} MotCopyIn;

static void write_batch(MotCopyIn *copy);

/*
 * Default expressions and WHERE could look at the table and miss rows; so
 * could BEFORE triggers.
 */
static bool
can_batch(CopyFromState cstate, ResultRelInfo *rinfo)
{
	TriggerDesc *triggers = rinfo->ri_TrigDesc;

	if (triggers != NULL &&
		(triggers->trig_insert_before_row || triggers->trig_insert_after_row ||
		 triggers->trig_insert_after_statement || triggers->trig_insert_new_table))
		return false;
	return !cstate->volatile_defexprs && !contain_volatile_functions(cstate->whereClause);
}

/*
 * With the first row.  COPY FREEZE has a batch at any rate, of one row if need
 * be, as this is the way to load.
 */
void
MotCopyBegin(MotModify *modify, ResultRelInfo *rinfo)
{
	CopyFromState cstate = MotRunningCopy();
	bool		load = MotLoadRelid == modify->relation->relid;
	bool		many;
	MemoryContext oldcxt;

	modify->copy_decided = true;
	if (cstate == NULL || cstate->rel != rinfo->ri_RelationDesc)
		return;
	many = can_batch(cstate, rinfo);
	if (!many && !load)
		return;

	oldcxt = MemoryContextSwitchTo(GetMemoryChunkContext(modify));
	modify->copy = palloc0(sizeof(MotCopyIn));
	modify->copy->cstate = cstate;
	modify->copy->batch = MotBatchBegin(modify->writer, load ? MOT_BATCH_LOAD : MOT_BATCH_INSERT,
										&cstate->cur_lineno);
	modify->copy->max_rows = many ? MOT_BATCH_ROWS : 1;
	MemoryContextSwitchTo(oldcxt);
}

void
MotCopyRow(MotModify *modify, TupleTableSlot *slot)
{
	MotCopyIn  *copy = modify->copy;
	size_t		size = MotBatchAdd(copy->batch, slot->tts_values, slot->tts_isnull,
								   copy->cstate->cur_lineno);

	/* binary input has no lines; the server counts nothing then */
	copy->bytes += MotCopyIsBinary(copy->cstate->opts) ? size : copy->cstate->line_buf.len;
	if (MotBatchRows(copy->batch) >= copy->max_rows || copy->bytes >= MOT_BATCH_BYTES)
		write_batch(copy);
}

/* errors name the line of the row that is being written */
static void
write_batch(MotCopyIn *copy)
{
	CopyFromState cstate = copy->cstate;
	uint64		lineno = cstate->cur_lineno;
	bool		line_buf_valid = cstate->line_buf_valid;

	/* of several lines, this has only the last */
	if (copy->max_rows > 1)
		cstate->line_buf_valid = false;
	(void) MotBatchWrite(copy->batch, NULL);
	copy->bytes = 0;
	cstate->line_buf_valid = line_buf_valid;
	cstate->cur_lineno = lineno;
}

/* the rest; the server has taken its error context away already */
void
MotCopyEnd(MotModify *modify)
{
	ErrorContextCallback context;

	context.callback = CopyFromErrorCallback;
	context.arg = modify->copy->cstate;
	context.previous = error_context_stack;
	error_context_stack = &context;
	write_batch(modify->copy);
	error_context_stack = context.previous;

	MotBatchEnd(modify->copy->batch);
	modify->copy = NULL;
}
