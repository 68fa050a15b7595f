/*-------------------------------------------------------------------------
 *
 * apply.c
 *	  One transaction's redo, applied to the engine.
 *
 * A transaction of the log becomes one transaction of the engine, in the
 * applier's own session, so that readers of a standby see all of it or
 * nothing.  Rows are found by the key of their identity index, or by content
 * (target.c), changed and indexed as relation/writer.c does it, in the order
 * in which the log has the operations.
 *
 * Definitions: a new table is filled by loading, out of everybody's sight, and
 * takes its place in the directory when the transaction commits; what it
 * replaces, what was dropped, and indexes made or dropped change then, too.
 * So up to there nothing has happened that an error would have to undo,
 * except in the engine's transaction and in objects that nobody knows of.
 *
 * Something that does not fit (a row that is not there, a key that is there
 * twice, a table that nobody has heard of) means that what was loaded and the
 * log do not belong together.  That is reported, naming the position and the
 * table, and recovery ends; unless mot.ignore_damaged says that such a table
 * is to be given up, and the rest of the server to be started.
 *
 * When memory is full, the transaction is undone and tried once more after
 * what is owed has been freed, then after readers have let go, and then without
 * the largest table, which is left out (leftout.c): of such a table
 * operations are not applied but kept.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/compat.h"
#include "miscadmin.h"
#include "postmaster/startup.h"
#include "utils/memutils.h"
#include "wal/leftout.h"
#include "wal/replay.h"
#include "xact/xact.h"

/* operations between two looks for an interrupt */
#define BATCH 1024

/* what is being applied */
typedef struct Apply
{
	mot_session *session;
	mot_view	view;
	XLogRecPtr	lsn;
	MotTarget  *target;			/* of the operations that come */
	bool		definitions;	/* some definition changes */
	bool		full;			/* the engine's memory is */
	bool		aborted;
	MemoryContext row_cxt;		/* reset after each operation */
	char	   *row;			/* an updated row is put together here */
	size_t		row_size;
	uint64		operations;
} Apply;

static Apply apply;

static bool try_apply(const char *ops, size_t len, XLogRecPtr lsn, TransactionId xid);
static void apply_operations(const char *ops, size_t len);
static void apply_one(const MotOpData *op, const char *raw, size_t len);
static void apply_insert(const MotOpData *op);
static void load_row(const MotOpData *op);
static void apply_update(const MotOpData *op);
static void apply_delete(const MotOpData *op);
static void apply_create(const MotOpData *op);
static void apply_define(const MotOpData *op);
static void apply_index(const MotOpData *op);
static void apply_drop(void);
static void drop_database(Oid dbid);
static void add_keys(mot_row *row, unsigned host_bits, const void *bytes, size_t size);
static void define_target(MotTarget *target);
static void stamp_target(MotTarget *target);
static void change_target(MotTarget *target);
static void note_target(MotTarget *target);
static void undo_target(MotTarget *target);
static void heal_target(MotTarget *target);
static void look_for_interrupts(void);
static void damage(const char *fmt,...) pg_attribute_printf(1, 2);

bool
MotApply(const char *ops, size_t len, XLogRecPtr lsn, TransactionId xid)
{
	bool		again = false;

	MotRoomBefore();
	while (!try_apply(ops, len, lsn, xid))
	{
		/*
		 * What was owed could not all be freed while the transaction had its
		 * snapshot.
		 */
		if (again || !MotRoomReclaim())
			return false;
		again = true;
	}
	MotRoomWasThere();
	return true;
}

