/*-------------------------------------------------------------------------
 *
 * logger.c
 *	  What a transaction has changed, written to the log.
 *
 * In PRE_COMMIT the engine's journal and what has become of storage are put
 * into one buffer as operations (record.h); so everything that can fail does
 * so before anything has been decided.  A MOT-only transaction's record is
 * inserted in COMMIT: it is the commit.  A mixed one's is inserted at once,
 * and the server's commit record makes it count.
 *
 * When there is more than a piece, pieces go to the log as they fill, and if
 * the transaction then fails a last record says that they are for nothing.
 * Such a transaction is given an xid, if it has none: then it is complete in
 * the log at the end of PRE_COMMIT, as a mixed one is, and has left the gate.
 *
 * At PREPARE TRANSACTION the record says that besides, and which rows are locked more
 * than its changes tell; and checkpoints get a copy of it, since they may come when the
 * log has gone (prepared.c).
 *
 * The gate (gate.c) is entered for the insertion of a record, so for a
 * small MOT-only transaction as late as in COMMIT: between PRE_COMMIT and
 * COMMIT the server may wait for others (NOTIFY does).
 *
 * The path of a small transaction allocates nothing and looks nothing up: the
 * buffer and the tables' decoded definitions are kept by the process.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "miscadmin.h"
#include "relation/relation.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "wal/replay/leftout.h"
#include "wal/replay/spill.h"
#include "xact/xact.h"

/* operations between two looks for an interrupt, and resets of row_cxt */
#define BATCH 1024

/* tables known; with more, all are forgotten */
#define MAX_KNOWN 1024

/* those among them that are found without the hash table: a power of two */
#define RECENTLY_KNOWN 16

/* a buffer that has grown beyond this is not kept */
#define KEEP_BUFFER (4 * MOT_PIECE_SIZE)

/* what the process knows of a table */
typedef struct Known
{
	uint64		serial;			/* hash key */
	uint64		stamp;			/* of the definition's bytes */
	MotDefinition *def;
} Known;

/* the transaction that is being logged */
typedef struct Logging
{
	bool		entered;		/* the gate has to be left in the end */
	bool		ready;			/* insert() has a record to write */
	bool		complete;		/* the last record has been inserted */
	XLogRecPtr	start;			/* of the first record */
	XLogRecPtr	stream;			/* of the first piece */
	bool		keeps;			/* there is to be a copy */
	char	   *copy;			/* of a stream's pieces: the file, ... */
	size_t		copied;			/* ... and as much of it */
	List	   *changes;		/* of storage, from MotStorageChanges */

	/* the table of the last operation */
	mot_table  *table;
	bool		passed_over;	/* its rows are logged otherwise */
	MotDefinition *def;
	int			identity;		/* index, or -1: the whole row */
	Oid			dbid;			/* as the log has it */
	Oid			relid;
	uint64		operations;
} Logging;

static Logging logging;
static StringInfoData buffer;
static MemoryContext row_cxt = NULL;	/* for keys of compressed values */
static HTAB *known_tables = NULL;
static Known *recently_known[RECENTLY_KNOWN];	/* by serial */

static void make_memory(void);
static void log_storage(mot_session *session);
static void log_whole(mot_session *session, const MotStorageChange *change);
static void log_new_indexes(void);
static void log_locks(mot_session *session);
static void log_rows(mot_session *session);
static void name_table(Oid dbid, Oid relid);
static void select_table(mot_table *table);
static bool select_changed(mot_table *table);
static Known *find_known(mot_table *table);
static void forget_known(void);
static inline void operation_done(int begin);
static pg_noinline void look_after_operations(int begin);
static void write_long(void);
static XLogRecPtr write_record(uint8 info, TimestampTz time, const char *prefix, int prefix_len,
							   const char *ops, int len);
static void write_piece(const char *prefix, int prefix_len, const char *ops, int len);
static void drop_front(int n);
static void forget_transaction(void);

/* The statement puts an operation into the buffer. */
#define OPERATION(statement) \
	do { \
		int			begin_ = buffer.len; \
		statement; \
		operation_done(begin_); \
	} while (0)

/* -------------------------------------------------------- the steps of a commit */

static void
logger_enter(void)
{
	MotGateEnter(false);
	logging.entered = true;
}

