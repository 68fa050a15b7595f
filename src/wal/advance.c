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
 * keys as those of loaded rows are (loadindex.c).
 *
 * Something that does not fit means that what was loaded and the log do not belong
 * together: an error, as in apply.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "wal/apply.h"
#include "wal/checkpoint.h"
#include "wal/replay.h"
#include "wal/sort.h"
#include "xact/xact.h"

/* operations, or rows, between two looks */
#define BATCH 1024

typedef struct Advance
{
	mot_session *session;
	mot_view	view;
	MotTarget	target;
	XLogRecPtr	lsn;			/* of the transaction at hand */
	XLogRecPtr	made_by;		/* of that which made the table */
	MemoryContext cxt;
	MemoryContext row_cxt;		/* reset after each operation */
	char	   *row;			/* an updated row is put together here */
	size_t		row_size;
	uint64		operations;
	bool		full;			/* there is no memory for the table */
	bool		(*look) (void *arg);
	void	   *arg;
} Advance;

static void advance_run(void *arg, XLogRecPtr lsn, const char *ops, size_t len);
static void advance_one(Advance *a, const MotOpData *op);
static void create(Advance *a, const MotOpData *op);
static void define(Advance *a, const MotOpData *op);
static void build_index(Advance *a, Oid indexoid);
static void insert(Advance *a, const MotOpData *op);
static void update(Advance *a, const MotOpData *op);
static void move_row(Advance *a, mot_row *row, const MotOpData *op);
static void delete(Advance *a, const MotOpData *op);
static void look_at(Advance *a);
static void misfit(Advance *a, const char *why) pg_attribute_noreturn();

bool
MotAdvance(Oid dbid, Oid relid, mot_table **table,
		   void (*read) (void *arg, MotAdvanceVisit visit, void *advance),
		   bool (*look) (void *arg), void *arg)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT table in recovery",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt = MemoryContextSwitchTo(cxt);
	Advance    *a = palloc0(sizeof(Advance));
	mot_session *session = MotSession();
	uint32		holdoff = InterruptHoldoffCount;
	bool		done;

	a->session = session;
	a->view.snapshot = mot_snapshot_held(session);
	a->view.command = MOT_COMMAND_MAX;
	a->cxt = cxt;
	a->row_cxt = AllocSetContextCreate(cxt, "MOT row in recovery", ALLOCSET_DEFAULT_SIZES);
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
		if (!a->full)
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
	done = !a->full;
	*table = a->target.table;
	MotContentLeave(&a->target, true);
	MotTargetFree(&a->target);
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
	return done;
}

static void
advance_run(void *arg, XLogRecPtr lsn, const char *ops, size_t len)
{
	Advance    *a = arg;
	const char *p = ops;
	const char *error = NULL;
	MotOpData	op;

	if (lsn != a->lsn && a->target.def != NULL)
		MotTargetResolve(&a->target);
	a->lsn = lsn;

	MemoryContextSwitchTo(a->row_cxt);
	while (MotRecordNext(&p, ops + len, &op, &error))
	{
		advance_one(a, &op);
		MemoryContextReset(a->row_cxt);
		if (++a->operations % BATCH == 0)
			look_at(a);
	}
	MemoryContextSwitchTo(a->cxt);
	if (error != NULL)
		misfit(a, error);
}

static void
advance_one(Advance *a, const MotOpData *op)
{
	if (op->op == MOT_OP_CREATE)
	{
		MOT_FAULT("replay-create");
		create(a, op);
		return;
	}
	if (a->target.table == NULL)
		misfit(a, "there is no such table");
	switch (op->op)
	{
		case MOT_OP_DEFINE:
			MOT_FAULT("replay-define");
			define(a, op);
			break;
		case MOT_OP_INDEX:
			MOT_FAULT("replay-index");
			/* unless made with the table */
			if (a->made_by == InvalidXLogRecPtr || a->made_by != a->lsn)
				build_index(a, op->oid);
			break;
		case MOT_OP_INSERT:
			MOT_FAULT("replay-insert");
			insert(a, op);
			break;
		case MOT_OP_UPDATE:
			MOT_FAULT("replay-update");
			update(a, op);
			break;
		case MOT_OP_DELETE:
			MOT_FAULT("replay-delete");
			delete(a, op);
			break;
		default:
			misfit(a, "unexpected operation");
	}
}

/* --------------------------------------------------------------- failures */

