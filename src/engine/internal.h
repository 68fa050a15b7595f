/*-------------------------------------------------------------------------
 *
 * internal.h
 *	  The shapes that the files of the engine share.
 *
 *	row		 one word, the head, and behind it room for one version:
 *
 *				head:  [ owner 16 | newest version 48 ]
 *
 *			 owner is the slot number + 1 of the transaction that holds the
 *			 row's lock, 0 if nobody does.  Locking is one compare-and-swap on
 *			 the head; a reader gets newest version and owner in one load.  A
 *			 row never moves while it lives.
 *
 *	version	 two words and the row bytes:
 *
 *				ts:    commit timestamp, or UNCOMMITTED | command while its
 *					   transaction runs
 *				link:  [ previous version 48 | host bits 13 | engine bits 3 ]
 *
 *			 A version's bytes never change.  The row's own room is used
 *			 first, again for every update that finds it free, and
 *			 reclamation moves a version back into it when it is free and
 *			 the row is quiet (Cicada's best-effort inlining): a look-up then
 *			 costs one cache miss less, and an updated table no memory.
 *
 *	chain	 newest to oldest.  On top there may be versions of one
 *			 transaction in progress, the owner's; below them timestamps
 *			 fall.  A reader takes the first version not newer than its
 *			 snapshot and never looks further, so what lies beneath may be
 *			 freed when every snapshot is at least as new as the one above.
 *
 *	slot	 what a session shows to others: published snapshot, commit
 *			 state, identity for waiters, and the queue of what its
 *			 transactions left for reclamation.
 *
 * How a reader with snapshot S judges a version that is not committed yet,
 * whose writer is not itself: it reads the writer's commit state.  "None": the
 * writer will draw its timestamp later than now, so greater than S: the
 * version is not visible.  "Drawing" or a timestamp up to S: the few
 * instructions (or the log write) until it is installed are waited for.
 * A timestamp greater than S: not visible.
 *
 * Lock order: journal and read set are private; slot queue lock -> memory's
 * locks.  Tree node locks are never held together with a queue lock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_INTERNAL_H
#define MOT_INTERNAL_H

#include "mot_engine.h"
#include "memory/memory.h"
#include "tree/tree.h"
#include "tree/tree_cursor.h"
#include "table/hint.h"
#include "txn/owed.h"
#include "table/places.h"
#include "txn/share.h"

#define PTR_MASK	((UINT64_C(1) << 48) - 1)
#define OWNER_SHIFT 48
#define HEAD_FULL	UINT64_C(1) /* the owner's lock has the strength "update" */
#define HEAD_FLAGS	UINT64_C(7) /* versions are aligned to 8 bytes */

struct mot_version
{
	_Atomic uint64_t ts;
	_Atomic uint64_t link;
	/* row bytes follow */
};

struct mot_row
{
	_Atomic uint64_t head;
	mot_version inlined;		/* the room for one version; its bytes follow */
};

#define ROW_OVERHEAD	sizeof(mot_row)
#define TS_UNCOMMITTED	(UINT64_C(1) << 63)
#define TS_FREE			UINT64_MAX	/* inlined.ts: nobody uses the room */
#define TS_LOADED		1		/* bulk-loaded: older than any snapshot */
#define TS_FIRST		2		/* clock's first value */

#define LINK_TOMBSTONE	1u		/* the row is deleted as of this version */
#define LINK_FITS		2u		/* its bytes fit into the row's own room */
#define LINK_KEYED		4u		/* this or an earlier version changed an index
								 * key of the row */
#define LINK_SHARED		8u		/* of a tombstone: several rows', see
								 * mot_grave */
#define LINK_MOVED		16u		/* of a tombstone: the row goes on elsewhere */
#define LINK_HOST_SHIFT 3		/* of versions with bytes only */
#define LINK_BITS		0xffffu

static inline mot_version *
head_version(uint64_t head)
{
	return (mot_version *) (uintptr_t) (head & PTR_MASK & ~HEAD_FLAGS);
}

static inline unsigned
head_owner(uint64_t head)
{
	return (unsigned) (head >> OWNER_SHIFT);
}

static inline uint64_t
make_head(unsigned owner, const mot_version *version)
{
	return ((uint64_t) owner << OWNER_SHIFT) | (uint64_t) (uintptr_t) version;
}

static inline mot_version *
link_previous(uint64_t link)
{
	return (mot_version *) (uintptr_t) (link >> 16);
}

static inline uint64_t
make_link(const mot_version *previous, unsigned bits)
{
	return ((uint64_t) (uintptr_t) previous << 16) | bits;
}

/* relaxed: a version's link is set before the head or ts that makes it reachable is released */
static inline uint64_t
version_link(const mot_version *v)
{
	return atomic_load_explicit(&((mot_version *) v)->link, memory_order_relaxed);
}