/* The record of a transaction that the server decides about, by its xid. */
static void
log_mixed(TransactionId xid)
{
	XLogRecPtr	end;

	logger_enter();
	end = write_record(MOT_XLOG_MIXED, 0, NULL, 0, buffer.data, buffer.len);
	logging.complete = true;
	MotGateLogged(xid, logging.start, end);
}

static void
logger_prepare(mot_session *session)
{
	TransactionId xid;

	if (unlikely(row_cxt == NULL))
		make_memory();
	resetStringInfo(&buffer);

	logging.changes = MotStorageChanges();
	if (unlikely(logging.changes != NIL))
		log_storage(session);
	if (session != NULL && mot_txn_has_writes(session))
		log_rows(session);
	if (unlikely(logging.changes != NIL))
		log_new_indexes();

	/* locks only, or everything was undone by a savepoint */
	if (buffer.len == 0 && logging.stream == InvalidXLogRecPtr)
		return;

	xid = GetTopTransactionIdIfAny();
	if (TransactionIdIsValid(xid))
		log_mixed(xid);
	else
		logging.ready = true;
}

/* PREPARE TRANSACTION: returns the copy. */
static void *
logger_keep(mot_session *session, const char *gid, bool keeps_reads)
{
	TransactionId xid = GetTopTransactionId();
	void	   *copy;

	if (unlikely(row_cxt == NULL))
		make_memory();
	resetStringInfo(&buffer);
	logging.keeps = true;
	OPERATION(MotRecordBytes(&buffer, keeps_reads ? MOT_OP_PREPARED_READS : MOT_OP_PREPARED, gid, strlen(gid)));
	logging.changes = MotStorageChanges();
	if (unlikely(logging.changes != NIL))
		log_storage(session);
	log_locks(session);
	log_rows(session);

	log_mixed(xid);
	if (logging.copy == NULL)
		return MotPreparedRedoKeep(xid, ProcLastRecPtr, buffer.data, buffer.len, NULL);
	MotSpillWrite(logging.copy, logging.copied, buffer.data, buffer.len);
	copy = MotPreparedRedoKeep(xid, ProcLastRecPtr, NULL, logging.copied + buffer.len, logging.copy);
	pfree(logging.copy);
	logging.copy = NULL;
	return copy;
}

/* The transaction is committed by this, or has been by the server's record. */
static void
logger_insert(mot_session *session)
{
	XLogRecPtr	end;
	uint8		info = MOT_XLOG_COMMIT;

	/* also for who has only drawn: a checkpoint is not to see half of it */
	if (logging.entered || logging.ready)
		logger_enter();
	if (!logging.ready)
		return;
	if (synchronous_commit >= SYNCHRONOUS_COMMIT_REMOTE_APPLY)
		info |= MOT_XLOG_REPLY;

	START_CRIT_SECTION();
	end = write_record(info, GetCurrentTransactionStopTimestamp(), NULL, 0,
					   buffer.data, buffer.len);
	logging.complete = true;
	MotDurableNote(session, end);
	END_CRIT_SECTION();
}

static void
logger_installed(mot_session *session)
{
	/*
	 * A table that could not be recovered may be whole again, being new.
	 * Inside the gate: a checkpoint has either it or the new one.
	 */
	foreach_ptr(MotStorageChange, change, logging.changes)
	{
		if (!change->created && !change->dropped)
			continue;
		MotStateHeal(change->dbid, change->database ? InvalidOid : change->relid);
		MotLeftOutForget(change->dbid, change->database ? InvalidOid : change->relid);
	}
	if (logging.entered)
		MotGateLeave();
	forget_transaction();
}

/* What was logged is not this process's any more. */
void
MotLoggerForget(void)
{
	MotGateLeave();
	forget_transaction();
}

static void
logger_abort(void)
{
	if (logging.stream != InvalidXLogRecPtr && !logging.complete)
		(void) write_record(MOT_XLOG_FORGET, 0, NULL, 0, NULL, 0);
	if (logging.copy != NULL)
		(void) unlink(logging.copy);
	if (logging.entered)
		MotGateLeave();
	forget_transaction();
}