static void
check(Advance *a, mot_status status)
{
	switch (status)
	{
		case MOT_OK:
			return;
		case MOT_NO_MEMORY:
			a->full = true;
			/* FALLTHROUGH */
		case MOT_NO_PRIVATE_MEMORY:
			MotApplyRaiseMemory(status, a->lsn, MotTargetName(&a->target));
			break;
		case MOT_DUPLICATE:
			misfit(a, "a key is there already");
			break;
		case MOT_DELETED:
		case MOT_NOT_FOUND:
			misfit(a, "a row is not there");
			break;
		default:
			misfit(a, mot_status_name(status));
			break;
	}
}

static void
look_at(Advance *a)
{
	if (a->look(a->arg))
		check(a, MOT_NO_MEMORY);
}

static void
misfit(Advance *a, const char *why)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("redo at %X/%X does not fit memory-optimized table \"%s\": %s",
					LSN_FORMAT_ARGS(a->lsn), MotTargetName(&a->target), why),
			 errdetail("The table has number %u in database %u.", a->target.key.relid, a->target.key.dbid),
			 errhint("Restore the server from a backup, or set mot.ignore_damaged = on to start it without this table.")));
}

/* ------------------------------------------------------------- definitions */

/* (What there was before was forgotten when the log was sorted.) */
static void
create(Advance *a, const MotOpData *op)
{
	if (a->target.table != NULL)
		misfit(a, "a table is made that is there already");
	MotTargetDefine(&a->target, op->bytes, op->len);
	check(a, MotDefinitionMakeTable(a->session, a->target.def, a->target.bytes, a->target.len,
									&a->target.table));
	MotTargetResolve(&a->target);
	a->made_by = a->lsn;
}

/*
 * Indexes that are not in the new definition go.  Those whose keys look
 * otherwise in it are of no use any more; they are replaced when they are built.
 */
static void
define(Advance *a, const MotOpData *op)
{
	MotTarget  *target = &a->target;
	size_t		len;
	const void *bytes = mot_table_definition(target->table, &len);
	MotDefinition *old = MotDefinitionDecode(bytes, len, a->row_cxt);
	mot_definition *definition;

	MotTargetDefine(target, op->bytes, op->len);
	MotTargetResolve(target);
	for (int i = 0; i < old->nindexes; i++)
	{
		bool		stays = false;

		for (int j = 0; j < target->nindexes; j++)
		{
			if (old->indexes[i].indexoid != target->def->indexes[j].indexoid)
				continue;
			stays = true;
			if (!MotDefinitionSameIndex(&old->indexes[i], &target->def->indexes[j]))
				target->indexes[j].handle.index = NULL;
		}
		if (!stays)
		{
			mot_index  *index = mot_table_index(target->table, old->indexes[i].indexoid);

			if (index != NULL)
				mot_index_drop(a->session, index);
		}
	}
	check(a, mot_definition_make(a->session, target->bytes, target->len, &definition));
	mot_table_put_definition(a->session, target->table, definition);
	mot_table_set_owner(target->table, target->def->owner, target->def->numbered);
}

static bool
look_while_building(void *arg)
{
	Advance    *a = arg;

	return a->look(a->arg);
}

/* An index of the definition; if there is one with this number, it is replaced. */
static void
build_index(Advance *a, Oid indexoid)
{
	MotTarget  *target = &a->target;
	mot_index  *old = mot_table_index(target->table, indexoid);
	mot_index  *index;
	mot_status	status;
	int			i;

	for (i = 0; i < target->nindexes; i++)
		if (target->def->indexes[i].indexoid == indexoid)
			break;
	if (i == target->nindexes)
		misfit(a, psprintf("index %u is not in the definition", indexoid));

	check(a, MotDefinitionMakeIndex(a->session, target->table, &target->def->indexes[i], &index));
	target->indexes[i].handle.index = index;
	status = MotLoadIndex(target->table, index, target->def, i, look_while_building, a);
	if (status != MOT_OK)
		mot_index_drop(a->session, index);
	/* not found: looking has told it to stop */
	check(a, status == MOT_NOT_FOUND ? MOT_NO_MEMORY : status);
	if (old != NULL)
		mot_index_drop(a->session, old);
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

	check(a, mot_load_key(a->session, &a->target.indexes[i].handle, row,
						  a->target.new_key.data, a->target.new_key.len, flags, &other));
}

/* Likewise, takes out the one by its old values. */
static void
drop_key(Advance *a, int i, mot_row *row)
{
	unsigned	flags = MotTargetOldKey(&a->target, i);

	mot_unload_key(a->session, &a->target.indexes[i].handle, row,
				   a->target.old_key.data, a->target.old_key.len, flags);
}

