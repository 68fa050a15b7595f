/*-------------------------------------------------------------------------
 *
 * mot_engine.h
 *	  The storage engine's public header: everything its host may call.
 *
 * The engine keeps tables of rows with versions, and ordered indexes on them,
 * in one shared region; processes (or threads, in tests) work on it through
 * sessions.  It knows nothing of SQL: rows and keys are bytes that the host
 * makes and understands, waiting for another transaction is the host's job,
 * and no call raises, prints, sleeps for long or calls back except where it
 * says so.
 *
 * Ideas: Silo (Tu et al., SOSP 2013) for the commit protocol and phantom
 * validation, Masstree (Mao et al., EuroSys 2012) for the index, Cicada (Lim
 * et al., SIGMOD 2017) for versions inlined in their row, Hekaton (Diaconu et
 * al., SIGMOD 2013) for timestamps as snapshots.
 *
 * Time.  One counter, the clock, numbers commits.  A snapshot is a value of
 * the clock: it sees exactly the commits numbered up to it.  A session that
 * reads anything has its oldest snapshot published in its slot; that one word
 * is also what keeps memory alive: whatever was superseded or unlinked is
 * freed only when every published snapshot is newer than that.  So as long as
 * a snapshot is published, every version it can see, the row of every such
 * version, and the bytes in them stay where they are, and the host may point
 * straight into them.
 *
 * Unless a call says otherwise: sessions call concurrently, a session is used
 * by one thread at a time, and the calling session has a snapshot published.
 * What may run concurrently is then anything but the calls marked EXCLUSIVE,
 * for which the caller guarantees (by the server's table lock) that no other
 * session uses that table.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_ENGINE_H
#define MOT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mot_engine mot_engine;
typedef struct mot_session mot_session; /* private to a process */
typedef struct mot_table mot_table;
typedef struct mot_index mot_index;
typedef struct mot_row mot_row;
typedef struct mot_version mot_version;

typedef uint64_t mot_ts;

#define MOT_TS_NONE UINT64_MAX	/* no snapshot: nothing needed any more */

typedef enum mot_status
{
	MOT_OK = 0,
	MOT_NOT_FOUND,
	MOT_AND_ANOTHER,			/* found, see mot_index_get_other */
	MOT_NO_MEMORY,				/* the region is full for this purpose */
	MOT_TABLE_FULL,				/* a limit: mot_session_full says whose */
	MOT_NO_PRIVATE_MEMORY,		/* malloc failed */
	MOT_DUPLICATE,				/* a live row has this unique key */
	MOT_BUSY,					/* another transaction holds the row:
								 * mot_session_holder says which; wait for its
								 * end, then call again */
	MOT_CHANGED,				/* a newer committed version exists: re-check
								 * on it */
	MOT_DELETED,				/* the row is gone */
	MOT_SELF_CHANGED,			/* this transaction changed the row in this
								 * command or a later one */
	MOT_CONFLICT_CHANGED,		/* 40001: somebody committed a change of a row
								 * we want to change */
	MOT_CONFLICT_DELETED,		/* 40001: the same, a delete */
	MOT_CONFLICT_READ,			/* 40001: a row we read changed (SERIALIZABLE) */
	MOT_CONFLICT_PHANTOM,		/* 40001: a range we read has a new row
								 * (SERIALIZABLE) */
	MOT_CONFLICT_KEPT,			/* 40001: a prepared transaction has read what
								 * we change (SERIALIZABLE) */
	MOT_TOO_LARGE				/* row or key larger than the engine's limits */
} mot_status;

extern const char *mot_status_name(mot_status status);

/* ---------------------------------------------------------------- engine */

#define MOT_ENGINE_PRIVATE	1u	/* one process, threads only (tests,
								 * benchmarks) */
#define MOT_ENGINE_HUGE_TRY 2u	/* reserved huge pages, if they can be had */
#define MOT_ENGINE_HUGE_ON	4u	/* ... or fail */

/*
 * Reserve the region (call before forking).  max_memory: bytes for rows and
 * indexes, at least 64 MB.  slots: how many sessions can be open at a time,
 * at most MOT_MAX_SLOTS.  NULL and a message on failure; also a message if
 * there is an engine but not the huge pages that were to be tried.
 */
#define MOT_MAX_SLOTS 65000
extern mot_engine *mot_engine_create(size_t max_memory, unsigned slots, unsigned flags,
									 char *err, size_t errlen);
extern void mot_engine_destroy(mot_engine *engine);

/* how much memory one huge page is, and whether the engine's is in such pages */
#define MOT_HUGE_PAGE_SIZE ((size_t) 2 << 20)
extern bool mot_engine_huge(const mot_engine *engine);
extern size_t mot_engine_huge_pages(size_t max_memory); /* how many it takes */

/* Empty again, as after create; no session may be open anywhere (EXCLUSIVE). */
extern void mot_engine_reset(mot_engine *engine);

/* clock's present value: number of the last commit drawn */
extern mot_ts mot_engine_clock(const mot_engine *engine);

/* Oldest snapshot anybody needs (the reclamation horizon), computed now. */
extern mot_ts mot_engine_horizon(mot_engine *engine);

/* --------------------------------------------------------------- session */

/*
 * Take slot number "slot" (0 .. slots-1; the host sees to it that one slot
 * has one owner).  What the last owner still owed to reclamation is taken
 * over.  MOT_NO_PRIVATE_MEMORY is the only failure.
 */
extern mot_status mot_session_open(mot_engine *engine, unsigned slot, mot_session **session);