static void
forget_transaction(void)
{
	if (logging.copy != NULL)
		pfree(logging.copy);
	memset(&logging, 0, sizeof(logging));
	if (unlikely(buffer.maxlen > KEEP_BUFFER))
	{
		pfree(buffer.data);
		buffer.data = NULL;
		buffer.maxlen = 0;
		MemoryContextDelete(row_cxt);
		row_cxt = NULL;
	}
}

static void
make_memory(void)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(TopMemoryContext);

	if (buffer.data == NULL)
		initStringInfo(&buffer);
	row_cxt = AllocSetContextCreate(TopMemoryContext, "MOT redo", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(oldcxt);
}

/* ----------------------------------------------------------------- storage */

/* What goes, what is new with its rows, what is defined otherwise. */
static void
log_storage(mot_session *session)
{
	foreach_ptr(MotStorageChange, change, logging.changes)
	{
		if (!change->dropped)
			continue;
		if (!change->database)
			name_table(change->dbid, change->relid);
		OPERATION(MotRecordOid(&buffer, change->database ? MOT_OP_DROP_DATABASE : MOT_OP_DROP, change->dbid));
	}

	foreach_ptr(MotStorageChange, change, logging.changes)
	{
		if (change->created)
			log_whole(session, change);
	}

	foreach_ptr(MotStorageChange, change, logging.changes)
	{
		if (change->dropped || change->created)
			continue;
		name_table(change->dbid, change->relid);
		OPERATION(MotRecordBytes(&buffer, MOT_OP_DEFINE, change->definition, change->definition_len));
	}
}

/* However its rows came to be what they are. */
static void
log_whole(mot_session *session, const MotStorageChange *change)
{
	MotDefinition *def = MotDefinitionDecode(change->definition, change->definition_len,
											 CurrentMemoryContext);
	mot_ts		held = mot_snapshot_held(session);
	mot_build	build;
	mot_row    *row;
	const mot_version *version;

	name_table(change->dbid, change->relid);
	OPERATION(MotRecordBytes(&buffer, MOT_OP_CREATE, change->definition, change->definition_len));

	/*
	 * versions stay while we look; an error ends the transaction, and its
	 * snapshots
	 */
	(void) mot_snapshot_take(session);
	mot_build_rows(session, &build, change->table, NULL);
	while (!def->unlogged && mot_build_next(&build, &row, &version))
		OPERATION(MotRecordInsert(&buffer, mot_version_host_bits(version), mot_version_data(version),
								  MotDefinitionRowSize(def, version)));
	mot_snapshot_hold(session, held);
	MotDefinitionFree(def);
}

static void
log_new_indexes(void)
{
	foreach_ptr(MotStorageChange, change, logging.changes)
	{
		if (change->dropped || change->created)
			continue;
		foreach_oid(oid, change->new_indexes)
		{
			name_table(change->dbid, change->relid);
			OPERATION(MotRecordOid(&buffer, MOT_OP_INDEX, oid));
		}
	}
}

/* -------------------------------------------------------------------- rows */

/* of the version by which the row is to be found; NULL: by all of its bytes */
static inline const void *
identity_key(const mot_version *before, size_t *len)
{
	MotIndex   *index;

	*len = 0;
	if (unlikely(logging.identity < 0))
		return NULL;
	index = &logging.def->indexes[logging.identity];
	MotIndexNameOf(index, before, &index->check_buffer);
	*len = index->check_buffer.len;
	return index->check_buffer.data;
}

/* May its rows change and still be found after a restart? */
static bool
logger_names(mot_table *table)
{
	const MotDefinition *def = find_known(table)->def;

	return def->identity >= 0 || def->unlogged;
}

/*
 * Of a prepared transaction: the rows that it has to have again after a restart, whatever it
 * changes.
 */
static void
log_locks(mot_session *session)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(row_cxt);
	mot_ts		held = mot_snapshot_held(session);
	uint64		pos = 0;
	mot_lock	lock;

	/*
	 * versions stay while we look; an error ends the transaction, and its
	 * snapshots
	 */
	(void) mot_snapshot_take(session);
	while (mot_txn_next_lock(session, &pos, &lock))
	{
		const void *key;
		size_t		key_len;

		if (lock.table != logging.table)
			select_table(lock.table);
		if (logging.passed_over)
			continue;
		key = identity_key(lock.version, &key_len);
		OPERATION(MotRecordLock(&buffer, lock.mode, key, key_len,
								mot_version_host_bits(lock.version), mot_version_data(lock.version),
								key != NULL ? 0 : MotDefinitionRowSize(logging.def, lock.version)));
	}
	mot_snapshot_hold(session, held);
	MemoryContextSwitchTo(oldcxt);
	MemoryContextReset(row_cxt);
}

