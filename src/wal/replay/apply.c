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
#include "wal/replay/leftout.h"
#include "wal/replay/replay.h"
#include "xact/xact.h"

typedef struct GivenUp
{
	MotTargetKey key;
	uint64		serial;
} GivenUp;

/* what is being applied */
static MotRedo redo;
static bool definitions;		/* some definition changes */
static bool aborted;
static List *databases;			/* that are dropped */
static List *given_up = NIL;	/* tables, for damage */
static bool restoring;			/* a prepared transaction, which goes on */
static void *restored;			/* ... the storage that it has made or dropped */

static bool try_apply(const char *ops, size_t len, XLogRecPtr lsn, TransactionId xid);
static bool apply_all(mot_session *session, mot_ts held, const char *ops, size_t len, XLogRecPtr lsn);
static void apply_one(MotRedo *r, const MotOpData *op, const char *raw, size_t len);
static void apply_insert(const MotOpData *op);
static void apply_update(const MotOpData *op);
static void apply_delete(const MotOpData *op);
static void apply_lock(const MotOpData *op);
static void apply_create(const MotOpData *op);
static void apply_define(const MotOpData *op);
static void apply_index(const MotOpData *op);
static void apply_drop(void);
static void drop_database(Oid dbid);
static void add_keys(mot_row *row, unsigned host_bits, const void *bytes, size_t size);
static void define_target(MotTarget *target);
static void restore_target(MotTarget *target);
static void stamp_target(MotTarget *target);
static void change_target(MotTarget *target);
static void give_up_target(MotTarget *target);
static void tell_target(MotTarget *target);
static void note_target(MotTarget *target);
static void undo_target(MotTarget *target);
static void heal_target(MotTarget *target);
static void look_for_interrupts(MotRedo *r);

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

/*
 * A prepared transaction's changes, in a session of its own.  false: there is no room for them, or
 * for a table that they are of.  *storage: what it has made and dropped, for who ends it.
 */
bool
MotApplyAgain(mot_session *session, const char *ops, size_t len, XLogRecPtr lsn, void **storage)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT prepared transaction", ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt = MemoryContextSwitchTo(cxt);
	bool		done;

	restoring = true;
	restored = NULL;
	done = apply_all(session, MOT_TS_NONE, ops, len, lsn);
	restoring = false;
	if (done)
	{
		MotTargetsEach(tell_target);
		MotStorageRestored(restored);
		*storage = restored;
		MotTargetsForget();
		mot_session_use_reserve(session, false);
		mot_snapshot_hold(session, MOT_TS_NONE);
	}
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
	return done;
}

/*
 * The operations, in a transaction of that session, which goes on.  false: memory is full, and
 * nothing was done.
 */
static bool
apply_all(mot_session *session, mot_ts held, const char *ops, size_t len, XLogRecPtr lsn)
{
	MemoryContext cxt = CurrentMemoryContext;
	volatile bool done = true;
	uint32		holdoff = InterruptHoldoffCount;

	memset(&redo, 0, sizeof(redo));
	redo.session = session;
	redo.lsn = lsn;

	/*
	 * (on a standby that is served, by who replays, who ends those who read
	 * it)
	 */
	redo.gives_up = mot_ignore_damaged &&
		(MotRecovers() || !RecoveryInProgress() || MotWalCurrentState() != MOT_WAL_READY);
	definitions = aborted = false;
	databases = NIL;
	MotRoomTry();
	redo.cxt = cxt;
	redo.row_cxt = AllocSetContextCreate(cxt, "MOT replayed row", ALLOCSET_DEFAULT_SIZES);
	redo.view.snapshot = mot_snapshot_take(session);
	redo.view.command = MOT_COMMAND_MAX;
	mot_txn_begin(session, MOT_READ_COMMITTED, redo.view.snapshot, MotMyVirtualXact());

	mot_session_use_reserve(session, true);
	PG_TRY();
	{
		MotRedoEach(&redo, ops, len, apply_one, look_for_interrupts);
		MotTargetsEach(define_target);
		MotTargetsEach(MotRoomKeepRest);
		if (restoring)
			MotTargetsEach(restore_target);
	}
	PG_CATCH();
	{
		if (redo.full)
			MotTargetsEach(note_target);
		if (MotRedoClashes(&redo) && !restoring)
			MotRoomClash(redo.target);
		else
			redo.clash = false;
		mot_txn_abort(session);
		aborted = true;
		MotTargetsEach(undo_target);
		MotTargetsForget();
		if (restoring)
			MotPendingDiscard(restored);
		mot_session_use_reserve(session, false);
		mot_snapshot_hold(session, held);
		restoring = false;
		if ((geterrcode() != ERRCODE_OUT_OF_MEMORY || !redo.full) && !redo.clash)
			PG_RE_THROW();
		MemoryContextSwitchTo(cxt);
		FlushErrorState();

		/* MotApplyLock is held still, which an error has forgotten */
		InterruptHoldoffCount = holdoff;
		done = false;
	}
	PG_END_TRY();
	return done;
}