static inline bool
version_is_tombstone(const mot_version *v)
{
	return (version_link(v) & LINK_TOMBSTONE) != 0;
}

static inline mot_version *
version_previous(const mot_version *v)
{
	return link_previous(version_link(v));
}

/*
 * A tombstone that several rows share.  A command that deletes many rows would
 * need one for each, 16 bytes, and as much again in the queue of what is owed; a
 * table that fills the memory could not be emptied.  So rows whose newest version
 * lies in their own room, and is below everybody's snapshot, have one tombstone
 * for many: what is below it is in the row, and what is in the queue is the
 * tombstone.  Its rows are threaded through themselves when the commit is
 * installed: nobody goes below a version that is below everybody's snapshot, so
 * that version's link is free to lead to the next row.
 */
typedef struct mot_grave
{
	mot_version tombstone;
	mot_table  *table;			/* of all its rows */
	mot_row    *first;			/* once committed */
	mot_row    *last;
	uint32_t	rows;
} mot_grave;

#define GRAVE_ROWS 256			/* at most: reclamation's step */

/*
 * Rows whose insert was undone, but for their index entries.  They have no
 * version any more; who has just found the one that they had may still go below
 * it, so they are not threaded through that.
 */
typedef struct mot_inserts
{
	mot_table  *table;			/* of them all */
	uint32_t	rows;
	mot_row    *row[GRAVE_ROWS];
} mot_inserts;

static inline bool
version_is_shared(const mot_version *v)
{
	return (version_link(v) & (LINK_TOMBSTONE | LINK_SHARED)) == (LINK_TOMBSTONE | LINK_SHARED);
}

static inline mot_grave *
version_grave(const mot_version *v)
{
	return (mot_grave *) (uintptr_t) v;
}

/* the version below one of the row's */
static inline mot_version *
version_below(const mot_row *row, const mot_version *v)
{
	if (mot_unlikely(version_is_shared(v)))
		return (mot_version *) (uintptr_t) &row->inlined;
	return version_previous(v);
}

/* has the row, which is deleted, had another index key? */
static inline bool
tombstone_is_keyed(const mot_row *row, const mot_version *v)
{
	return (version_link(version_is_shared(v) ? &row->inlined : v) & LINK_KEYED) != 0;
}

/* acquire: who sees a commit timestamp sees the version's bytes */
static inline uint64_t
version_ts(const mot_version *v)
{
	return atomic_load_explicit(&((mot_version *) v)->ts, memory_order_acquire);
}

static inline void *
version_bytes(const mot_version *v)
{
	return (char *) v + sizeof(mot_version);
}

static inline uint64_t
row_head(const mot_row *row)
{
	/* acquire: what the head points to was initialised before it was stored */
	return atomic_load_explicit(&((mot_row *) row)->head, memory_order_acquire);
}

/* ------------------------------------------------------------------ slots */

#define COMMIT_NONE		0
#define COMMIT_DRAWING	1		/* else: the timestamp drawn */

/*
 * How often one looks again at a commit that has drawn, and is usually over in a
 * moment, before one waits for it as for one that lasts.  On a busy machine each
 * look may take a turn of everybody else's.
 */
#define INSTALL_SPINS	128

#define READ_NOTE_BITS	6
#define READ_NOTE_HASHES 3

typedef struct mot_slot
{
	/* written by the owner only; read by everybody */
	MOT_CACHE_ALIGNED _Atomic uint64_t published;
	_Atomic uint64_t commit_state;
	_Atomic uint64_t moved_on;	/* clock when the session last led to nothing
								 * but what its snapshot shows; may be older
								 * than that */

	/*
	 * ... or says so when asked (mot_rests_hook), unless something leads from
	 * it: a cursor, SERIALIZABLE's reads
	 */
	_Atomic bool may_rest;
	_Atomic bool has_cursors;
	_Atomic bool validates;
	_Atomic uint64_t last_commit;	/* number of the last one installed */
	_Atomic bool judging;		/* drawn, and may still fail its validation */
	_Atomic bool in_doubt;		/* prepared or about to be, reads kept; see
								 * kept.c */
	_Atomic bool reclaiming;	/* working off queues, with a snapshot */
	_Atomic uint64_t host_id;
	_Atomic bool amends;		/* has a row for a moment, see mot_row_amend */
	_Atomic bool places;		/* is adding an entry, see order.c */
	_Atomic uint32_t open;

	/*
	 * a commit of ours that can be seen and is not durable yet: a bound below
	 * its timestamp (0: none), where the host's log has to be durable up to,
	 * and the host's flags
	 */
	_Atomic uint64_t undurable_ts;
	_Atomic uint64_t undurable_position;
	/* the owner's, and reclamation's */
	MOT_CACHE_ALIGNED owed_queue owed;

	/*
	 * SERIALIZABLE: the snapshot of whoever may turn out to have only read
	 * (0: nobody), and the newest places from which rows and ranges were
	 * read; see precede.c
	 */
	_Atomic uint64_t serial;
				MOT_CACHE_ALIGNED _Atomic uint64_t read_any;
	_Atomic uint64_t read_row[READ_NOTE_HASHES][1 << READ_NOTE_BITS];
	_Atomic uint64_t read_range[1 << READ_NOTE_BITS];
	/* counters: written by the owner, summed by statistics */
				MOT_CACHE_ALIGNED _Atomic uint64_t commits;
	_Atomic uint64_t aborts;
	_Atomic uint64_t events[MOT_EVENTS];
} mot_slot;