static void
log_rows(mot_session *session)
{
	MemoryContext oldcxt = MemoryContextSwitchTo(row_cxt);
	uint64		pos = 0;
	mot_change	change;

	while (mot_txn_next_change(session, &pos, &change))
	{
		const mot_version *before = change.before;
		const mot_version *after = change.after;
		const MotDefinition *def;
		const void *key;
		size_t		key_len;
		int			begin;

		if (change.table != logging.table)
			select_table(change.table);
		if (unlikely(logging.passed_over))
			continue;
		def = logging.def;

		begin = buffer.len;
		if (change.kind == MOT_CHANGE_INSERT)
			MotRecordInsert(&buffer, mot_version_host_bits(after), mot_version_data(after),
							MotDefinitionRowSize(def, after));
		else
		{
			key = identity_key(before, &key_len);
			if (change.kind == MOT_CHANGE_UPDATE)
			{
				size_t		size_before;
				size_t		size_after;

				MotDefinitionRowSizes(def, before, after, &size_before, &size_after);
				MotRecordUpdate(&buffer, key, key_len,
								mot_version_host_bits(before), mot_version_data(before), size_before, size_before,
								mot_version_host_bits(after), mot_version_data(after), size_after);
			}
			else
				MotRecordDelete(&buffer, key, key_len,
								mot_version_host_bits(before), mot_version_data(before),
								key != NULL ? 0 : MotDefinitionRowSize(def, before));
		}
		operation_done(begin);
	}

	MemoryContextSwitchTo(oldcxt);
	MemoryContextReset(row_cxt);
}

/* the row is held meanwhile */
static void
write_amendment(void *arg)
{
	if (buffer.len == 0)
		return;
	logger_enter();
	START_CRIT_SECTION();
	(void) write_record(MOT_XLOG_COMMIT, GetCurrentTimestamp(), NULL, 0, buffer.data, buffer.len);
	END_CRIT_SECTION();
}

/*
 * A commit of its own, within a transaction that has nothing in the log; nobody asks whether it is
 * durable.  A checkpoint that was begun before it may have the row as it is afterwards (its
 * version's number is older), which makes no difference to replay.
 */
static mot_status
logger_amend(mot_session *session, mot_table *table, mot_row *row, const mot_version *seen,
			 size_t columns, unsigned host_bits, const void *data, size_t size)
{
	mot_status	status;

	Assert(!logging.entered && logging.start == InvalidXLogRecPtr);
	if (unlikely(row_cxt == NULL))
		make_memory();
	resetStringInfo(&buffer);
	select_table(table);
	if (!logging.passed_over)
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(row_cxt);
		size_t		key_len;
		const void *key = identity_key(seen, &key_len);

		MotRecordUpdate(&buffer, key, key_len, mot_version_host_bits(seen), mot_version_data(seen),
						MotDefinitionRowSize(logging.def, seen), columns, host_bits, data, size);
		MemoryContextSwitchTo(oldcxt);
		MemoryContextReset(row_cxt);
	}
	HOLD_INTERRUPTS();
	status = mot_row_amend(session, table, row, seen, host_bits, data, size, write_amendment, NULL);
	if (logging.entered)
		MotGateLeave();
	forget_transaction();
	RESUME_INTERRUPTS();
	return status;
}

/* ------------------------------------------------------------------ tables */

static void
name_table(Oid dbid, Oid relid)
{
	if (logging.dbid == dbid && logging.relid == relid)
		return;
	OPERATION(MotRecordTable(&buffer, dbid, relid));
	logging.dbid = dbid;
	logging.relid = relid;
}