/* false: memory is full, and nothing was done */
static bool
try_apply(const char *ops, size_t len, XLogRecPtr lsn, TransactionId xid)
{
	mot_session *session = MotSession();
	mot_ts		held = mot_snapshot_held(session);
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "MOT replay", ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcxt = MemoryContextSwitchTo(cxt);

	if (!apply_all(session, held, ops, len, lsn))
	{
		MemoryContextSwitchTo(oldcxt);
		MemoryContextDelete(cxt);
		return false;
	}

	/* from here on nothing can fail */
	if (definitions)
	{
		LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
		MotTargetsEach(stamp_target);
	}
	if (TransactionIdIsValid(xid))
	{
		MotMixedApplyBegin(xid);
		MotMixedDone(mot_txn_commit(session));
	}
	else
		(void) mot_txn_commit(session);
	if (definitions)
	{
		MotTargetsEach(change_target);
		LWLockRelease(MotDirectoryLock);
		MotTargetsEach(heal_target);
	}
	foreach_oid(dbid, databases)
		MotStateHeal(dbid, InvalidOid);
	MotTargetsEach(give_up_target);
	if (unlikely(given_up != NIL) && MotWalCurrentState() != MOT_WAL_READY)
		MotApplyDropGivenUp();
	MotTargetsEach(MotRoomKeepDone);
	MotTargetsForget();
	mot_session_use_reserve(session, false);
	mot_snapshot_hold(session, held);

	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
	return true;
}

/* recovery of a large transaction takes its time */
static void
look_for_interrupts(MotRedo *r)
{
	if (AmStartupProcess())
		ProcessStartupProcInterrupts();
	else
		MotCheckpointLook();
}

static void
apply_one(MotRedo *r, const MotOpData *op, const char *raw, size_t len)
{
	switch (op->op)
	{
		case MOT_OP_TABLE:
			redo.target = MotTargetGet(op->dbid, op->oid);
			return;
		case MOT_OP_DROP_DATABASE:
			drop_database(op->dbid);
			return;
		case MOT_OP_PREPARED:
		case MOT_OP_PREPARED_READS:
			if (redo.target == NULL)
				return;
			break;
		default:
			break;
	}

	if (redo.target == NULL)
		MotRedoRaiseDamaged(redo.lsn, "no table is named");

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

	if (redo.target->damaged)
		return;
	if (redo.target->left_out && restoring)
		(void) MotRedoCheck(&redo, MOT_NO_MEMORY);
	if (redo.target->left_out)
	{
		/* indexes are made with the table */
		if (redo.target->emptied && op->op == MOT_OP_INDEX)
			return;
		MotRoomKeep(redo.target, redo.cxt, raw, len);
		return;
	}
	if (redo.target->table == NULL)
	{
		(void) MotRedoMisfit(&redo, "there is no such table");
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
			if (redo.target->created && !restoring)
				(void) MotRedoLoad(&redo, op->host_bits, op->bytes, op->len);
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
		case MOT_OP_LOCK:
			if (restoring)
				apply_lock(op);
			break;
		default:
			(void) MotRedoMisfit(&redo, "unexpected operation");
	}
}

static bool
check(mot_status status)
{
	if (MOT_FAULT_SKIPS("standby-redo-full"))
		status = MOT_NO_MEMORY;
	return MotRedoCheck(&redo, status);
}

/* ------------------------------------------------------------------- rows */

/* how strongly a prepared transaction has the row for that alone */
static mot_row_mode
mode_of(const MotOpData *op)
{
	if (op->op == MOT_OP_LOCK)
		return (mot_row_mode) op->mode;
	return op->op == MOT_OP_DELETE ? MOT_MODE_UPDATE : MOT_MODE_NO_KEY_UPDATE;
}

/*
 * Of rows with the same content: one that the transaction has already, for a change, or one that it
 * has not, for a lock; otherwise any that it can have.  (Logs of before 28 November 2026 have two
 * locks of one row.)
 */
