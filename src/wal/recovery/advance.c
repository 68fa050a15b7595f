/*-------------------------------------------------------------------------
 *
 * advance.c
 *	  A table that nobody can see yet, brought forward by its part of the log.
 *
 * The rows have been loaded, or there are none; the part says what has become
 * of them since (sort.c).  Nobody else knows of the table, so there is nothing to be
 * isolated and nothing to be undone: each operation changes the row where it
 * is, and its entries in the indexes.  That leaves no versions behind, so it takes
 * no more memory than the rows do, and rows are afterwards as if they had been loaded so:
 * visible to every snapshot, also to those that sessions have taken meanwhile.
 *
 * In the log the operations of a transaction stand in the order in which they are
 * to be applied; a new definition holds for those that come after it.  Indexes
 * that are new in it are built by an operation of their own, at the end, from sorted
 * keys as those of loaded rows are (MotLoadIndex).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "wal/replay/apply.h"
#include "wal/recovery/sort.h"
#include "xact/xact.h"

typedef struct Advance
{
	MotRedo		redo;
	MotTarget	target;
	XLogRecPtr	made_by;		/* of that which made the table */
	bool		(*look) (void *arg);
	void	   *arg;
} Advance;

/* (what does not fit is an error) */
static void
check(Advance *a, mot_status status)
{
	if (MOT_FAULT_SKIPS("load-redo-full"))
		status = MOT_NO_MEMORY;
	(void) MotRedoCheck(&a->redo, status);
}

static void
look_at(MotRedo *redo)
{
	Advance    *a = (Advance *) redo;

	MOT_FAULT("read-part");
	if (a->look(a->arg))
		check(a, MOT_NO_MEMORY);
}

/* ------------------------------------------------------------- definitions */

/* (What there was before was forgotten when the log was sorted.) */
static void
create(Advance *a, const MotOpData *op)
{
	if (a->target.table != NULL)
		(void) MotRedoMisfit(&a->redo, "a table is made that is there already");
	(void) MotRedoCreate(&a->redo, op);
	a->made_by = a->redo.lsn;
}

/* Indexes that are not in the new definition go. */
static void
define(Advance *a, const MotOpData *op)
{
	MotTarget  *target = &a->target;
	MotDefinition *old = MotRedoDefine(&a->redo, op);
	mot_definition *definition;

	for (int i = 0; i < old->nindexes; i++)
	{
		mot_index  *index = mot_table_index(target->table, old->indexes[i].indexoid);

		if (index != NULL && MotTargetIndexAt(target, old->indexes[i].indexoid) < 0)
			mot_index_drop(a->redo.session, index);
	}
	check(a, mot_definition_make(a->redo.session, target->bytes, target->len, &definition));
	mot_table_put_definition(a->redo.session, target->table, definition);
	mot_table_set_owner(target->table, target->def->owner, target->def->numbered);
}

/* An index of the definition; if there is one with this number, it is replaced. */
static void
build_index(Advance *a, Oid indexoid)
{
	MotTarget  *target = &a->target;
	mot_index  *old = mot_table_index(target->table, indexoid);
	mot_index  *index;
	mot_status	status;
	int			i = MotTargetIndexAt(target, indexoid);

	if (i < 0)
		(void) MotRedoMisfit(&a->redo, "index %u is not in the definition", indexoid);
	check(a, MotDefinitionMakeIndex(a->redo.session, target->table, &target->indexes[i], &index));
	MotTargetResolveIndex(target, i, index);
	status = MotLoadIndex(target->table, index, &target->indexes[i], a->look, a->arg);
	if (status != MOT_OK)
		mot_index_drop(a->redo.session, index);
	/* not found: looking has told it to stop */
	check(a, status == MOT_NOT_FOUND ? MOT_NO_MEMORY : status);
	if (old != NULL)
		mot_index_drop(a->redo.session, old);
	mot_index_attach(index);
	/* (the definition came before) */
	mot_index_described(index);
}

/* ------------------------------------------------------------------- rows */

/* The row's key in index i, by its new values. */
static void
add_key(Advance *a, int i, mot_row *row)
{
	unsigned	flags = MotTargetNewKey(&a->target, i);
	mot_row    *other;

	check(a, mot_load_key(a->redo.session, &a->target.indexes[i].handle, row,
						  a->target.new_key.data, a->target.new_key.len, flags, &other));
}

/* Likewise, takes out the one by its old values. */
static void
drop_key(Advance *a, int i, mot_row *row)
{
	unsigned	flags = MotTargetOldKey(&a->target, i);

	mot_unload_key(a->redo.session, &a->target.indexes[i].handle, row,
				   a->target.old_key.data, a->target.old_key.len, flags);
}

/* The row, as taken apart, and its keys. */
static void
take_out(Advance *a, mot_row *row)
{
	for (int i = 0; i < a->target.nindexes; i++)
		if (a->target.indexes[i].handle.index != NULL)
			drop_key(a, i, row);
	mot_unload_row(a->redo.session, a->target.table, row);
}