/* The changes that follow are of this table. */
static void
select_table(mot_table *table)
{
	mot_table  *replaces;

	logging.table = table;
	logging.passed_over = false;

	/* storage that this transaction has made: logged whole, or gone again */
	if (!mot_table_is_settled(table, &replaces))
	{
		logging.passed_over = true;
		return;
	}
	if (likely(logging.changes == NIL) || !select_changed(table))
	{
		Known	   *known = find_known(table);

		logging.def = known->def;
		logging.identity = known->def->identity;
	}
	if (!logging.passed_over)
		logging.passed_over = logging.def->unlogged;
	if (logging.passed_over)
		return;
	/* (it has been given up, which this session did not know yet) */
	if (unlikely(MotStateIsDamaged(mot_table_host_db(table), mot_table_host_id(table))))
		MotStateRaiseDamaged(mot_table_host_db(table), mot_table_host_id(table));
	name_table(mot_table_host_db(table), mot_table_host_id(table));
}

/* all but the serial */
static void
make_known(Known *known, const void *bytes, size_t len, MemoryContext parent)
{
	MotDefinition *def = MotDefinitionDecode(bytes, len, parent);

	known->stamp = def->stamp;
	known->def = def;
}

/*
 * A table that this transaction has changed otherwise, too?  Rows of storage
 * that is new have been logged; those of storage that goes need not be; in a
 * table that has another definition now, that one is in force.
 */
static bool
select_changed(mot_table *table)
{
	foreach_ptr(MotStorageChange, change, logging.changes)
	{
		Known	   *known;

		if (list_member_ptr(change->gone, table) || (change->table == table && change->created))
		{
			logging.passed_over = true;
			return true;
		}
		if (change->table != table)
			continue;

		known = change->decoded;
		if (known == NULL)
		{
			known = MemoryContextAlloc(TopTransactionContext, sizeof(Known));
			make_known(known, change->definition, change->definition_len, TopTransactionContext);
			change->decoded = known;
		}
		logging.def = known->def;
		logging.identity = known->def->identity;
		if (logging.identity >= 0 &&
			list_member_oid(change->new_indexes, known->def->indexes[logging.identity].indexoid))
			logging.identity = -1;
		return true;
	}
	return false;
}

/*
 * Our lock on the table keeps its definition as it is, but for its conditions,
 * which are no matter here.  (The stamp tells whether it is one that we have seen; its
 * address would not.)
 */
static Known *
find_known(mot_table *table)
{
	uint64		serial = mot_table_serial(table);
	size_t		len;
	const void *bytes = mot_table_definition(table, &len);
	Known	  **recent = &recently_known[serial % RECENTLY_KNOWN];
	Known	   *known = *recent;
	Known		new;
	bool		found;

	if (unlikely(bytes == NULL))
		elog(ERROR, "memory-optimized table %u has no definition", mot_table_host_id(table));

	if (likely(known != NULL && known->serial == serial &&
			   known->stamp == MotDefinitionStamp(bytes)))
		return known;

	if (known_tables == NULL)
		known_tables = MotHashCreate("MOT tables logged", 64, sizeof(uint64), sizeof(Known), TopMemoryContext);
	/* what we have looked at may have been replaced and freed meanwhile */
	LWLockAcquire(MotDirectoryLock, LW_SHARED);
	bytes = mot_table_definition(table, &len);
	known = hash_search(known_tables, &serial, HASH_FIND, NULL);
	if (known != NULL && known->stamp == MotDefinitionStamp(bytes))
	{
		LWLockRelease(MotDirectoryLock);
		*recent = known;
		return known;
	}

	if (known == NULL && hash_get_num_entries(known_tables) >= MAX_KNOWN)
		forget_known();
	make_known(&new, bytes, len, TopMemoryContext);
	LWLockRelease(MotDirectoryLock);
	new.serial = serial;
	known = hash_search(known_tables, &serial, HASH_ENTER, &found);
	if (found)
		MotDefinitionFree(known->def);
	*known = new;
	*recent = known;
	return known;
}

static void
forget_known(void)
{
	memset(recently_known, 0, sizeof(recently_known));
	foreach_hash(Known, known, known_tables)
	{
		MotDefinitionFree(known->def);
		(void) hash_search(known_tables, &known->serial, HASH_REMOVE, NULL);
	}
}

/* ------------------------------------------------------------------ pieces */

/* An operation has been put into the buffer, from "begin" to its end. */
static inline void
operation_done(int begin)
{
	logging.operations++;
	if (unlikely(buffer.len > MOT_PIECE_SIZE || logging.operations % BATCH == 0))
		look_after_operations(begin);
}