/* Leave the slot; an open transaction is aborted first. */
extern void mot_session_close(mot_session *session);

/*
 * Replay: what another server had room for has to find room here, so this
 * session's new rows and keys may use the reserve that is otherwise kept for
 * updates and deletes.
 */
extern void mot_session_use_reserve(mot_session *session, bool use);

/* What the session keeps ready for itself goes back, as when it is about to end or has done much. */
extern void mot_session_flush(mot_session *session);

/*
 * Snapshots.  take: a snapshot of now; it is (or something older already was)
 * published when this returns.  hold: the oldest snapshot this session still
 * needs is "oldest"; MOT_TS_NONE when it needs none.
 */
extern mot_ts mot_snapshot_take(mot_session *session);
extern void mot_snapshot_hold(mot_session *session, mot_ts oldest);
extern mot_ts mot_snapshot_held(const mot_session *session);

/*
 * The host is between two calls that look at anything, and what it knows by
 * address is rows and versions that its snapshots show, that have been committed
 * since, or that are its own.  Then what was rolled back before now is not kept
 * on its account, however old the snapshot.  (Cursors in indexes are seen to; a
 * scan does this by itself.)
 */
extern void mot_session_move_on(mot_session *session);

/*
 * A host whose processes wait for their clients, between two calls in that sense,
 * may know who does just now: then nobody has to say it.  rests: does the process
 * that has this slot?  fence: every process that has said mot_session_may_rest
 * executes a full barrier before this returns (false: not possible).  So
 * whoever rests after that finds unlinked, when it goes on, what was unlinked
 * before it.
 */
extern bool (*mot_rests_hook) (unsigned slot);
extern bool (*mot_fence_hook) (void);
extern void mot_session_may_rest(mot_session *session);

/*
 * A snapshot that lacks some commits: those that had drawn their timestamps
 * ("without") but not come to their end when "upto" was taken.  The views to
 * read it with have as their number one below the least of these; what lies
 * between it and "upto", and is not among them, is seen besides.
 *
 * That number is older than what was published meanwhile, and is published by
 * lower.  What it sees is there if those commits had not come to their end
 * when lower returned: whoever commits publishes a snapshot from before its
 * draw until then.
 */
typedef struct mot_beyond
{
	mot_ts		upto;
	unsigned	n;
	const mot_ts *without;
} mot_beyond;

extern void mot_snapshot_lower(mot_session *session, mot_ts oldest);

/*
 * This session reads for another one's transaction: by a snapshot of its, and with
 * what it has changed.  The other one, in "slot", holds that snapshot and changes
 * nothing of what is read as long as this one reads; it is not one of SERIALIZABLE, nor
 * are there changes in its journal that nobody else could see (mot_txn_defers).
 */
extern void mot_session_follow(mot_session *session, unsigned slot, mot_ts snapshot);

/*
 * Has nothing been committed with a number from "from" (the least of those without)
 * up to "upto", and is nothing about to be, but what is left out, and does none of
 * that come before its number (precede.c)?  Then who sees what came before sees all that
 * anybody has been told of, and nothing that comes after what it does not see.
 */
extern bool mot_snapshot_only_waits(mot_session *session, const mot_beyond *without, mot_ts from);

/* who holds the row that made the last call return MOT_BUSY */
typedef struct mot_holder
{
	unsigned	slot;
	uint64_t	host_id;		/* what the holder gave mot_txn_begin; read
								 * before the row was seen held the second
								 * time, so it names the holder or (if it has
								 * just ended) somebody for whom waiting is
								 * harmless */
	const mot_row *row;
} mot_holder;

extern mot_holder mot_session_holder(const mot_session *session);

/*
 * Free what can be freed of what this session's slot owes, at most "budget"
 * objects (0: all).  Returns how many are still owed.  Called by commit now
 * and then by itself.  mot_reclaim_all works on every slot (a worker of the
 * host calls it every second or so for the idle and the departed).  A step does
 * part of that, some milliseconds long; false: nothing could be done, or who is
 * short of memory waits to do it.  (The engine itself does such steps when memory
 * is short.)
 */
extern uint64_t mot_reclaim(mot_session *session, unsigned budget);
extern uint64_t mot_reclaim_all(mot_session *session);

/* Tables and indexes that were dropped and whose memory is not free yet: somebody may still be at it. */
extern unsigned mot_engine_dropped(const mot_engine *engine);
extern bool mot_reclaim_step(mot_session *session, uint64_t *left);

/* ---------------------------------------------------------------- tables */

/*
 * A new empty table, not in the directory.  host_db/host_id: how the host
 * calls it.  Anybody may call; nobody else can reach it until published.
 */
extern mot_status mot_table_create(mot_session *session, uint32_t host_db, uint32_t host_id,
								   mot_table **table);

/*
 * The table and its indexes go: at once for the directory (if it is there),
 * and all its memory as soon as no published snapshot is old enough to be
 * looking at it.  EXCLUSIVE.  Never fails.
 */
extern void mot_table_drop(mot_session *session, mot_table *table);

/*
 * The same for one that was never published and nobody else knows of: no
 * snapshot, however old, keeps its memory, which is free when this returns, unless
 * some of it is still owed.
 */
extern void mot_table_discard(mot_session *session, mot_table *table);

/* directory: by host_db and host_id; publish replaces what is there and returns it (or NULL) */
extern mot_table *mot_table_find(mot_engine *engine, uint32_t host_db, uint32_t host_id);
extern mot_table *mot_table_publish(mot_engine *engine, mot_table *table);