#define DIRECTORY_BUCKETS 1024
#define QUOTA_BUCKETS 256

struct mot_engine
{
	/*
	 * the clock alone on its line: every commit writes it, every statement
	 * reads it
	 */
	MOT_CACHE_ALIGNED _Atomic uint64_t clock;
				MOT_CACHE_ALIGNED _Atomic uint64_t horizon; /* last one computed;
															 * grows only */
	_Atomic uint64_t lowered;	/* how often mot_snapshot_lower was called */
	_Atomic uint64_t kept;		/* mot_engine_keep */
	/* commits announced and not durable yet; each transaction's end reads it */
				MOT_CACHE_ALIGNED _Atomic uint32_t undurable;
				MOT_CACHE_ALIGNED _Atomic uint64_t newest_preceding;	/* number; precede.c */
	_Atomic uint64_t next_serial;
	_Atomic uint32_t slots_used;	/* slots ever opened: 0 .. slots_used - 1 */
	_Atomic uint32_t keepers;	/* slots with kept reads; see kept.c */
	_Atomic uint32_t dropped_count;
	_Atomic uint64_t behind;	/* see behind.c; 0: nothing */
	_Atomic uint64_t undone_entries;	/* in queues, see undo_key_change */
	_Atomic uint32_t in_need;	/* sessions; see relief.c */
	uint32_t	slots;
	mot_region *region;
	mot_pool   *pool;			/* the engine's own objects */
	mot_machine machine;		/* bind.c */
	mot_spinlock directory_lock;
	mot_spinlock dropped_lock;
	mot_table  *dropped_tables;
	mot_index  *dropped_indexes;
	mot_table  *bucket[DIRECTORY_BUCKETS];
	mot_spinlock quota_lock;
	mot_quota  *spare_quotas;
	mot_quota  *quota[QUOTA_BUCKETS];
	/* rows shared now: whoever locks a row reads it, alone on its line */
				MOT_CACHE_ALIGNED _Atomic uint32_t shares;
	MOT_CACHE_ALIGNED share_bucket share[1 << SHARE_BUCKET_BITS];
	mot_slot	slot[];
};

/* ------------------------------------------------------- tables, indexes */

#define TABLE_SHARDS 16

typedef struct table_shard
{
	MOT_CACHE_ALIGNED _Atomic int64_t rows;
	_Atomic uint64_t inserts;
	_Atomic uint64_t updates;
	_Atomic uint64_t deletes;
} table_shard;

struct mot_definition
{
	size_t		len;
	uint8_t		bytes[];
};

struct mot_table
{
	uint32_t	host_db;
	uint32_t	host_id;
	_Atomic uint32_t owner;
	_Atomic bool numbered;
	uint64_t	serial;
	mot_engine *engine;
	mot_pool   *rows;
	mot_pool   *versions;
	mot_places *_Atomic places; /* NULL: nobody has said any; places.c */
	void	   *memory;			/* what to free: the table is aligned in it */
	mot_pool_group group;
	mot_table  *next;			/* directory bucket or list of dropped ones */
	mot_ts		dropped_stamp;
	bool		still_owed;		/* dropped, and some queue names an object of
								 * it */
	_Atomic uint32_t dropped_indexes;	/* by themselves, and still there */
	_Atomic mot_ts born;		/* the host's, as below */
	_Atomic bool refuse_older;
	_Atomic bool unsettled;		/* made by a transaction still running */
	_Atomic mot_ts settled_at;	/* the clock when that committed */
	mot_table  *_Atomic replaces;	/* what it took the place of */
	mot_definition *_Atomic definition; /* the host's */
	mot_spinlock index_lock;
	_Atomic uint32_t index_count;
	mot_index  *_Atomic index[MOT_MAX_INDEXES];
	mot_index  *_Atomic indexes;	/* list of all, see mot_index.sibling */
	table_shard shard[TABLE_SHARDS];
};