static pg_noinline void
look_after_operations(int begin)
{
	if (buffer.len > MOT_PIECE_SIZE)
	{
		if (begin > 0)
		{
			write_piece(NULL, 0, buffer.data, begin);
			drop_front(begin);
		}
		if (buffer.len > MOT_PIECE_SIZE)
			write_long();
	}
	if (logging.operations % BATCH == 0)
	{
		MemoryContextReset(row_cxt);
		CHECK_FOR_INTERRUPTS();
	}
}

/* The buffer holds one operation that is larger than a piece; what is left of it stays. */
static void
write_long(void)
{
	char		prefix[16];
	char	   *p = prefix;
	uint32		len = (uint32) buffer.len;
	int			prefix_len;
	int			written;

	*p++ = MOT_OP_LONG;
	for (; len >= 0x80; len >>= 7)
		*p++ = (char) (len | 0x80);
	*p++ = (char) len;
	prefix_len = (int) (p - prefix);

	written = MOT_PIECE_SIZE - prefix_len;
	write_piece(prefix, prefix_len, buffer.data, written);
	while (buffer.len - written > MOT_PIECE_SIZE)
	{
		write_piece(NULL, 0, buffer.data + written, MOT_PIECE_SIZE);
		written += MOT_PIECE_SIZE;
		CHECK_FOR_INTERRUPTS();
	}
	drop_front(written);
}

static void
drop_front(int n)
{
	buffer.len -= n;
	memmove(buffer.data, buffer.data + n, buffer.len);
}

static void
copy_piece(const char *prefix, int prefix_len, const char *ops, int len)
{
	if (logging.copy == NULL)
		MotWithin(TopMemoryContext, logging.copy = MotSpillPath("%d.copy", MyProcPid));
	if (prefix_len > 0)
		MotSpillWrite(logging.copy, logging.copied, prefix, prefix_len);
	logging.copied += prefix_len;
	MotSpillWrite(logging.copy, logging.copied, ops, len);
	logging.copied += len;
}

static void
write_piece(const char *prefix, int prefix_len, const char *ops, int len)
{
	(void) GetTopTransactionId();
	MotGateEnter(true);
	logging.entered = true;
	(void) write_record(MOT_XLOG_PIECE, 0, prefix, prefix_len, ops, len);
	if (logging.keeps)
		copy_piece(prefix, prefix_len, ops, len);
	if (logging.stream == InvalidXLogRecPtr)
		logging.stream = logging.start;
	MOT_FAULT("commit-piece");
}

static XLogRecPtr
write_record(uint8 info, TimestampTz time, const char *prefix, int prefix_len,
			 const char *ops, int len)
{
	MotRecordHeader header = {logging.stream, time};
	char		bytes[MOT_RECORD_HEADER_MAX];
	XLogRecPtr	end;

	XLogBeginInsert();
	XLogRegisterData(bytes, MotRecordPutHeader(bytes, &header));
	if (prefix_len > 0)
		XLogRegisterData(unconstify(char *, prefix), prefix_len);
	if (len > 0)
		XLogRegisterData(unconstify(char *, ops), len);
	end = XLogInsert(mot_resource_manager_id, info);
	if (logging.start == InvalidXLogRecPtr)
		logging.start = ProcLastRecPtr;
	return end;
}

/* ------------------------------------------------------- what xact/ calls */

static const MotXactLog xact_log = {
	.writable = MotWalCheckWritable,
	.waits = MotDurableWaits,
	.enter = logger_enter,
	.drawn = MotGateDrawn,
	.prepare = logger_prepare,
	.insert = logger_insert,
	.installed = logger_installed,
	.abort = logger_abort,
	.amend = logger_amend,
	.change = MotDecodeLog,
	.before_snapshot = MotInDoubtCatchUp,
	.try_snapshot = MotInDoubtTry,
	.names = logger_names,
	.keep = logger_keep,
	.kept = MotPreparedRedoKept,
	.drop = MotPreparedRedoDrop,
	.finish = MotGateEnterDecided,
	.finished = MotPreparedRedoFinished,
	.restore = MotPreparedRedoRestore,
	.await = MotReplayAwait,
	.unrestored = MotPreparedRedoUnrestored
};

void
MotLoggerInit(void)
{
	MotTheLog = &xact_log;
}