static void
update(Advance *a, const MotOpData *op)
{
	MotTarget  *target = &a->target;
	mot_row    *row;
	const mot_version *old;
	unsigned	old_host_bits;
	const void *old_bytes;
	size_t		old_size;
	void	   *data;

	(void) MotRedoFind(&a->redo, op, &row, &old);
	if (row == NULL)
		return;
	old_host_bits = mot_version_host_bits(old);
	old_bytes = mot_version_data(old);
	old_size = MotDefinitionRowSize(target->def, old);

	/* its keys, while the old bytes are there */
	(void) MotRedoPatch(&a->redo, op, old_host_bits, old_bytes, old_size);
	MotContentDrop(a->redo.session, target, row, old_host_bits, old_bytes, old_size);
	if (mot_load_change(a->redo.session, row, old_host_bits, op->new_len, &data) != MOT_OK)
	{
		/* it has outgrown its place */
		take_out(a, row);
		(void) MotRedoLoad(&a->redo, op->host_bits, a->redo.row, op->new_len);
		return;
	}
	for (int i = 0; i < target->nindexes; i++)
		if (target->indexes[i].handle.index != NULL && MotTargetKeysDiffer(target, i))
		{
			drop_key(a, i, row);
			add_key(a, i, row);
		}
	check(a, mot_load_change(a->redo.session, row, op->host_bits, op->new_len, &data));
	memcpy(data, a->redo.row, op->new_len);
	MotContentAdd(a->redo.session, target, row, op->host_bits, data, op->new_len);
}

static void
delete(Advance *a, const MotOpData *op)
{
	MotTarget  *target = &a->target;
	mot_row    *row;
	const mot_version *old;

	(void) MotRedoFind(&a->redo, op, &row, &old);
	MotContentDrop(a->redo.session, target, row, mot_version_host_bits(old), mot_version_data(old),
				   MotDefinitionRowSize(target->def, old));
	if (target->nindexes > 0)
		MotTargetDeform(target, mot_version_host_bits(old), mot_version_data(old),
						target->old_values, target->old_isnull);
	take_out(a, row);
}

/* -------------------------------------------------------------- a table */

static void
advance_one(MotRedo *redo, const MotOpData *op, const char *raw, size_t len)
{
	Advance    *a = (Advance *) redo;

	if (op->op == MOT_OP_CREATE)
	{
		MOT_FAULT("replay-create");
		create(a, op);
		return;
	}
	if (a->target.table == NULL)
		(void) MotRedoMisfit(redo, "there is no such table");
	switch (op->op)
	{
		case MOT_OP_DEFINE:
			MOT_FAULT("replay-define");
			define(a, op);
			break;
		case MOT_OP_INDEX:
			MOT_FAULT("replay-index");
			/* unless made with the table */
			if (a->made_by == InvalidXLogRecPtr || a->made_by != a->redo.lsn)
				build_index(a, op->oid);
			break;
		case MOT_OP_INSERT:
			MOT_FAULT("replay-insert");
			(void) MotRedoLoad(redo, op->host_bits, op->bytes, op->len);
			break;
		case MOT_OP_UPDATE:
			MOT_FAULT("replay-update");
			update(a, op);
			break;
		case MOT_OP_DELETE:
			MOT_FAULT("replay-delete");
			delete(a, op);
			break;
		case MOT_OP_LOCK:
			break;
		default:
			(void) MotRedoMisfit(redo, "unexpected operation");
	}
}

static void
advance_run(void *arg, XLogRecPtr lsn, const char *ops, size_t len)
{
	Advance    *a = arg;

	if (lsn != a->redo.lsn && a->target.def != NULL)
		MotTargetResolve(&a->target);
	a->redo.lsn = lsn;
	MotRedoEach(&a->redo, ops, len, advance_one, look_at);
}

bool
MotAdvance(Oid dbid, Oid relid, mot_table **table,
		   void (*read) (void *arg, MotAdvanceVisit visit, void *advance),
		   bool (*look) (void *arg), void *arg, bool *clash)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT table in recovery",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt = MemoryContextSwitchTo(cxt);
	Advance    *a = palloc0(sizeof(Advance));
	mot_session *session = MotSession();
	uint32		holdoff = InterruptHoldoffCount;
	bool		done;

	a->redo.session = session;
	a->redo.view.snapshot = mot_snapshot_held(session);
	a->redo.view.command = MOT_COMMAND_MAX;
	a->redo.target = &a->target;
	a->redo.cxt = cxt;
	a->redo.row_cxt = AllocSetContextCreate(cxt, "MOT row in recovery", ALLOCSET_DEFAULT_SIZES);
	a->look = look;
	a->arg = arg;
	a->target.key.dbid = dbid;
	a->target.key.relid = relid;
	a->target.table = *table;
	if (*table != NULL)
	{
		size_t		len;
		const void *bytes = mot_table_definition(*table, &len);

		MotTargetDefine(&a->target, bytes, len);
		MotTargetResolve(&a->target);
	}

	mot_session_use_reserve(session, true);
	PG_TRY();
	{
		read(arg, advance_run, a);
	}
	PG_CATCH();
	{
		if (!MotRedoClashes(&a->redo) && !a->redo.full)
		{
			mot_session_use_reserve(session, false);
			PG_RE_THROW();
		}
		MemoryContextSwitchTo(cxt);
		FlushErrorState();

		/*
		 * a lock that the caller has is held still, which an error has
		 * forgotten
		 */
		InterruptHoldoffCount = holdoff;
	}
	PG_END_TRY();
	mot_session_use_reserve(session, false);
	done = !a->redo.full && !a->redo.clash;
	*clash = a->redo.clash;
	*table = a->target.table;
	MotContentLeave(&a->target, true);
	MotTargetFree(&a->target);
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
	return done;
}