struct mot_index
{
	mot_table  *table;
	mot_tree   *tree;
	mot_hints	hints;
	mot_pool   *pool;
	uint32_t	host_id;
	uint64_t	form;
	unsigned	flags;
	mot_index  *_Atomic sibling;	/* the table's indexes, attached or not,
									 * until dropped */
	mot_ts		made;			/* clock when it was created: holds no row
								 * deleted before */
	_Atomic bool described;		/* the table's definition knows it */
	_Atomic bool behind;		/* rows may have no entry yet */
	_Atomic bool disordered;	/* see order.c */
	_Atomic bool odd;			/* see mot_index_has_odd */
	_Atomic mot_ts odd_since;	/* clock after that was said */
	mot_index  *next;			/* list of dropped ones */
	mot_ts		dropped_stamp;
	bool		still_owed;		/* as with tables */
	_Atomic mot_ts valid_from;	/* older snapshots do not find all here */
	_Atomic bool dropped;

	/*
	 * entries whose row may have another key now: the key check is needed
	 * while this is not 0
	 */
	_Atomic int64_t stale;
};

/*
 * An index value: one row, or a bundle of rows that have (or had) this key.
 * Low bits: BUNDLE, and TAIL if the key in the tree ends in the row's number
 * (non-unique indexes, and keys with nulls).  A row's claims say how many
 * times the entry was added less the times it was dropped: a row that takes
 * a key back before the drop of its older entry is due has two.
 */
#define VALUE_BUNDLE	1u
#define VALUE_TAIL		2u
#define VALUE_BITS		15u
#define KEY_TAIL		6

typedef struct bundle_item
{
	_Atomic uint64_t row;		/* 0: empty place */
	_Atomic uint32_t claims;
} bundle_item;

typedef struct mot_bundle
{
	_Atomic uint32_t changes;	/* bumped under the node lock by each change */
	uint32_t	places;
	_Atomic uint32_t used;		/* places [0, used) may be filled */
	bundle_item item[];
} mot_bundle;

static inline mot_bundle *
value_bundle(uint64_t value)
{
	return (mot_bundle *) (uintptr_t) (value & ~(uint64_t) VALUE_BITS);
}

static inline mot_row *
value_row(uint64_t value)
{
	return (mot_row *) (uintptr_t) (value & ~(uint64_t) VALUE_BITS);
}

/*
 * acquire: a bundle's place is filled before it is counted, a row initialised before it is placed
 */
static inline uint32_t
bundle_used(mot_bundle *b)
{
	return atomic_load_explicit(&b->used, memory_order_acquire);
}

static inline mot_row *
bundle_row(mot_bundle *b, uint32_t i)
{
	return (mot_row *) (uintptr_t) atomic_load_explicit(&b->item[i].row, memory_order_acquire);
}

/* an index entry to be dropped once its transaction's commit is out of everybody's sight */
typedef struct index_drop
{
	mot_index  *index;
	mot_row    *row;
	mot_bundle *bundle;			/* to be freed with this, or NULL */
	uint32_t	len;
	bool		stale;			/* counted in index->stale; with a key of no
								 * bytes that is all: the row had no entry */
	bool		undone;			/* the new key of a change taken back; counted
								 * in engine->undone_entries */
	uint8_t		key[];			/* tail included */
} index_drop;

#include "txn/journal.h"

typedef struct read_item
{
	mot_row    *row;
	mot_ts		ts;				/* of the version seen; 0: none */
} read_item;

/* what was looked for in an index; see ranges.c */
typedef enum range_kind
{
	RANGE_KEY,					/* a whole key that is not there: low */
	RANGE_FORWARD,
	RANGE_BACKWARD
} range_kind;

typedef struct range_key
{
	uint32_t	at;				/* in range_bytes */
	uint32_t	len;
} range_key;

typedef struct range_item
{
	mot_index  *index;
	range_kind	kind;
	enum
	{
		RANGE_NOWHERE,			/* nothing was asked for yet */
		RANGE_SOMEWHERE,		/* up to "reached", from where the scan began */
		RANGE_ENDED				/* all of it */
	}			come;
	mot_bound_kind low_kind;
	mot_bound_kind high_kind;
	range_key	low;
	range_key	high;
	range_key	reached;
	uint32_t	room;			/* for the bytes of "reached" */
} range_item;

typedef struct page_item
{
	const mot_table *table;
	uint64_t	index;			/* of its directory entry */
	uint32_t	page_no;
	uint32_t	counter;
} page_item;

typedef struct pool_item
{
	const mot_table *table;
	uint64_t	joins;
} pool_item;