/* walk the directory under its lock: visit(arg, table); must be short and must not call the engine's
 * directory functions */
extern void mot_table_each(mot_engine *engine, void (*visit) (void *arg, mot_table *table), void *arg);
extern uint32_t mot_table_host_db(const mot_table *table);
extern uint32_t mot_table_host_id(const mot_table *table);

/*
 * What the host calls the table that this is the storage of (host_id until it is
 * set), and whether host_id is a number of the storage's own.
 */
extern void mot_table_set_owner(mot_table *table, uint32_t owner, bool numbered);
extern uint32_t mot_table_owner(const mot_table *table);
extern bool mot_table_is_numbered(const mot_table *table);

/* never used for another table while the engine runs: tells a cache that its table pointer is stale */
extern uint64_t mot_table_serial(const mot_table *table);

/*
 * The host's description of the table: bytes of its own making, copied into
 * the region.  make may fail (MOT_NO_MEMORY), put cannot: it replaces what is
 * there, which goes when nobody can be reading it any more.  A description
 * that was not put is given back by discard.  The pointer that
 * mot_table_definition returns (NULL: none) is good as long as the caller's
 * snapshot is published.
 */
typedef struct mot_definition mot_definition;

extern mot_status mot_definition_make(mot_session *session, const void *bytes, size_t len,
									  mot_definition **definition);
extern void mot_definition_discard(mot_session *session, mot_definition *definition);
extern void mot_table_put_definition(mot_session *session, mot_table *table,
									 mot_definition *definition);
extern const void *mot_table_definition(const mot_table *table, size_t *len);

/*
 * A table made by a transaction that may still abort is unsettled; the one it
 * took the place of in the directory (or NULL) is what everybody else would
 * still have.  New tables are settled; the host says otherwise.
 */
extern void mot_table_set_unsettled(mot_table *table, mot_table *replaces);
extern void mot_table_settle(mot_table *table);
extern bool mot_table_is_settled(const mot_table *table, mot_table **replaces);

/*
 * A commit that gives a table rows which it has loaded, not inserted: older
 * snapshots must not see them.  The host keeps to that; the engine remembers
 * the number, and whether whoever has one is to be refused.  draw: a number
 * for that commit if it has drawn none itself.
 */
extern mot_ts mot_commit_draw(mot_session *session);
extern void mot_table_set_born(mot_table *table, mot_ts ts, bool refuse_older);
extern mot_ts mot_table_born(const mot_table *table, bool *refuse_older);

typedef struct mot_table_stat
{
	int64_t		rows;			/* live rows as of the commits so far */
	uint64_t	row_bytes;		/* pages of rows and versions */
	uint64_t	used_bytes;		/* of them in live objects */
	uint64_t	index_bytes;	/* pages of all its indexes */
	uint64_t	inserts,
				updates,
				deletes;		/* committed */
} mot_table_stat;

extern void mot_table_stats(const mot_table *table, mot_table_stat *stat);

/* live rows and versions, but for those larger than a page */
extern uint64_t mot_table_objects(const mot_table *table);

/* --------------------------------------------------------------- indexes */

#define MOT_INDEX_UNIQUE 1u
#define MOT_INDEX_DERIVED 2u	/* deleted rows leave it by themselves */

/*
 * A new empty index of a table (EXCLUSIVE, or against concurrent readers
 * only: attach makes it findable).  host_id: the host's number for it.
 * At most MOT_MAX_INDEXES a table: MOT_TOO_LARGE.
 */
#define MOT_MAX_INDEXES 64
#define MOT_MAX_KEY 8160		/* bytes of a key the host may give */
extern mot_status mot_index_create(mot_session *session, mot_table *table, uint32_t host_id,
								   unsigned flags, mot_index **index);

/*
 * How deleted rows leave the indexes that were made with MOT_INDEX_DERIVED: when
 * nobody can see them any more, whoever reclaims their memory asks the host
 * for the key of their last version.  (Of other indexes mot_index_drop_entry has to
 * say when the row is deleted.)  The key goes to "key", at most MOT_MAX_KEY bytes;
 * flags as for mot_index_add.  False: not now; it is asked again later.
 *
 * This is asked in any session's process, of any table, at any time (at the end of a
 * commit, too), so the host must know it from the table's definition alone: not
 * before one has been put with the index attached, or the host has said
 * mot_index_described.  It must not raise, and may call
 * nothing of the engine but mot_version_*, mot_index_table, mot_index_host_id
 * and mot_table_definition, serial, host_db and host_id.  A definition that means another
 * index by the same host_id is put only after the older index was dropped.
 */
extern bool (*mot_index_key_hook) (const mot_index *index, const mot_version *version,
								   void *key, size_t *len, unsigned *flags);

/* 64 bits in which the host says what form it gave the index's keys */
extern void mot_index_set_form(mot_index *index, uint64_t form);
extern uint64_t mot_index_form(const mot_index *index);

extern void mot_index_described(mot_index *index);
extern void mot_index_attach(mot_index *index); /* mot_table_index finds it */
extern void mot_index_detach(mot_index *index);

/* Memory goes as with a table; detaches first.  EXCLUSIVE against writers and readers. */
extern void mot_index_drop(mot_session *session, mot_index *index);
extern mot_index *mot_table_index(const mot_table *table, uint32_t host_id);
extern unsigned mot_table_index_count(const mot_table *table);
extern mot_index *mot_table_index_at(const mot_table *table, unsigned i);
extern uint32_t mot_index_host_id(const mot_index *index);
extern bool mot_index_is_unique(const mot_index *index);
extern mot_table *mot_index_table(const mot_index *index);