static void
find_row(Advance *a, const MotOpData *op, mot_row **row, const mot_version **version)
{
	MotTarget  *target = &a->target;

	if (op->key != NULL)
	{
		int			identity = target->def->identity;

		if (identity < 0 || target->indexes[identity].handle.index == NULL)
			misfit(a, "the index by which rows are told apart is not there");
		check(a, mot_index_get(a->session, &a->view, &target->indexes[identity].handle,
							   op->key, op->key_len, NULL, row, version));
	}
	else
	{
		MotContentPrepare(a->session, target);
		if (!MotContentFind(a->session, &a->view, target, op->old_host_bits,
							op->old_bytes, op->old_len, row, version))
			misfit(a, "a row is not there");
	}
}

static void
insert(Advance *a, const MotOpData *op)
{
	MotTarget  *target = &a->target;
	mot_row    *row;
	void	   *data;

	check(a, mot_load_row(a->session, target->table, op->host_bits, op->len, &row, &data));
	memcpy(data, op->bytes, op->len);
	if (target->nindexes > 0)
		MotTargetDeform(target, op->host_bits, data, target->new_values, target->new_isnull);
	for (int i = 0; i < target->nindexes; i++)
		if (target->indexes[i].handle.index != NULL)
			add_key(a, i, row);
	MotContentAdd(a->session, target, row, op->host_bits, data, op->len);
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

	find_row(a, op, &row, &old);
	old_host_bits = mot_version_host_bits(old);
	old_bytes = mot_version_data(old);
	old_size = MotRowDataSize(target->def->desc, old);

	if (op->new_len > a->row_size)
	{
		if (a->row != NULL)
			pfree(a->row);
		a->row_size = Max(2 * a->row_size, MAXALIGN(op->new_len));
		a->row = MemoryContextAllocHuge(a->cxt, a->row_size);
	}
	if (!MotRecordPatch(op, old_bytes, old_size, a->row))
		misfit(a, "a changed row does not go together with the row that is there");

	/* its keys, while the old bytes are there */
	MotContentDrop(a->session, target, row, old_host_bits, old_bytes, old_size);
	if (target->nindexes > 0)
	{
		MotTargetDeform(target, old_host_bits, old_bytes, target->old_values, target->old_isnull);
		MotTargetDeform(target, op->host_bits, a->row, target->new_values, target->new_isnull);
	}
	if (mot_load_change(a->session, row, old_host_bits, op->new_len, &data) != MOT_OK)
	{
		move_row(a, row, op);
		return;
	}
	for (int i = 0; i < target->nindexes; i++)
		if (target->indexes[i].handle.index != NULL && MotTargetKeysDiffer(target, i))
		{
			drop_key(a, i, row);
			add_key(a, i, row);
		}
	check(a, mot_load_change(a->session, row, op->host_bits, op->new_len, &data));
	memcpy(data, a->row, op->new_len);
	MotContentAdd(a->session, target, row, op->host_bits, data, op->new_len);
}

/* It has outgrown its place. */
static void
move_row(Advance *a, mot_row *row, const MotOpData *op)
{
	MotTarget  *target = &a->target;
	mot_row    *new;
	void	   *data;

	check(a, mot_load_row(a->session, target->table, op->host_bits, op->new_len, &new, &data));
	memcpy(data, a->row, op->new_len);
	for (int i = 0; i < target->nindexes; i++)
		if (target->indexes[i].handle.index != NULL)
		{
			drop_key(a, i, row);
			add_key(a, i, new);
		}
	mot_unload_row(a->session, target->table, row);
	MotContentAdd(a->session, target, new, op->host_bits, data, op->new_len);
}

static void
delete(Advance *a, const MotOpData *op)
{
	MotTarget  *target = &a->target;
	mot_row    *row;
	const mot_version *old;

	find_row(a, op, &row, &old);
	MotContentDrop(a->session, target, row, mot_version_host_bits(old), mot_version_data(old),
				   MotRowDataSize(target->def->desc, old));
	if (target->nindexes > 0)
		MotTargetDeform(target, mot_version_host_bits(old), mot_version_data(old),
						target->old_values, target->old_isnull);
	for (int i = 0; i < target->nindexes; i++)
		if (target->indexes[i].handle.index != NULL)
			drop_key(a, i, row);
	mot_unload_row(a->session, target->table, row);
}