#define RELIEF_LARGE	1u		/* a large transaction has ended */
#define RELIEF_SHORT	2u		/* something has failed for want of memory, or
								 * been deleted to end that */

struct mot_session
{
	mot_engine *engine;
	mot_slot   *slot;
	mot_cache  *cache;
	unsigned	owner;			/* slot number + 1 */
	unsigned	self;			/* whose versions in progress are seen as our
								 * own: "owner", or whom we follow */
	unsigned	shard;			/* of tables' counters; of our node */
	uint64_t	credit;			/* promised places of the queue not yet used */
	unsigned	since_reclaim;	/* commits */
	mot_ts		clock_seen;		/* a value the clock has had */

	/* what keeps us from moving on, see mot_session_move_on */
	uint32_t	open_cursors;	/* opened since the last snapshot was let go */
	uint32_t	cursor_generation;
	address_map walked;			/* row -> the end of a long walk + 1, see
								 * row.c */
	mot_ts		walked_snapshot;

	mot_tree_context tree;
	mot_tree_context tree_exclusive;
	mot_holder	holder;
	mot_ts		rival_ts;		/* see mot_rival_ts */
	const mot_table *placed;	/* where its next row is to be: on the node
								 * "place" */
	unsigned	place;
	uint64_t	moved_bytes;	/* of versions that it has moved, and which
								 * may be seen where they were: as long as the
								 * horizon is below moved_stamp */
	mot_ts		moved_stamp;
	bool		use_reserve;	/* everything is as urgent as a change */
	const mot_quota *full;		/* see mot_session_full */
	bool		keys_derive;	/* see mot_txn_keys_derive */
	unsigned	relief;			/* RELIEF_*: what is to be seen to before the
								 * next snapshot */
	bool		gives_way;		/* reclaims without need; see relief.c */
	uint8_t		hint_trust[HINT_TRUSTS];	/* see hint.h */

	/*
	 * newest commit that the transaction has seen anything of; kept to find
	 * out at its end whether all that is durable
	 */
	mot_ts		seen;
	bool		announced;		/* this commit's end is told by
								 * mot_commit_durable */

	/* transaction */
	bool		active;
	bool		prepared;
	bool		validate;		/* SERIALIZABLE: reads are recorded */
	bool		published_by_commit;	/* the snapshot in our slot */
	bool		order_reads;	/* ... and validated in any case */
	bool		out_of_memory;	/* a read could not be recorded */
	bool		may_precede;	/* see precede.c */
	bool		saw_newest;		/* something that is perhaps not in its
								 * snapshot */
	bool		learned;		/* something that surely is not */
	bool		gave_back;		/* keys that it had found free */
	bool		keeps;			/* is being validated to be prepared ... */
	bool		met_in_doubt;	/* ... and has read what such a one has
								 * changed */
	bool		lock_to_return; /* the last mot_row_lock took the row's lock */
	mot_isolation isolation;
	mot_ts		snapshot;
	const mot_beyond *beyond;	/* of the same snapshot */
	mot_ts		commit_ts;		/* drawn by prepare */
	uint64_t	writes;			/* entries other than J_LOCK */
	journal_entry **chunk;
	uint64_t	chunks;			/* allocated */
	uint64_t	chunk_slots;
	uint64_t	entries;
	uint64_t	last_mark;		/* entries before this may not be merged with
								 * later ones */
	key_chunk  *keys;
	address_map deferred;		/* row -> its last deferred entry + 1 */
	uint64_t	deferred_count;

	/*
	 * deletes of the command going on: its grave that is not full, or NULL if
	 * it has deleted one row so far
	 */
	mot_table  *delete_table;
	uint32_t	delete_command;
	uint32_t	horizon_looks;
	mot_grave  *grave;

	/* SERIALIZABLE */
	mot_observer observer;
	read_item  *reads;
	uint64_t	read_count;
	uint64_t	read_size;
	address_map nodes;			/* border node -> version as observed */
	mot_observer noter;			/* of look-ups, which note one node: */
	const mot_node *noted;
	uint64_t	noted_version;
	range_item *ranges;
	uint64_t	range_count;
	uint64_t	range_size;
	uint64_t	range_base;		/* how many earlier transactions had */
	uint8_t    *range_bytes;	/* their keys */
	uint64_t	range_bytes_used;
	uint64_t	range_bytes_size;
	mot_index **whole;			/* indexes of which all counts */
	uint64_t	whole_count;
	uint64_t	whole_size;
	mot_ts		valid_at;		/* validation: as of a commit with this number */
	bool		all_changes;	/* go on after the first thing that has
								 * changed */
	bool		hasty;			/* wait for nobody's judgement ... */
	bool		passed_by;		/* ... as would have been needed */
	mot_ts		first_change;	/* the earliest change that has been found */
	uint64_t	ranges_of;		/* tables of which not only rows were read */
	page_item  *pages;
	uint64_t	page_count;
	uint64_t	page_size;
	pool_item  *pools;
	uint64_t	pool_count;
	uint64_t	pool_size;
};