/*
 * An index built later holds the rows as they were newest at that time; a
 * snapshot older than this must not use it (it would miss older versions).
 * Rows that the building transaction itself has changed are in it as that has
 * left them, so for others it is valid from that transaction's commit only:
 * the host sets that, and MOT_TS_NONE before others can come to the index.
 */
extern mot_ts mot_index_valid_from(const mot_index *index);
extern void mot_index_set_valid_from(mot_index *index, mot_ts ts);

typedef struct mot_index_stat
{
	uint64_t	bytes;			/* pages held */
	uint64_t	used_bytes;
	int64_t		stale_entries;	/* entries that stand for an older key of
								 * their row */
} mot_index_stat;

extern void mot_index_stats(const mot_index *index, mot_index_stat *stat);

/*
 * An index entry can outlive its key.  When the index has such entries, the
 * engine asks whether a version (of the row the entry leads to) has the
 * entry's key: "matches" of this private handle.  It must not raise or call
 * the engine.  Without handle->matches every entry is believed.
 *
 * If it is cheap, "exact" says that the engine may as well ask it whether a row
 * that it found without the index has the key.
 */
typedef struct mot_index_handle
{
	mot_index  *index;
	bool		(*matches) (void *arg, const mot_version *version, const void *key, size_t len);
	void	   *arg;
	bool		exact;

	/*
	 * NULL: the keys' order is that of their bytes.  Else: are two keys in
	 * order, of which the first has the lesser bytes?  As "matches"; one of
	 * them may be a bound.
	 */
	bool		(*in_order) (void *arg, const void *lesser, size_t lesser_len,
							 const void *greater, size_t greater_len);
} mot_index_handle;

/*
 * An index that is made beside writers (CREATE INDEX CONCURRENTLY) is behind when it is
 * attached, at a moment at which nobody is writing: rows that are there have no
 * entries yet.  Writers keep it as they do others; who takes a key from a row
 * first makes up for the entry, by mot_index_catch_up.  That is then called for
 * all rows, with a snapshot held since before the row was read: its entry is there
 * afterwards, if the row still has the key or had it under that snapshot.  It is nothing
 * that a transaction takes back.  "check": MOT_DUPLICATE or MOT_BUSY as from mot_index_add,
 * if others have the key and the row has it still.
 */
extern void mot_index_set_behind(mot_index *index, bool behind);
extern bool mot_index_is_behind(const mot_index *index);
extern mot_status mot_index_catch_up(mot_session *session, const mot_index_handle *handle, mot_row *row,
									 const void *key, size_t len, unsigned flags, bool check,
									 mot_row **other);

/* --------------------------------------------------------------- reading */

/* What a statement sees: commits up to "snapshot", and of its own transaction
 * the changes of commands before "command" (PostgreSQL's curcid). */
typedef struct mot_view
{
	mot_ts		snapshot;
	uint32_t	command;
	const mot_beyond *beyond;	/* NULL: nothing besides; the host's */
	bool		aside;			/* what it shows the transaction has not read */
} mot_view;

extern bool mot_beyond_sees(const mot_beyond *beyond, mot_ts ts);

/* is the commit with this number seen? */
static inline bool
mot_view_sees(const mot_view *view, mot_ts ts)
{
	return ts <= view->snapshot || (view->beyond != NULL && mot_beyond_sees(view->beyond, ts));
}

#define MOT_COMMAND_MAX 0x7fffffffu /* as a view's command: sees all own
									 * changes */

/* the version's row bytes (8-byte aligned), and the 13 bits the host stored with them */
extern const void *mot_version_data(const mot_version *version);
extern unsigned mot_version_host_bits(const mot_version *version);

/* commit timestamp; 0 while its transaction has not committed */
extern mot_ts mot_version_ts(const mot_version *version);
#define MOT_HOST_BITS 13

/*
 * Are these, of one row, the same?  One that is committed may lie elsewhere when it
 * is looked for again: reclamation and the mover of places put it there.
 */
extern bool mot_version_same(const mot_version *a, const mot_version *b);

/*
 * The version of a row this view sees, or NULL.  Registers the read with a
 * SERIALIZABLE transaction (MOT_NO_PRIVATE_MEMORY is remembered and reported
 * by mot_txn_prepare).  May wait some instructions for a commit that is just
 * being installed.
 */
extern const mot_version *mot_row_visible(mot_session *session, const mot_view *view,
										  mot_table *table, mot_row *row);

/*
 * The newest state of a row, own changes included, no matter what any
 * snapshot sees: its version, or NULL when it is deleted or not committed.
 */
extern const mot_version *mot_row_newest(mot_session *session, mot_row *row);

/*
 * What this transaction has made of a row, change by change: how many of its own
 * changes a version is the outcome of (0: it is committed); how many there are, and
 * the command of the last one; and the row as it was after so many of them (0:
 * as the first one found it; if there is none, as the view sees it).  NULL: it was
 * deleted, or not there yet.
 */
extern unsigned mot_version_changes(const mot_row *row, const mot_version *version);
extern unsigned mot_row_changes(mot_session *session, mot_row *row, uint32_t *command);
extern const mot_version *mot_row_after_changes(mot_session *session, const mot_view *view,
												mot_row *row, unsigned changes);