typedef struct Choice
{
	const MotOpData *op;
	bool		held;
	const mot_version **version;
} Choice;

static bool
choose_row(void *arg, mot_row *row, const mot_version *version)
{
	Choice	   *choice = arg;
	mot_status	status;

	if (mot_row_held(redo.session, row) != choice->held)
		return false;
	status = mot_row_lock(redo.session, &redo.view, redo.target->table, row, version,
						  mode_of(choice->op), choice->version);
	return status != MOT_BUSY && check(status);
}

static bool
find_row_again(const MotOpData *op, mot_row **row, const mot_version **version)
{
	const mot_version *newest = NULL;
	Choice		choice = {op, op->op != MOT_OP_LOCK, &newest};

	if (op->key != NULL)
		return MotRedoFind(&redo, op, row, version) &&
			check(mot_row_lock(redo.session, &redo.view, redo.target->table, *row, *version, mode_of(op), version));
	MotContentPrepare(redo.session, redo.target);
	if (!MotContentChoose(redo.session, &redo.view, redo.target, op, choose_row, &choice, row, version))
	{
		choice.held = !choice.held;
		if (!MotContentChoose(redo.session, &redo.view, redo.target, op, choose_row, &choice, row, version))
			return MotRedoMisfit(&redo, "a row is not there");
	}
	*version = newest;
	return true;
}

/*
 * Finds the row that an operation is about and gets the right to change it.  false: damage,
 * reported.
 */
static bool
find_row(const MotOpData *op, mot_row **row, const mot_version **version)
{
	if (restoring)
		return find_row_again(op, row, version);
	return MotRedoFind(&redo, op, row, version) &&
		(*row == NULL ||
		 check(mot_row_lock(redo.session, &redo.view, redo.target->table, *row, *version, true, version)));
}

static void
apply_insert(const MotOpData *op)
{
	mot_row    *row;
	void	   *data;

	if (!MotRedoCheckRow(&redo, op->host_bits, op->bytes, op->len) ||
		!check(mot_row_insert(redo.session, redo.target->table, 0, op->host_bits, op->len,
							  &row, &data)))
		return;
	memcpy(data, op->bytes, op->len);
	add_keys(row, op->host_bits, data, op->len);
}

/* The row's entry in index i, by its new values.  false: damage, reported. */
static bool
add_entry(mot_row *row, int i)
{
	MotTarget  *target = redo.target;
	unsigned	flags = MotTargetNewKey(target, i);
	mot_row    *other;

	return check(mot_index_add(redo.session, &target->indexes[i].handle, row,
							   target->new_key.data, target->new_key.len, flags, &other));
}

/* likewise, takes out the one by its old values */
static bool
drop_entry(mot_row *row, int i)
{
	MotTarget  *target = redo.target;
	unsigned	flags = MotTargetOldKey(target, i);

	return check(mot_index_drop_entry(redo.session, &target->indexes[i].handle, row,
									  target->old_key.data, target->old_key.len, flags));
}

/* the keys of a new row; damage takes the row back */
static void
add_keys(mot_row *row, unsigned host_bits, const void *bytes, size_t size)
{
	MotTarget  *target = redo.target;

	if (target->nindexes > 0)
		MotTargetDeform(target, host_bits, bytes, target->new_values, target->new_isnull);
	for (int i = 0; i < target->nindexes; i++)
	{
		if (target->indexes[i].handle.index != NULL && !add_entry(row, i))
			return;
	}
	MotContentAdd(redo.session, target, row, host_bits, bytes, size);
}

static void
apply_update(const MotOpData *op)
{
	MotTarget  *target = redo.target;
	mot_row    *row;
	const mot_version *old;
	unsigned	old_host_bits;
	size_t		old_size;
	const void *old_bytes;
	uint64		changed = 0;	/* one bit for each index */
	void	   *data;

	if (!find_row(op, &row, &old) || row == NULL)
		return;
	old_bytes = mot_version_data(old);
	old_host_bits = mot_version_host_bits(old);
	old_size = MotDefinitionRowSize(target->def, old);

	if (!MotRedoPatch(&redo, op, old_host_bits, old_bytes, old_size))
		return;
	for (int i = 0; i < target->nindexes; i++)
		if (target->indexes[i].handle.index != NULL && MotTargetKeysDiffer(target, i))
			changed |= UINT64CONST(1) << i;

	if (!check(mot_row_update(redo.session, target->table, row, 0, op->host_bits, op->new_len,
							  changed != 0, &data)))
		return;
	memcpy(data, redo.row, op->new_len);

	for (int i = 0; changed != 0; i++, changed >>= 1)
	{
		if ((changed & 1) != 0 && (!drop_entry(row, i) || !add_entry(row, i)))
			return;
	}
	MotContentDrop(redo.session, target, row, old_host_bits, old_bytes, old_size);
	MotContentAdd(redo.session, target, row, op->host_bits, data, op->new_len);
}