/* does the transaction's snapshot see this commit? */
static inline bool
session_sees(const mot_session *s, mot_ts ts)
{
	return ts <= s->snapshot || (s->beyond != NULL && mot_beyond_sees(s->beyond, ts));
}

static inline journal_entry *
journal_at(const mot_session *s, uint64_t i)
{
	return &s->chunk[i / JOURNAL_CHUNK][i % JOURNAL_CHUNK];
}

/* can there be versions in progress that are seen as our own? */
static inline bool
session_has_own(const mot_session *s)
{
	return s->active || s->self != s->owner;
}

/* remember that this transaction has seen (or missed, if it is a tombstone) a version */
static inline void
session_saw(mot_session *s, mot_ts ts)
{
	if (ts > s->seen && !(ts & TS_UNCOMMITTED))
		s->seen = ts;
}

/* the same for a timestamp of a commit; without a branch, which rows by chance would mispredict */
static inline void
session_saw_commit(mot_session *s, mot_ts ts)
{
	s->seen = ts > s->seen ? ts : s->seen;
}

/* durable.c */
extern void mot_undurable_bound(mot_session *s);
extern void mot_undurable_forget(mot_session *s);

/* reclaim.c */
extern bool mot_owed_promise(mot_session *s, uint64_t items);
extern void mot_owed_undone(mot_session *s, owed_kind kind, void *object);
extern void mot_owed_add_locked(mot_session *s, owed_kind kind, void *object, mot_ts stamp);

/* what a new version supersedes is owed from ts on */
static inline void
owe_superseded(mot_session *s, mot_row *row, mot_version *old, mot_ts ts)
{
	if (old == &row->inlined)
		mot_owed_add_locked(s, OWED_INLINE, row, ts);
	else
		mot_owed_add_locked(s, OWED_OBJECT, old, ts);
}
extern mot_ts mot_owed_stamp(mot_session *s);
extern void mot_clock_advance(mot_engine *e, mot_ts stamp);
extern void mot_owed_retire(void *session, void *object);
extern void mot_owed_retire_as(mot_session *s, owed_sight sight, void *object);
extern void mot_owed_trim(mot_session *s);
extern void mot_owed_after_commit(mot_session *s, uint64_t entries);
extern void mot_owed_much(mot_session *s);
extern bool mot_owed_visit(mot_session *s,
						   void (*visit) (void *arg, owed_kind kind, void *object), void *arg);

/* mot_reclaim_step; move_on: before that, mot_session_move_on; gives_way: to who is in need */
extern bool mot_reclaim_step_on(mot_session *s, uint64_t *left, bool move_on, bool gives_way);
extern mot_ts mot_queue_front_stamp(mot_session *s, owed_queue *q);

/* relief.c */
extern void mot_relieve(mot_session *s);
extern bool mot_make_room(mot_session *s, unsigned *tries, bool move_on);

/* memory with a second try after reclamation; status says why not */
extern void *mot_session_alloc(mot_session *s, mot_pool *pool, size_t size,
							   mot_purpose purpose, mot_status *status);

/* the same for a caller who knows nothing by address but what his snapshot shows or is his own */
extern void *mot_session_alloc_freely(mot_session *s, mot_pool *pool, size_t size,
									  mot_purpose purpose, mot_status *status);

/* and from that node */
extern void *mot_session_alloc_on(mot_session *s, mot_pool *pool, unsigned node, size_t size,
								  mot_purpose purpose, mot_status *status);

/* engine.c */
extern mot_ts mot_engine_horizons(mot_engine *e, mot_ts *unlinked);
extern mot_ts mot_engine_rest_horizon(mot_engine *e, mot_ts unlinked);

/* journal.c */
extern journal_entry *mot_journal_add(mot_session *s);
extern bool mot_journal_reserve(mot_session *s);
extern const void *mot_journal_key(mot_session *s, const void *key, size_t len);
extern void mot_journal_release_key(mot_session *s, const void *key);
extern void mot_journal_clear(mot_session *s);
extern void mot_journal_free(mot_session *s);
extern bool mot_map_put(address_map *map, uint64_t key, uint64_t value);
extern uint64_t mot_map_get(const address_map *map, uint64_t key);
extern void mot_map_clear(address_map *map);
extern void mot_map_free(address_map *map);

/* quota.c */
extern bool mot_table_enter_quotas(mot_session *s, mot_table *t);
extern void mot_table_leave_quotas(mot_table *t);
extern mot_status mot_session_refused(mot_session *s, const mot_pool *pool, int why);