/*
 * A row as a 47-bit number, for the host's row identifier, and back.  A
 * number that no row of this table has gives NULL; the row may since have
 * been deleted (or even freed and used for another one, if the caller's
 * snapshot was not published all the time since it got the number).
 */
extern uint64_t mot_row_number(mot_session *session, const mot_row *row);
extern mot_row *mot_row_by_number(mot_session *session, mot_table *table, uint64_t number);

/* bits that are enough for all rows' numbers; the host may use those above for its own ends */
extern unsigned mot_row_number_bits(const mot_engine *engine);

/* All rows of a table, in no particular order. */
typedef struct mot_scan
{
	mot_table  *table;
	mot_view	view;
	uint64_t	next_page,
				pages;
	bool		in_page;
	uint64_t	opaque[8];
} mot_scan;

extern void mot_scan_begin(mot_session *session, mot_scan *scan, mot_table *table,
						   const mot_view *view);

/* false at the end */
extern bool mot_scan_next(mot_session *session, mot_scan *scan, mot_row **row,
						  const mot_version **version);

/*
 * The next row of which another transaction has a new version, not committed so far, whatever the
 * view sees of it: who holds it.  False at the end.
 */
extern bool mot_scan_held(mot_session *session, mot_scan *scan, mot_holder *holder);

/*
 * Where the rows of a scan's page lie: between the first and the last that it has
 * room for.  false: there is no such page now, so none of its rows is older than a
 * snapshot that is published.
 */
extern bool mot_scan_page(mot_table *table, uint64_t page, const mot_row **first, const mot_row **last);

/*
 * The row with this key in a unique index (a key added without MOT_KEY_DISTINCT),
 * as the view sees it: MOT_OK or MOT_NOT_FOUND.  Of an older snapshot's view MOT_AND_ANOTHER if
 * there are two: one that has given the key away since, and this transaction's own.
 */
extern mot_status mot_index_get(mot_session *session, const mot_view *view,
								const mot_index_handle *handle,
								const void *key, size_t len,
								mot_row **row, const mot_version **version);

/* That one: the row that is not "first". */
extern mot_status mot_index_get_other(mot_session *session, const mot_view *view,
									  const mot_index_handle *handle,
									  const void *key, size_t len, const mot_row *first,
									  mot_row **row, const mot_version **version);

/*
 * Ahead of mot_index_get, whoever knows the key some time before the row is needed can have the
 * processor fetch what is in no cache meanwhile: first what says where the row may be, and, if there
 * is an occasion in between, the row.  No snapshot is needed for that, nor is anything kept.
 */
extern void mot_index_ahead(const mot_index_handle *handle, const void *key, size_t len);
extern void mot_index_ahead_more(const mot_index_handle *handle, const void *key, size_t len);

/*
 * Range of an index, in key order or backwards.  Bounds are prefixes of keys:
 * see mot_bound in tree.h.  A private struct of mot_cursor_size() bytes.
 */
typedef enum mot_bound_kind
{
	MOT_BOUND_NONE, MOT_BOUND_INCLUSIVE, MOT_BOUND_EXCLUSIVE
} mot_bound_kind;

typedef struct mot_bound
{
	mot_bound_kind kind;
	const void *key;
	size_t		len;
} mot_bound;

typedef struct mot_cursor mot_cursor;

extern size_t mot_cursor_size(void);
extern mot_status mot_cursor_open(mot_session *session, mot_cursor *cursor, const mot_view *view,
								  const mot_index_handle *handle,
								  const mot_bound *lower, const mot_bound *upper, bool backward);
extern bool mot_cursor_next(mot_cursor *cursor, mot_row **row, const mot_version **version);
extern void mot_cursor_close(mot_cursor *cursor);

/* ---------------------------------------------------------- transactions */

typedef enum mot_isolation
{
	MOT_READ_COMMITTED,			/* locks rows when it touches them */
	MOT_SNAPSHOT,				/* REPEATABLE READ: first committer wins;
								 * locks at commit */
	MOT_SERIALIZABLE			/* and reads are validated at commit */
} mot_isolation;

/*
 * One transaction a session at a time.  host_id: what a waiter is told of the
 * holder of a row.  At MOT_SNAPSHOT and above, "snapshot" is the transaction's
 * one snapshot, published all the time until its end; at MOT_SNAPSHOT it may be
 * one with something beyond, which is said next.
 */
extern void mot_txn_begin(mot_session *session, mot_isolation isolation, mot_ts snapshot, uint64_t host_id);
extern void mot_txn_set_beyond(mot_session *session, const mot_beyond *beyond);
extern bool mot_txn_active(const mot_session *session);

/*
 * SERIALIZABLE.  A transaction may commit whose reads do not stand any more,
 * if it can come before those who changed what it read (precede.c).  The
 * host says before prepare that this one may, which has touched nothing
 * else that depends on the order.  A host that does so for any tells of all
 * SERIALIZABLE transactions: begin, before the snapshot is taken; begun, when
 * it is known which (mot_txn_begin does that, too); end, when nothing is read with it
 * any more (so do mot_txn_commit and mot_txn_abort).
 */
extern void mot_serial_begin(mot_session *session);
extern void mot_serial_begun(mot_session *session, mot_ts snapshot);
extern void mot_serial_end(mot_session *session);
extern void mot_txn_may_precede(mot_session *session);

/* a savepoint takes back an index of the table, or a copy: what was read there has been read in it */
extern void mot_txn_read_instead(mot_session *session, mot_table *table, const mot_table *copy, const mot_index *index);