static void
apply_delete(const MotOpData *op)
{
	MotTarget  *target = redo.target;
	mot_row    *row;
	const mot_version *old;

	if (!find_row(op, &row, &old))
		return;
	if (!check(mot_row_delete(redo.session, target->table, row, 0)))
		return;
	MotContentDrop(redo.session, target, row, mot_version_host_bits(old),
				   mot_version_data(old), MotDefinitionRowSize(target->def, old));
}

static void
apply_lock(const MotOpData *op)
{
	mot_row    *row;
	const mot_version *version;

	(void) find_row(op, &row, &version);
}

/* ------------------------------------------------------------- definitions */

static void
apply_create(const MotOpData *op)
{
	MotTarget  *target = redo.target;

	definitions = true;
	undo_target(target);		/* made and made again in one transaction */
	target->damaged = false;
	target->dropped = false;
	target->redo = NULL;
	target->left_out = target->emptied = MotRoomNotToMake(&target->key);
	if (target->emptied && restoring)
		(void) check(MOT_NO_MEMORY);
	if (target->emptied)
	{
		target->files = MemoryContextAllocZero(redo.cxt, sizeof(MotLeftOut));
		MotLeftOutEmpty(target->files, target->key.dbid, target->key.relid, op->bytes, op->len);
		target->files->soon = MotRoomIsForClash(&target->key);
		return;
	}
	target->wanted = true;
	if (MOT_FAULT_SKIPS("standby-create-full"))
		(void) check(MOT_NO_MEMORY);
	target->created = MotRedoCreate(&redo, op);
	/* (rows that follow are the prepared transaction's, and not loaded) */
	if (target->created && restoring)
		mot_load_done(target->table);
}

static void
apply_drop(void)
{
	MotTarget  *target = redo.target;

	definitions = true;
	undo_target(target);
	target->table = NULL;
	target->dropped = true;
	target->damaged = target->left_out = target->emptied = false;
}

static void
apply_define(const MotOpData *op)
{
	MotTarget  *target = redo.target;

	definitions = true;
	(void) MotRedoDefine(&redo, op);
	target->defined = true;
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
			MotWithin(redo.cxt, target->old_indexes = lappend(target->old_indexes, index));
	}
}

static bool
look_while_building(void *arg)
{
	look_for_interrupts(&redo);
	return false;
}

/* Build an index of the definition; if there is one with this number, it is replaced. */
static void
apply_index(const MotOpData *op)
{
	MotTarget  *target = redo.target;
	mot_index  *index;
	mot_build	build;
	mot_status	status;
	int			i = MotTargetIndexAt(target, op->oid);

	if (i < 0)
	{
		(void) MotRedoMisfit(&redo, "index %u is not in the definition", op->oid);
		return;
	}
	if (target->created)
		return;					/* made with the table */

	definitions = true;
	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	status = MotDefinitionMakeIndex(redo.session, target->table, &target->indexes[i], &index);
	LWLockRelease(MotDirectoryLock);
	if (!check(status))
		return;

	/* what sorting takes is private memory, as much as the primary's took */
	mot_build_begin(redo.session, &build, index);
	status = MotFillIndex(&build, index, &target->indexes[i], false, look_while_building, NULL);
	if (status == MOT_OK)
		mot_build_end(&build);
	else
	{
		mot_index_drop(redo.session, index);
		(void) check(status);
		return;
	}

	/* (lists of a target live as long as the transaction) */
	if (target->indexes[i].handle.index != NULL)
		MotWithin(redo.cxt, target->old_indexes = lappend(target->old_indexes, target->indexes[i].handle.index));
	MotWithin(redo.cxt, target->new_indexes = lappend(target->new_indexes, index));
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
		redo.target = MotTargetGet(dbid, mot_table_host_id(tables[i]));
		apply_drop();
	}
	nleft = MotLeftOutList(&left);
	for (int i = 0; i < nleft; i++)
	{
		if (left[i].dbid != dbid)
			continue;
		redo.target = MotTargetGet(dbid, left[i].relid);
		apply_drop();
	}
	redo.target = NULL;
	MotWithin(redo.cxt, databases = lappend_oid(databases, dbid));
}