/* row.c */
extern const mot_version *mot_version_visible(mot_session *s, const mot_view *view, mot_row *row);
extern mot_version *mot_own_newest(mot_session *s, mot_row *row, uint64_t head);
extern mot_version *mot_newest_committed(mot_session *s, mot_row *row);

/*
 * The usual case of mot_version_visible, small enough to be part of every
 * look-up: nobody holds the row, and its newest version is visible.  What a
 * look-up takes in instructions decides whether the processor gets as far as
 * the next one while this one's cache lines are on their way.
 */
static inline const mot_version *
version_visible(mot_session *s, const mot_view *view, mot_row *row)
{
	uint64_t	head = row_head(row);
	mot_version *v = head_version(head);

	if (mot_likely(head_owner(head) == 0 && s->deferred_count == 0 && v != NULL))
	{
		uint64_t	ts = version_ts(v);

		if (mot_likely(ts <= view->snapshot))
		{
			session_saw_commit(s, ts);
			return version_is_tombstone(v) ? NULL : v;
		}
	}
	return mot_version_visible(s, view, row);
}

/* write.c */
extern mot_status mot_row_take(mot_session *s, mot_row *row, bool full, uint64_t *head);

/* share.c */
extern bool mot_share_found(mot_session *s, mot_row *row, bool full);

/*
 * Does another transaction share the row in a way that an owner of this
 * strength has to wait for?  Then the session's holder names it.  (Inline
 * because hardly ever anything is shared.)
 */
static inline bool
mot_share_conflicts(mot_session *s, mot_row *row, bool full)
{
	/* seq_cst: after our store to the head; see the head of share.c */
	return mot_unlikely(atomic_load(&s->engine->shares) != 0) && mot_share_found(s, row, full);
}

extern bool mot_share_mine(mot_session *s, const mot_row *row, bool *key_only);
extern mot_status mot_share_take(mot_session *s, mot_row *row, bool key_only, bool *taken);
extern void mot_share_drop(mot_session *s, const journal_entry *j, bool undo);
extern void mot_share_give(mot_session *s, const journal_entry *j, unsigned owner);

/* validate.c */
extern bool mot_array_room(mot_session *s, void **array, uint64_t *size, uint64_t count, size_t width,
						   uint64_t least);
extern void mot_read_record_more(mot_session *s, mot_row *row, mot_ts ts);
extern void mot_read_page(mot_session *s, const mot_table *table, const mot_page_view *page);
extern void mot_read_pool(mot_session *s, const mot_table *table);
extern mot_ts mot_read_base(mot_session *s, const mot_view *view, mot_row *row);
extern void mot_read_newer(mot_session *s, const mot_view *view, mot_row *row, const mot_version *v);
extern void mot_read_undone(mot_session *s, mot_mark mark);
extern void mot_read_absent(mot_session *s, mot_index *index, const void *key, size_t len);
extern bool mot_read_nodes_stand(mot_session *s);
extern bool mot_row_stands(mot_session *s, mot_row *row);
extern mot_status mot_read_validate(mot_session *s, mot_ts ts);
extern mot_ts mot_read_first_change(mot_session *s, bool hastily);
extern void mot_read_clear(mot_session *s);
extern void mot_read_free(mot_session *s);
extern void mot_read_init(mot_session *s);

/* precede.c */

typedef struct note_set
{
	uint64_t	rows[READ_NOTE_HASHES]; /* changed ones: bits of notes */
	uint64_t	ranges;			/* tables in whose ranges something is new */
} note_set;

extern bool mot_txn_precedes(mot_session *s);
extern void mot_read_note(mot_session *s, mot_slot *slot, mot_ts place);
extern bool mot_written(const mot_session *s, note_set *w);
extern bool mot_has_read(mot_slot *slot, mot_ts first, const note_set *w);
extern void mot_judged_await(mot_session *s, mot_ts number);

static inline uint64_t
table_bit(const mot_table *table)
{
	return UINT64_C(1) << (table->serial & ((1 << READ_NOTE_BITS) - 1));
}

/* ranges.c */
extern void mot_range_absent(mot_session *s, mot_index *index, const void *key, size_t len);
extern uint64_t mot_range_open(mot_session *s, mot_index *index, const mot_bound *lower,
							   const mot_bound *upper, bool backward);
extern void mot_range_reached(mot_session *s, uint64_t range, const void *key, size_t len);
extern void mot_range_ended(mot_session *s, uint64_t range);
extern bool mot_ranges_ordered(const mot_session *s);
extern mot_status mot_ranges_stand(mot_session *s);
extern void mot_ranges_clear(mot_session *s);
extern void mot_ranges_free(mot_session *s);