/* false: memory is full, and nothing was done */
static bool
try_apply(const char *ops, size_t len, XLogRecPtr lsn, TransactionId xid)
{
	mot_session *session = MotSession();
	mot_ts		held = mot_snapshot_held(session);
	MemoryContext cxt;
	MemoryContext oldcxt;
	volatile bool done = true;
	uint32		holdoff = InterruptHoldoffCount;

	cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT replay", ALLOCSET_DEFAULT_SIZES);
	oldcxt = MemoryContextSwitchTo(cxt);

	memset(&apply, 0, sizeof(apply));
	apply.session = session;
	apply.lsn = lsn;
	MotRoomTry();
	apply.row_cxt = AllocSetContextCreate(cxt, "MOT replayed row", ALLOCSET_DEFAULT_SIZES);
	apply.view.snapshot = mot_snapshot_take(session);
	apply.view.command = MOT_COMMAND_MAX;
	mot_txn_begin(session, MOT_READ_COMMITTED, apply.view.snapshot, MotMyVirtualXact());

	mot_session_use_reserve(session, true);
	PG_TRY();
	{
		apply_operations(ops, len);
		MotTargetsEach(define_target);
		MotTargetsEach(MotRoomKeepRest);
	}
	PG_CATCH();
	{
		if (apply.full)
			MotTargetsEach(note_target);
		mot_txn_abort(session);
		apply.aborted = true;
		MotTargetsEach(undo_target);
		MotTargetsForget();
		mot_session_use_reserve(session, false);
		mot_snapshot_hold(session, held);
		if (geterrcode() != ERRCODE_OUT_OF_MEMORY || !apply.full)
			PG_RE_THROW();
		MemoryContextSwitchTo(cxt);
		FlushErrorState();

		/* MotApplyLock is held still, which an error has forgotten */
		InterruptHoldoffCount = holdoff;
		done = false;
	}
	PG_END_TRY();

	if (!done)
	{
		MemoryContextSwitchTo(oldcxt);
		MemoryContextDelete(cxt);
		return false;
	}

	/* from here on nothing can fail */
	if (apply.definitions)
	{
		LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
		MotTargetsEach(stamp_target);
	}
	if (TransactionIdIsValid(xid))
	{
		MotMixedApplyBegin(xid);
		MotMixedApplyEnd(mot_txn_commit(session));
	}
	else
		(void) mot_txn_commit(session);
	if (apply.definitions)
	{
		MotTargetsEach(change_target);
		LWLockRelease(MotDirectoryLock);
		MotTargetsEach(heal_target);
	}
	MotTargetsEach(MotRoomKeepDone);
	MotTargetsForget();
	mot_session_use_reserve(session, false);
	mot_snapshot_hold(session, held);

	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
	return true;
}

static void
apply_operations(const char *ops, size_t len)
{
	const char *p = ops;
	const char *end = ops + len;
	const char *error = NULL;
	MotOpData	op;

	MemoryContextSwitchTo(apply.row_cxt);
	for (;;)
	{
		const char *raw = p;

		if (!MotRecordNext(&p, end, &op, &error))
			break;
		apply_one(&op, raw, p - raw);
		MemoryContextReset(apply.row_cxt);
		if (++apply.operations % BATCH == 0)
			look_for_interrupts();
	}
	if (error != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("redo of memory-optimized tables at %X/%X is damaged: %s",
						LSN_FORMAT_ARGS(apply.lsn), error),
				 errhint("Restore the server from a backup.")));
}

/* recovery of a large transaction takes its time */
static void
look_for_interrupts(void)
{
	if (AmStartupProcess())
		HandleStartupProcInterrupts();
	else
		MotCheckpointLook();
}

static void
apply_one(const MotOpData *op, const char *raw, size_t len)
{
	switch (op->op)
	{
		case MOT_OP_TABLE:
			apply.target = MotTargetGet(op->dbid, op->oid);
			return;
		case MOT_OP_DROP_DATABASE:
			drop_database(op->dbid);
			return;
		default:
			break;
	}

	if (apply.target == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("redo of memory-optimized tables at %X/%X is damaged: no table is named",
						LSN_FORMAT_ARGS(apply.lsn))));

	switch (op->op)
	{
		case MOT_OP_CREATE:
			MOT_FAULT("replay-create");
			apply_create(op);
			return;
		case MOT_OP_DROP:
			MOT_FAULT("replay-drop");
			apply_drop();
			return;
		default:
			break;
	}

	if (apply.target->damaged)
		return;
	if (apply.target->left_out)
	{
		/* indexes are made with the table */
		if (apply.target->emptied && op->op == MOT_OP_INDEX)
			return;
		MotRoomKeep(apply.target, MemoryContextGetParent(apply.row_cxt), raw, len);
		return;
	}
	if (apply.target->table == NULL)
	{
		damage("there is no such table");
		return;
	}
	switch (op->op)
	{
		case MOT_OP_DEFINE:
			MOT_FAULT("replay-define");
			apply_define(op);
			break;
		case MOT_OP_INDEX:
			MOT_FAULT("replay-index");
			apply_index(op);
			break;
		case MOT_OP_INSERT:
			MOT_FAULT("replay-insert");
			if (apply.target->created)
				load_row(op);
			else
				apply_insert(op);
			break;
		case MOT_OP_UPDATE:
			MOT_FAULT("replay-update");
			apply_update(op);
			break;
		case MOT_OP_DELETE:
			MOT_FAULT("replay-delete");
			apply_delete(op);
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("redo of memory-optimized tables at %X/%X is damaged: unexpected operation %d",
							LSN_FORMAT_ARGS(apply.lsn), (int) op->op)));
	}
}