/* -------------------------------------------------------------------- end */

/* before commit: the last thing that can fail */
static void
define_target(MotTarget *target)
{
	if (target->defined && !target->damaged && !target->created && !target->dropped)
	{
		mot_status	status = mot_definition_make(redo.session, target->bytes, target->len,
												 &target->definition);

		if (status != MOT_OK)
		{
			redo.full = status == MOT_NO_MEMORY;
			MotApplyRaiseMemory(status, redo.lsn, MotTargetName(target));
		}
	}
}

/* a prepared transaction's: others end it */
static void
restore_target(MotTarget *target)
{
	redo.target = target;
	if (target->dropped && !target->created)
		(void) check(MotStorageRestore(redo.session, &restored, target->key.dbid, target->key.relid, NULL));
	if (target->created)
		(void) check(MotStorageRestore(redo.session, &restored, target->key.dbid, target->key.relid, target->table));
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
	ts = mot_load_stamp(redo.session, target->table);

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
	if (target->damaged)
	{
		undo_target(target);
		return;
	}
	foreach_ptr(mot_index, index, target->old_indexes)
		mot_index_drop(redo.session, index);
	foreach_ptr(mot_index, index, target->new_indexes)
	{
		/* rows that the same transaction has changed are in it as of now */
		mot_index_set_valid_from(index, mot_engine_clock(MotEngine));
		mot_index_attach(index);
	}
	if (target->definition != NULL)
	{
		mot_table_put_definition(redo.session, target->table, target->definition);
		mot_table_set_owner(target->table, target->def->owner, target->def->numbered);
		target->definition = NULL;
	}

	if (target->created || target->emptied || target->dropped)
	{
		mot_table  *old = target->created ? mot_table_publish(MotEngine, target->table) :
		mot_table_find(MotEngine, target->key.dbid, target->key.relid);

		if (old != NULL)
			mot_table_drop(redo.session, old);
	}
}

/*
 * (mot.ignore_damaged) What has not become of it is not to be read, nor kept in memory, whoever
 * looks: there may be more of them than are listed.  Where tables are served, sessions know it: then
 * it goes when who replays has ended those, or else with the next start.
 */
static void
give_up_target(MotTarget *target)
{
	mot_table  *table = target->damaged ? mot_table_find(MotEngine, target->key.dbid, target->key.relid) : NULL;
	GivenUp    *given;

	if (table == NULL)
		return;
	given = MemoryContextAlloc(TopMemoryContext, sizeof(GivenUp));
	given->key = target->key;
	given->serial = mot_table_serial(table);
	MotWithin(TopMemoryContext, given_up = lappend(given_up, given));
}

/*
 * (likewise) Tables are served, and it stays in memory: who knows it is to look again, and reads it
 * no more.
 */
static void
tell_target(MotTarget *target)
{
	mot_table  *table = target->damaged ? mot_table_find(MotEngine, target->key.dbid, target->key.relid) : NULL;

	if (table != NULL)
		MotTellSessions(target->key.dbid, mot_table_owner(table));
}

void
MotApplyDropGivenUp(void)
{
	LWLockAcquire(MotDirectoryLock, LW_EXCLUSIVE);
	foreach_ptr(GivenUp, given, given_up)
	{
		mot_table  *table = mot_table_find(MotEngine, given->key.dbid, given->key.relid);

		/* (it may have been made anew) */
		if (table != NULL && mot_table_serial(table) == given->serial)
			mot_table_drop(MotSession(), table);
	}
	LWLockRelease(MotDirectoryLock);
	list_free_deep(given_up);
	given_up = NIL;
}

/*
 * What is being undone for lack of memory may be the reason, also a table that could not even be
 * made.
 */
static void
note_target(MotTarget *target)
{
	if (target->created || (target->table == NULL && target->wanted))
		MotRoomNote(&target->key, target->table);
}

/* What was made for it and nobody has seen goes. */
static void
undo_target(MotTarget *target)
{
	if (target->created && aborted && !restoring)
		mot_table_discard(redo.session, target->table);
	else if (target->created)
		mot_table_drop(redo.session, target->table);
	else
		foreach_ptr(mot_index, index, target->new_indexes)
			mot_index_drop(redo.session, index);
	if (target->definition != NULL)
		mot_definition_discard(redo.session, target->definition);
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