/* txn.c */
extern mot_status mot_txn_hang_in(mot_session *s, uint64_t last);

/* undo.c */
extern void mot_txn_undo(mot_session *s, mot_mark mark);

/* index.c */
extern size_t mot_index_tree_key(mot_session *s, const mot_index *index, mot_row *row,
								 const void *key, size_t len, unsigned flags, uint8_t *buf,
								 const void **result, unsigned *bits);
extern void mot_index_undo_add(mot_session *s, mot_index *index, mot_row *row,
							   const void *key, size_t len);
extern bool mot_row_leave_indexes(mot_session *s, mot_table *table, mot_row *row,
								  const mot_version *version, mot_ts ts);
extern bool mot_value_has(uint64_t value, const mot_row *row);
extern void mot_index_take_claim(mot_session *s, mot_index *index, mot_row *row,
								 const void *key, size_t len, mot_bundle **freed);

/*
 * order.c: around what may add an entry to an index, whose keys' order is checked if its handle has
 * in_order
 */
extern void mot_order_begin(mot_session *s);
extern void mot_order_end(mot_session *s, const mot_index_handle *handle, bool added,
						  const void *tkey, size_t tlen, unsigned bits);

extern void mot_index_note_odd(mot_session *s, mot_index *index);

/* before an entry with such a key can be seen */
static inline void
order_note(mot_session *s, const mot_index *index, unsigned flags)
{
	if (mot_unlikely(flags & MOT_KEY_ODD))
		mot_index_note_odd(s, (mot_index *) index);
}

static inline void
order_begin(mot_session *s, const mot_index_handle *handle)
{
	if (mot_unlikely(handle->in_order != NULL))
		mot_order_begin(s);
}

static inline void
order_end(mot_session *s, const mot_index_handle *handle, bool added, const void *tkey, size_t tlen, unsigned bits)
{
	if (mot_unlikely(handle->in_order != NULL))
		mot_order_end(s, handle, added, tkey, tlen, bits);
}

/* index.c, for cursors on what is not seen, too */
extern void mot_cursor_opened(mot_session *s, mot_cursor *c);

/* table.c */
extern mot_table *mot_table_of_pool(const mot_pool *rows);
extern void mot_dropped_destroy(mot_session *s, mot_ts horizon);

struct mot_cursor
{
	mot_session *session;
	mot_view	view;
	mot_index_handle handle;
	mot_bundle *bundle;			/* being gone through, or NULL */
	uint32_t	place;
	uint32_t	generation;		/* of the session's cursors */
	uint64_t	range;			/* SERIALIZABLE: where it is told how far we
								 * are, or 0 */
	const void *key;			/* of the entry, tail taken off len */
	size_t		len;
	mot_tree_cursor tree;
};

/* SERIALIZABLE: that the transaction saw the row's version of "ts", or none (0) */
static inline void
mot_read_record(mot_session *s, mot_row *row, mot_ts ts)
{
	if (mot_likely(s->read_count < s->read_size))
	{
		read_item  *read = &s->reads[s->read_count];

		read->row = row;
		read->ts = ts;

		/*
		 * What has just been read need not be there twice; but another
		 * version of the row, as a newer view or the search for a key's owner
		 * shows it, is another read.
		 */
		s->read_count += s->read_count == 0 || read[-1].row != row || read[-1].ts != ts;
	}
	else
		mot_read_record_more(s, row, ts);
}

/* the same for whoever has just looked at the row and has seen this, or NULL */
static inline void
row_was_read(mot_session *s, const mot_view *view, mot_row *row, const mot_version *v)
{
	if (mot_unlikely(s->validate) && !view->aside)
	{
		uint64_t	ts = v ? version_ts(v) : 0;

		/* its own version, or perhaps its own tombstone */
		if (v == NULL || (ts & TS_UNCOMMITTED))
			ts = mot_read_base(s, view, row);
		mot_read_record(s, row, ts);
		if (mot_unlikely(view->snapshot > s->snapshot))
			mot_read_newer(s, view, row, v);
	}
}

/* mot_row_visible, as part of a look-up */
static inline const mot_version *
row_visible(mot_session *s, const mot_view *view, mot_row *row)
{
	const mot_version *v = version_visible(s, view, row);

	row_was_read(s, view, row, v);
	return v;
}

/* the session's observer while its reads are recorded, else NULL */
static inline const mot_observer *
session_observer(const mot_session *s)
{
	return s->validate ? &s->observer : NULL;
}

/* the same for looking up a whole key: mot_read_absent follows if it is not there */
static inline const mot_observer *
session_noter(const mot_session *s)
{
	return s->validate ? &s->noter : NULL;
}

#endif							/* MOT_INTERNAL_H */