/* --------------------------------------------------------------- failures */

void
MotApplyRaiseMemory(mot_status status, XLogRecPtr lsn, const char *table)
{
	if (status == MOT_NO_PRIVATE_MEMORY)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Redo of memory-optimized tables at %X/%X could not be applied.",
						   LSN_FORMAT_ARGS(lsn))));
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("memory for memory-optimized tables is full"),
			 table != NULL ?
			 errdetail("Redo at %X/%X for table \"%s\" could not be applied.",
					   LSN_FORMAT_ARGS(lsn), table) :
			 errdetail("Redo at %X/%X could not be applied.", LSN_FORMAT_ARGS(lsn)),
			 errhint("Increase mot.max_memory, on a standby to at least what the primary has, and start the server again.")));
}

/* The table of the current operation and the log do not fit together. */
static void
damage(const char *fmt,...)
{
	char		why[256];
	va_list		args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);

	if (!mot_ignore_damaged)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("redo at %X/%X does not fit memory-optimized table \"%s\": %s",
						LSN_FORMAT_ARGS(apply.lsn), MotTargetName(apply.target), why),
				 errdetail("The table has number %u in database %u.",
						   apply.target->key.relid, apply.target->key.dbid),
				 errhint("Restore the server from a backup, or set mot.ignore_damaged = on to start it without this table.")));

	ereport(WARNING,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("redo at %X/%X does not fit memory-optimized table \"%s\": %s",
					LSN_FORMAT_ARGS(apply.lsn), MotTargetName(apply.target), why),
			 errdetail("The table is given up, as mot.ignore_damaged asks for.")));
	apply.target->damaged = true;
	MotStateDamage(apply.target->key.dbid, apply.target->key.relid,
				   psprintf("redo at %X/%X does not fit: %s", LSN_FORMAT_ARGS(apply.lsn), why));
}

/* Did the engine do it?  Otherwise there is an error, or the table is damaged. */
static bool
check(mot_status status)
{
	switch (status)
	{
		case MOT_OK:
			return true;
		case MOT_NO_MEMORY:
			apply.full = true;
			/* FALLTHROUGH */
		case MOT_NO_PRIVATE_MEMORY:
			MotApplyRaiseMemory(status, apply.lsn, MotTargetName(apply.target));
			break;
		case MOT_TABLE_FULL:
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("memory-optimized table \"%s\" is full", MotTargetName(apply.target)),
					 errdetail("Redo at %X/%X could not be applied.", LSN_FORMAT_ARGS(apply.lsn))));
			break;
		case MOT_DUPLICATE:
			damage("a key is there already");
			break;
		case MOT_DELETED:
		case MOT_NOT_FOUND:
			damage("a row is not there");
			break;
		default:
			damage("%s", mot_status_name(status));
			break;
	}
	return false;
}

/* ------------------------------------------------------------------- rows */

/*
 * Finds the row that an operation is about and gets the right to change it.
 * false: damage, reported.
 */
static bool
find_row(const MotOpData *op, mot_row **row, const mot_version **version)
{
	MotTarget  *target = apply.target;
	mot_status	status;

	if (op->key != NULL)
	{
		int			identity = target->def->identity;

		if (identity < 0 || target->indexes[identity].handle.index == NULL)
		{
			damage("the index by which rows are told apart is not there");
			return false;
		}
		status = mot_index_get(apply.session, &apply.view, &target->indexes[identity].handle,
							   op->key, op->key_len, NULL, row, version);
		if (!check(status))
			return false;
	}
	else
	{
		MotContentPrepare(apply.session, target);
		if (!MotContentFind(apply.session, &apply.view, target, op->old_host_bits,
							op->old_bytes, op->old_len, row, version))
		{
			damage("a row is not there");
			return false;
		}
	}
	return check(mot_row_lock(apply.session, &apply.view, target->table, *row, *version, true,
							  version));
}

static void
apply_insert(const MotOpData *op)
{
	mot_row    *row;
	void	   *data;

	if (!check(mot_row_insert(apply.session, apply.target->table, 0, op->host_bits, op->len,
							  &row, &data)))
		return;
	memcpy(data, op->bytes, op->len);
	add_keys(row, op->host_bits, data, op->len);
}