/* from now on waiters are told this (a savepoint has something else to wait for) */
extern void mot_txn_set_host_id(mot_session *session, uint64_t host_id);

/* has it changed or locked anything? */
extern bool mot_txn_has_work(const mot_session *session);
extern bool mot_txn_has_writes(const mot_session *session);
extern bool mot_txn_defers(const mot_session *session);

/*
 * Commit in two steps.  prepare locks what is not locked yet, in address
 * order, and validates; it may return MOT_BUSY (wait, call again) or a
 * conflict (the host then aborts).  After MOT_OK only commit or abort may
 * follow, and commit cannot fail.  An unprepared commit is allowed for
 * transactions that have no deferred lock and nothing to validate
 * (READ COMMITTED).  commit returns the commit timestamp (0: none was drawn).
 */
extern mot_status mot_txn_prepare(mot_session *session);

/*
 * The steps of prepare, for a host that has something to do in between: lock
 * may return MOT_BUSY or a conflict as prepare does; draw (at SERIALIZABLE, all
 * locked) draws the timestamp and returns it, 0 if none is needed yet.  prepare
 * then does what is left to do.
 */
extern mot_status mot_txn_lock(mot_session *session);
extern mot_ts mot_txn_draw(mot_session *session);

/*
 * SERIALIZABLE: the transaction changes something outside the engine as of its
 * commit, so prepare validates its reads (and draws a timestamp) even if it
 * has changed nothing here.
 */
extern void mot_txn_order_reads(mot_session *session);

/* Are they, without that?  Who has learned of what its snapshot lacks need not have changed anything. */
extern bool mot_txn_is_validated(const mot_session *session);
extern mot_ts mot_txn_commit(mot_session *session);
extern void mot_txn_abort(mot_session *session);

/*
 * A host that lets time pass between draw and commit at SERIALIZABLE makes
 * readers who are entitled to the commit wait for it.  They call this then,
 * again and again (it sleeps for an instant); it may jump out of the engine's
 * call, which holds nothing.
 */
extern void (*mot_row_wait_hook) (void);

/*
 * Called when a transaction or rollback has left much for reclamation: a host
 * whose maintenance sleeps should wake it.
 */
extern void (*mot_owed_much_hook) (void);

/*
 * Would the transaction fail if it committed now, for rows it has changed but
 * not locked, or (SERIALIZABLE) for what it has read?  MOT_OK or the
 * conflict; nothing is changed.  (A host about to report a duplicate key asks:
 * the key may be there because others came first.)
 */
extern mot_status mot_txn_check(mot_session *session);

/*
 * What the transaction changed, in order, for the host's log; after prepare
 * (so that nothing is deferred) and before commit.  pos starts at 0.
 * before: what the version replaces (updates and deletes); after: the new
 * one (inserts and updates).
 */
typedef enum mot_change_kind
{
	MOT_CHANGE_INSERT, MOT_CHANGE_UPDATE, MOT_CHANGE_DELETE
} mot_change_kind;

typedef struct mot_change
{
	mot_change_kind kind;
	mot_table  *table;
	mot_row    *row;
	const mot_version *before;
	const mot_version *after;
} mot_change;

extern bool mot_txn_next_change(const mot_session *session, uint64_t *pos, mot_change *change);

/*
 * Durability after install.  The host may let a commit be seen before its log
 * record is durable: it announces that before the commit (position: where the
 * log has to be durable up to), and says durable when it is.  What a session's transactions have seen of such commits is
 * remembered: needs tells up to which position the log has to be durable
 * before the host may report anything of it to a client (0: nothing to wait
 * for), and forgets it.  Rows deleted
 * by such a commit are not reclaimed before it is durable, so that whoever
 * misses them is told, too.
 */
extern void mot_commit_announce(mot_session *session, uint64_t position);
extern void mot_commit_durable(mot_session *session);
extern uint64_t mot_session_needs(mot_session *session);

/* A savepoint is a position in the journal; rollback undoes all later changes
 * and releases rows locked later.  Cannot fail. */
typedef uint64_t mot_mark;

/*
 * The keys of the rows that the transaction has inserted are those that
 * mot_index_key_hook makes of them, now and later: a rollback of many may leave
 * it to reclamation to take them out of indexes.  Not so unless the host says it,
 * in each transaction.
 */
extern void mot_txn_keys_derive(mot_session *session, bool derive);
extern mot_mark mot_txn_mark(mot_session *session);
extern void mot_txn_rollback_to(mot_session *session, mot_mark mark);

/* The same of one's own accord: what made it do so it has read by the engine's calls, and knows of nothing else. */
extern void mot_txn_take_back(mot_session *session, mot_mark mark);

/* --------------------------------------------------------------- writing */

/*
 * A new row of "size" bytes; *data is where the host writes them, now, before
 * it does anything else with the engine.  Nobody else sees the row before
 * commit.  "command": the id of the command that does this (PostgreSQL's
 * cid).  Then the host adds its index entries.  If one of them fails, or
 * anything else raises, rolling back to a mark taken before undoes it.
 */
extern mot_status mot_row_insert(mot_session *session, mot_table *table, uint32_t command,
								 unsigned host_bits, size_t size,
								 mot_row **row, void **data);

/*
 * What a row is locked for.  CHANGE waits until prepare above READ COMMITTED,
 * the others lock at once at every level; who deletes a row locks it for UPDATE.
 * They exclude each other as PostgreSQL's row locks do: CHANGE is "no key
 * update" (a change of a unique key strengthens it).
 */