/* The row's entry in index i, by its new values.  false: damage, reported. */
static bool
add_entry(mot_row *row, int i)
{
	MotTarget  *target = apply.target;
	unsigned	flags = MotTargetNewKey(target, i);
	mot_row    *other;

	return check(mot_index_add(apply.session, &target->indexes[i].handle, row,
							   target->new_key.data, target->new_key.len, flags, &other));
}

/* likewise, takes out the one by its old values */
static bool
drop_entry(mot_row *row, int i)
{
	MotTarget  *target = apply.target;
	unsigned	flags = MotTargetOldKey(target, i);

	return check(mot_index_drop_entry(apply.session, &target->indexes[i].handle, row,
									  target->old_key.data, target->old_key.len, flags));
}

/* the keys of a new row; damage takes the row back */
static void
add_keys(mot_row *row, unsigned host_bits, const void *bytes, size_t size)
{
	MotTarget  *target = apply.target;

	if (target->nindexes > 0)
		MotTargetDeform(target, host_bits, bytes, target->new_values, target->new_isnull);
	for (int i = 0; i < target->nindexes; i++)
	{
		if (target->indexes[i].handle.index != NULL && !add_entry(row, i))
			return;
	}
	MotContentAdd(apply.session, target, row, host_bits, bytes, size);
}

/* a row of a table that nobody else knows of yet */
static void
load_row(const MotOpData *op)
{
	MotTarget  *target = apply.target;
	mot_row    *row;
	mot_row    *other;
	void	   *data;

	if (!check(mot_load_row(apply.session, target->table, op->host_bits, op->len, &row, &data)))
		return;
	memcpy(data, op->bytes, op->len);

	if (target->nindexes > 0)
		MotTargetDeform(target, op->host_bits, data, target->new_values, target->new_isnull);
	for (int i = 0; i < target->nindexes; i++)
	{
		unsigned	flags;

		if (target->indexes[i].handle.index == NULL)
			continue;
		flags = MotTargetNewKey(target, i);
		if (!check(mot_load_key(apply.session, &target->indexes[i].handle, row,
								target->new_key.data, target->new_key.len,
								flags, &other)))
			return;
	}
}

static void
apply_update(const MotOpData *op)
{
	MotTarget  *target = apply.target;
	mot_row    *row;
	const mot_version *old;
	unsigned	old_host_bits;
	size_t		old_size;
	const void *old_bytes;
	uint64		changed = 0;	/* one bit for each index */
	void	   *data;

	if (!find_row(op, &row, &old))
		return;
	old_bytes = mot_version_data(old);
	old_host_bits = mot_version_host_bits(old);
	old_size = MotRowDataSize(target->def->desc, old);

	if (op->new_len > apply.row_size)
	{
		MemoryContext cxt = MemoryContextGetParent(apply.row_cxt);

		if (apply.row != NULL)
			pfree(apply.row);
		apply.row_size = Max(2 * apply.row_size, MAXALIGN(op->new_len));
		apply.row = MemoryContextAllocHuge(cxt, apply.row_size);
	}
	if (!MotRecordPatch(op, old_bytes, old_size, apply.row))
	{
		damage("a changed row does not go together with the row that is there");
		return;
	}

	if (target->nindexes > 0)
	{
		MotTargetDeform(target, old_host_bits, old_bytes, target->old_values, target->old_isnull);
		MotTargetDeform(target, op->host_bits, apply.row, target->new_values, target->new_isnull);
		for (int i = 0; i < target->nindexes; i++)
			if (target->indexes[i].handle.index != NULL && MotTargetKeysDiffer(target, i))
				changed |= UINT64CONST(1) << i;
	}

	if (!check(mot_row_update(apply.session, target->table, row, 0, op->host_bits, op->new_len,
							  changed != 0, &data)))
		return;
	memcpy(data, apply.row, op->new_len);

	for (int i = 0; changed != 0; i++, changed >>= 1)
	{
		if ((changed & 1) != 0 && (!drop_entry(row, i) || !add_entry(row, i)))
			return;
	}
	MotContentDrop(apply.session, target, row, old_host_bits, old_bytes, old_size);
	MotContentAdd(apply.session, target, row, op->host_bits, data, op->new_len);
}

static void
apply_delete(const MotOpData *op)
{
	MotTarget  *target = apply.target;
	mot_row    *row;
	const mot_version *old;

	if (!find_row(op, &row, &old))
		return;
	if (!check(mot_row_delete(apply.session, target->table, row, 0)))
		return;
	MotContentDrop(apply.session, target, row, mot_version_host_bits(old),
				   mot_version_data(old), MotRowDataSize(target->def->desc, old));
}

/* ------------------------------------------------------------- definitions */

/* lists of a target live as long as the transaction */
static List *
append(List *list, void *item)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(MemoryContextGetParent(apply.row_cxt));

	list = lappend(list, item);
	MemoryContextSwitchTo(oldcxt);
	return list;
}

static void
apply_create(const MotOpData *op)
{
	MotTarget  *target = apply.target;
	mot_table  *table;

	apply.definitions = true;
	undo_target(target);		/* made and made again in one transaction */
	target->damaged = false;
	target->dropped = false;
	target->redo = NULL;
	target->left_out = target->emptied = MotRoomNotToMake(&target->key);
	if (target->emptied)
	{
		target->files = MemoryContextAllocZero(MemoryContextGetParent(apply.row_cxt), sizeof(MotLeftOut));
		MotLeftOutEmpty(target->files, target->key.dbid, target->key.relid, op->bytes, op->len);
		return;
	}
	MotTargetDefine(target, op->bytes, op->len);
	target->wanted = true;
	if (MOT_FAULT_SKIPS("standby-create-full"))
		(void) check(MOT_NO_MEMORY);
	if (!check(MotDefinitionMakeTable(apply.session, target->def, target->bytes, target->len, &table)))
		return;
	target->table = table;
	target->created = true;
	MotTargetResolve(target);
}

static void
apply_drop(void)
{
	MotTarget  *target = apply.target;

	apply.definitions = true;
	undo_target(target);
	target->table = NULL;
	target->dropped = true;
	target->damaged = target->left_out = target->emptied = false;
}

/*
 * Rows that follow are already of the new definition; but its new indexes
 * are built at the end.  So is an index whose keys look otherwise now, as
 * when a column has become NOT NULL: its number is the same.
 */
static void
apply_define(const MotOpData *op)
{
	MotTarget  *target = apply.target;
	size_t		len;
	const void *bytes = mot_table_definition(target->table, &len);
	MotDefinition *old = MotDefinitionDecode(bytes, len, apply.row_cxt);

	apply.definitions = true;
	MotTargetDefine(target, op->bytes, op->len);
	MotTargetResolve(target);
	target->defined = true;

	for (int i = 0; i < old->nindexes; i++)
		for (int j = 0; j < target->nindexes; j++)
			if (old->indexes[i].indexoid == target->def->indexes[j].indexoid &&
				!MotDefinitionSameIndex(&old->indexes[i], &target->def->indexes[j]))
				target->indexes[j].handle.index = NULL;

	for (unsigned i = 0; i < mot_table_index_count(target->table); i++)
	{
		mot_index  *index = mot_table_index_at(target->table, i);
		bool		stays = false;

		if (index == NULL)
			continue;
		for (int j = 0; j < target->nindexes; j++)
			if (target->indexes[j].handle.index == index)
				stays = true;
		if (!stays)
			target->old_indexes = append(target->old_indexes, index);
	}
}

static bool
look_while_building(void *arg)
{
	look_for_interrupts();
	return false;
}

/* Build an index of the definition; if there is one with this number, it is replaced. */
static void
apply_index(const MotOpData *op)
{
	MotTarget  *target = apply.target;
	mot_index  *index;
	mot_build	build;
	mot_status	status;
	int			i;

	for (i = 0; i < target->nindexes; i++)
		if (target->def->indexes[i].indexoid == op->oid)
			break;
	if (i == target->nindexes)
	{
		damage("index %u is not in the definition", op->oid);
		return;
	}
	if (target->created)
		return;					/* made with the table */

	apply.definitions = true;
	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	status = MotDefinitionMakeIndex(apply.session, target->table, &target->def->indexes[i], &index);
	LWLockRelease(MotDirectoryLock);
	if (!check(status))
		return;

	/* what sorting takes is private memory, as much as the primary's took */
	mot_build_begin(apply.session, &build, index);
	status = MotFillIndex(&build, index, target->def, i, false, look_while_building, NULL);
	if (status == MOT_OK)
		mot_build_end(&build);
	else
	{
		mot_index_drop(apply.session, index);
		(void) check(status);
		return;
	}

	if (target->indexes[i].handle.index != NULL)
		target->old_indexes = append(target->old_indexes, target->indexes[i].handle.index);
	target->new_indexes = append(target->new_indexes, index);
}