typedef enum mot_row_mode
{
	MOT_MODE_CHANGE,
	MOT_MODE_UPDATE,
	MOT_MODE_NO_KEY_UPDATE,
	MOT_MODE_SHARE,
	MOT_MODE_KEY_SHARE
} mot_row_mode;

/*
 * Get the right to change (or lock) a row found through "view" with version
 * "seen".  MOT_OK: no newer version; go ahead.  MOT_CHANGED (READ COMMITTED,
 * and KEY_SHARE, whose caller sees whether the key has changed): it is ours now, but *newest is what it looks like now: re-check on
 * that, then go ahead or mot_row_unlock.  MOT_DELETED (READ COMMITTED):
 * somebody deleted it; nothing is held.  MOT_BUSY: wait for mot_session_holder,
 * call again.  MOT_SELF_CHANGED: a command not before view->command already
 * changed it (*newest: that version, NULL for a delete).  MOT_CONFLICT_*: as named.
 * Also MOT_NO_MEMORY, MOT_NO_PRIVATE_MEMORY.
 */
extern mot_status mot_row_lock(mot_session *session, const mot_view *view, mot_table *table,
							   mot_row *row, const mot_version *seen, mot_row_mode mode,
							   const mot_version **newest);

/* Does this transaction own or share the row?  Who wants more of it then need not queue behind others who wait. */
extern bool mot_row_held(mot_session *session, const mot_row *row);

/* Does the transaction of this slot?  For a host that wants to know who waits for whom. */
extern bool mot_row_held_by(mot_engine *engine, const mot_row *row, unsigned slot);

/* take back the lock of the immediately preceding mot_row_lock, if that call acquired it */
extern void mot_row_unlock(mot_session *session, mot_row *row);

/*
 * MOT_MODE_SHARE of a row that the transaction shares by its key, whatever that looks like now;
 * nothing if it owns it.
 */
extern mot_status mot_row_share(mot_session *session, mot_row *row);

/*
 * A new version of a row that mot_row_lock granted.  May itself return
 * MOT_BUSY, or a conflict at MOT_SNAPSHOT and above if keys change (such a
 * change takes the row's lock at once), and MOT_BUSY if a unique key changes that
 * somebody shares: wait and call again.  changes: which index keys differ from
 * the previous version's; the host then calls
 * mot_index_drop_entry with the old and mot_index_add with the new key, for
 * those indexes, after this.  *data as with insert.
 */
#define MOT_KEYS_CHANGE 1u
#define MOT_UNIQUE_KEYS_CHANGE 2u
#define MOT_LOCK_NOW 4u			/* as if a key changed */

extern mot_status mot_row_update(mot_session *session, mot_table *table, mot_row *row,
								 uint32_t command, unsigned host_bits, size_t size,
								 unsigned changes, void **data);

/* Delete a row that mot_row_lock granted; mot_index_drop_entry follows for every index without
 * MOT_INDEX_DERIVED. */
extern mot_status mot_row_delete(mot_session *session, mot_table *table, mot_row *row,
								 uint32_t command);

/*
 * The same for a row that the host has put, or will put, into another table.  Who has missed it
 * (MOT_DELETED, MOT_CONFLICT_DELETED) can ask for the difference, as long as his snapshot sees what was there before.
 */
extern mot_status mot_row_move_away(mot_session *session, mot_table *table, mot_row *row,
									uint32_t command);
extern bool mot_row_moved_away(mot_session *session, mot_row *row);

/*
 * Other bytes for a row's newest version, "seen": the host vouches that they say the same.  It keeps its
 * number, so nobody's snapshot, change or validation is concerned; who has the old bytes in hand may go on
 * reading them.  That belongs to no transaction, and none takes it back.  The row is held for an instant, in
 * which "log" is called; that must neither fail nor wait for who might wait for the row.  The caller has had a snapshot
 * since before it read the row.  MOT_CHANGED: there is a newer version; MOT_BUSY: there may be; MOT_SELF_CHANGED: the row is
 * held by the session itself.
 */
extern mot_status mot_row_amend(mot_session *session, mot_table *table, mot_row *row, const mot_version *seen,
								unsigned host_bits, const void *data, size_t size,
								void (*log) (void *arg), void *arg);

/*
 * Entry key -> row.  For a unique index this is the check, too: MOT_DUPLICATE
 * with *other = the row that has the key (may be one of our own), MOT_BUSY
 * while it depends on a transaction still running.  A key with
 * MOT_KEY_DISTINCT (it holds a null) equals no other.  handle->matches is
 * used to see whether an entry found still stands for its row's key.  One with
 * MOT_KEY_ODD is not where the host's order has it.
 *
 * A key of no bytes, here and wherever keys are added or dropped, is none: the
 * row has no entry in the index.
 */
#define MOT_KEY_DISTINCT 1u
#define MOT_KEY_ODD 2u			/* see mot_index_has_odd */
extern mot_status mot_index_add(mot_session *session, const mot_index_handle *handle, mot_row *row,
								const void *key, size_t len, unsigned flags, mot_row **other);

/*
 * MOT_DUPLICATE: as of which version (mot_version_ts) had the other row the key?  A newer one may
 * have another.
 */
extern mot_ts mot_rival_ts(const mot_session *session);

/*
 * Of an index without MOT_INDEX_UNIQUE: does another row have this key, or (MOT_BUSY) may
 * it when its transaction ends?  The row's own entry is there already.  "row" NULL: does a row that
 * this transaction has not written?
 */