static void
drop_database(Oid dbid)
{
	int			n;
	mot_table **tables = MotTables(dbid, &n);
	MotLeftOut *left;
	int			nleft;

	for (int i = 0; i < n; i++)
	{
		apply.target = MotTargetGet(dbid, mot_table_host_id(tables[i]));
		apply_drop();
	}
	nleft = MotLeftOutList(&left);
	for (int i = 0; i < nleft; i++)
	{
		if (left[i].dbid != dbid)
			continue;
		apply.target = MotTargetGet(dbid, left[i].relid);
		apply_drop();
	}
	apply.target = NULL;
}

/* -------------------------------------------------------------------- end */

/* before commit: the last thing that can fail */
static void
define_target(MotTarget *target)
{
	if (target->defined && !target->damaged && !target->created && !target->dropped)
	{
		mot_status	status = mot_definition_make(apply.session, target->bytes, target->len,
												 &target->definition);

		if (status != MOT_OK)
		{
			apply.full = status == MOT_NO_MEMORY;
			MotApplyRaiseMemory(status, apply.lsn, MotTargetName(target));
		}
	}
}

/*
 * Rows loaded are as old as this commit: drawn before the commit's own number,
 * and the table cannot be found yet.
 */
static void
stamp_target(MotTarget *target)
{
	mot_table_stat stat;
	mot_ts		ts;

	if (!target->created || target->damaged)
		return;
	ts = mot_load_stamp(apply.session, target->table);

	/*
	 * An ordinary table's rows may have been there before, in other storage:
	 * then older snapshots are refused, as where they were stored anew.
	 */
	mot_table_stats(target->table, &stat);
	if (target->def->numbered && stat.rows > 0)
		mot_table_set_born(target->table, ts, true);
}

/* The commit is done; now definitions follow. */
static void
change_target(MotTarget *target)
{
	ListCell   *lc;

	if (target->damaged)
	{
		undo_target(target);
		return;
	}
	foreach(lc, target->old_indexes)
		mot_index_drop(apply.session, lfirst(lc));
	foreach(lc, target->new_indexes)
	{
		/* rows that the same transaction has changed are in it as of now */
		mot_index_set_valid_from(lfirst(lc), mot_engine_clock(MotEngine));
		mot_index_attach(lfirst(lc));
	}
	if (target->definition != NULL)
	{
		mot_table_put_definition(apply.session, target->table, target->definition);
		mot_table_set_owner(target->table, target->def->owner, target->def->numbered);
		target->definition = NULL;
	}

	if (target->emptied)
	{
		mot_table  *old = mot_table_find(MotEngine, target->key.dbid, target->key.relid);

		if (old != NULL)
			mot_table_drop(apply.session, old);
	}
	else if (target->created)
	{
		mot_table  *old = mot_table_publish(MotEngine, target->table);

		if (old != NULL)
			mot_table_drop(apply.session, old);
	}
	else if (target->dropped)
	{
		mot_table  *old = mot_table_find(MotEngine, target->key.dbid, target->key.relid);

		if (old != NULL)
			mot_table_drop(apply.session, old);
	}
}

/* What is being undone for lack of memory may be the reason, also a table that could not even be made. */
static void
note_target(MotTarget *target)
{
	if (target->table != NULL || target->wanted)
		MotRoomNote(&target->key, target->table, target->created || target->table == NULL);
}

/* What was made for it and nobody has seen goes. */
static void
undo_target(MotTarget *target)
{
	ListCell   *lc;

	if (target->created && apply.aborted)
		mot_table_discard(apply.session, target->table);
	else if (target->created)
		mot_table_drop(apply.session, target->table);
	else
		foreach(lc, target->new_indexes)
			mot_index_drop(apply.session, lfirst(lc));
	if (target->definition != NULL)
		mot_definition_discard(apply.session, target->definition);
	target->definition = NULL;
	target->created = target->wanted = false;
	target->table = NULL;
	target->new_indexes = target->old_indexes = NIL;
	MotContentLeave(target, true);
}

static void
heal_target(MotTarget *target)
{
	if ((target->created || target->dropped || target->emptied) && !target->damaged)
	{
		MotStateHeal(target->key.dbid, target->key.relid);
		MotLeftOutForget(target->key.dbid, target->key.relid);
	}
}