extern mot_status mot_index_rivals(mot_session *session, const mot_index_handle *handle, mot_row *row,
								   const void *key, size_t len, mot_row **other);

/*
 * The entry key -> row is to go when this transaction has committed and nobody can need it any more.
 * Of a row that has not been in the index (a key of no bytes), and comes into it, this is said, too.
 */
extern mot_status mot_index_drop_entry(mot_session *session, const mot_index_handle *handle, mot_row *row,
									   const void *key, size_t len, unsigned flags);

/*
 * Index build (EXCLUSIVE against writers of the table; the index is not
 * attached yet): walk the newest version of every live row (the calling
 * transaction's own included) with mot_build_next, add each one's key (sorted,
 * see mot_entry_form, or one by one with mot_load_key), end.
 * No concurrency control, no journal: a failed build is dropped whole.
 * MOT_DUPLICATE names the other row.
 */
typedef struct mot_build
{
	mot_session *session;
	mot_index  *index;
	mot_scan	scan;
} mot_build;

extern void mot_build_begin(mot_session *session, mot_build *build, mot_index *index);
extern bool mot_build_next(mot_build *build, mot_row **row, const mot_version **version);
extern void mot_build_end(mot_build *build);	/* sets the index's valid_from */

/*
 * The same walk for other ends: mot_build_next only.  view: as of that, beside
 * writers; NULL: the newest.
 */
extern void mot_build_rows(mot_session *session, mot_build *build, mot_table *table,
						   const mot_view *view);

/*
 * The quicker way, for an index that has no entries yet (EXCLUSIVE as above):
 * form gives a row's entry as bytes and a value, the host collects them all,
 * sorts them by the bytes (as memcmp has it, and what is a beginning of
 * another is before it), and adds them in that order.  "bytes" is the key
 * itself or in "buffer", which has MOT_ENTRY_MAX bytes; the value fits into 48
 * bits.
 *
 * A mot_fill is private memory of mot_fill_size() bytes.  "full": the index
 * gets as small as it can be, otherwise with room for a key here and there
 * (what is brought back must not need more than it did).  add: MOT_DUPLICATE if
 * the entry is not greater than the one before, which led to *other.  An index
 * whose fill was not ended is empty, holds memory all the same, and is dropped.
 */
#define MOT_ENTRY_MAX (MOT_MAX_KEY + 8)

typedef struct mot_sorted_entry
{
	const void *bytes;
	size_t		len;
	uint64_t	value;
} mot_sorted_entry;

typedef struct mot_fill mot_fill;

extern mot_status mot_entry_form(mot_session *session, const mot_index *index, mot_row *row,
								 const void *key, size_t len, unsigned flags, void *buffer,
								 mot_sorted_entry *entry);
extern size_t mot_fill_size(void);
extern mot_status mot_fill_begin(mot_session *session, mot_fill *fill, mot_index *index, bool full);
extern mot_status mot_fill_add(mot_fill *fill, const mot_sorted_entry *entry, mot_row **other);
extern mot_status mot_fill_end(mot_fill *fill);

/* the row that a sorted entry's value says */
extern mot_row *mot_entry_row(uint64_t value);

/*
 * Bulk load (EXCLUSIVE): a row that is committed at once, visible to every
 * snapshot, as COPY FREEZE has it; its index entries are added without
 * concurrency control.  The table must have been created (or emptied) by the
 * calling transaction, which drops it when it aborts.
 */
extern mot_status mot_load_row(mot_session *session, mot_table *table, unsigned host_bits, size_t size,
							   mot_row **row, void **data);
extern mot_status mot_load_key(mot_session *session, const mot_index_handle *handle, mot_row *row,
							   const void *key, size_t len, unsigned flags, mot_row **other);

/*
 * Several sessions may load rows into a table at a time (not keys), and fill one
 * of its indexes each.  load_done: all of them have finished; the indexes then
 * serve every snapshot.
 */
extern void mot_load_done(mot_table *table);

/*
 * A table whose rows were loaded, about to be published: from now on they are
 * visible to snapshots not older than the number returned only, as if they
 * had been inserted by a commit with that number (EXCLUSIVE).
 */
extern mot_ts mot_load_stamp(mot_session *session, mot_table *table);

/*
 * Other bytes for a loaded row of a table that nobody else can see: *data, to be
 * written.  MOT_TOO_LARGE: they have no room where it is; load another one.
 */
extern mot_status mot_load_change(mot_session *session, mot_row *row, unsigned host_bits, size_t size,
								  void **data);

/* take a loaded row back, of which nobody else knows; its keys loaded so far the host names by unload_key */
extern void mot_unload_row(mot_session *session, mot_table *table, mot_row *row);
extern void mot_unload_key(mot_session *session, const mot_index_handle *handle, mot_row *row,
						   const void *key, size_t len, unsigned flags);

/* ---------------------------------------------------------- host's bytes */

/*
 * Memory in the region for the host's own shared bookkeeping, bounded as all
 * of it is by max_memory.  NULL: *status is MOT_NO_MEMORY.  "Needed": there may be
 * what is kept for deletes, too, where new rows have no room any more.  Freed by any
 * session, at once: the host knows that nobody is looking.
 */
extern void *mot_host_alloc(mot_session *session, size_t size, bool needed, mot_status *status);
extern void mot_host_free(mot_session *session, void *bytes);

#include "mot_order.h"
#include "mot_parcel.h"
#include "mot_places.h"
#include "mot_quota.h"
#include "mot_report.h"

#endif							/* MOT_ENGINE_H */
