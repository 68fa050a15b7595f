/*-------------------------------------------------------------------------
 *
 * mot_report.h
 *	  The part of mot_engine.h for a host that looks at the engine itself:
 *	  verification and statistics.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_REPORT_H
#define MOT_REPORT_H

/* ---------------------------------------------------------- verification
 *
 * For a host that wants to know whether a table and its indexes agree; nobody
 * may be writing to it.  Reclamation goes on, and what is wrong at one look
 * can be right at the next; what stays wrong is damage.
 */

/* is the tree sound? (false: err says what is not) */
extern bool mot_index_check(const mot_index *index, char *err, size_t errlen);

/*
 * All entries of an index (or those within bounds that are not NULL) in key order, also those of
 * dead rows and of older keys; close as other cursors.  Beside writers, too, with a snapshot
 * published: then what is found was there at some time.
 */
typedef struct mot_entry
{
	const void *key;			/* as the host gave it, until the next call */
	size_t		len;
	mot_row    *row;			/* NULL: see fault */
	const char *fault;			/* what is wrong with the entry itself, or
								 * NULL */
} mot_entry;

extern mot_status mot_entries_open(mot_session *session, mot_cursor *cursor, const mot_index *index,
								   const mot_bound *lower, const mot_bound *upper, bool backward);
extern bool mot_entries_next(mot_cursor *cursor, mot_entry *entry);

/*
 * How many are within the bounds, counted up to "most"; without a snapshot, too, and beside
 * writers.
 */
extern unsigned mot_entries_count(mot_session *session, const mot_index *index,
								  const mot_bound *lower, const mot_bound *upper, unsigned most);
extern bool mot_index_has_entry(mot_session *session, const mot_index *index, mot_row *row,
								const void *key, size_t len, unsigned flags);

/* ------------------------------------------------------------ statistics */

typedef struct mot_memory_report
{
	unsigned	nodes;
	uint64_t	max_bytes;		/* mot.max_memory */
	uint64_t	used_bytes;		/* pages held by tables, indexes and the
								 * engine itself */
	uint64_t	system_bytes;	/* touched */
	uint64_t	engine_bytes;	/* of used: the engine's own (retire lists,
								 * tables' heads) */
	uint64_t	descriptor_bytes;
	uint64_t	retired_objects;	/* versions, rows, entries, nodes awaiting
									 * reclamation */
	mot_ts		clock,
				horizon;
} mot_memory_report;

extern void mot_memory_report_get(mot_engine *engine, mot_memory_report *report);

/* how much is owed to reclamation, cheaply */
extern uint64_t mot_owed_items(mot_engine *engine);

/*
 * How many versions, rows and entries commits have superseded so far: what has come
 * since a snapshot was taken is kept for it.  item_bytes: the mean size of those that are
 * kept now, of a few of each session's newest.
 */
extern uint64_t mot_owed_added(mot_engine *engine);
extern uint64_t mot_owed_item_bytes(mot_engine *engine);

/*
 * Bytes of objects that are in use: what sessions keep ready for later (in
 * caches, in queues of what is owed) does not count.  For tests: exact while
 * nobody changes anything and nothing is owed.
 */
extern uint64_t mot_object_bytes(mot_engine *engine);

typedef struct mot_node_report
{
	uint64_t	chunk_bytes,
				page_bytes;
} mot_node_report;
extern void mot_node_report_get(mot_engine *engine, unsigned node, mot_node_report *report);

/*
 * The snapshot that the session of a slot holds just now, and nothing that it could
 * see is freed; MOT_TS_NONE if it holds none.  slots_used: how many slots
 * ever had a session.
 */
extern unsigned mot_slots_used(mot_engine *engine);
extern mot_ts mot_slot_snapshot(mot_engine *engine, unsigned slot);

/*
 * What becomes of the engine's answers is known to the host, who has it
 * counted: that a transaction waited, or what it failed for.
 */
typedef enum mot_event
{
	MOT_EVENT_WAIT,				/* for another transaction */
	MOT_EVENT_DEADLOCK,			/* ... which waited for it */
	MOT_EVENT_CHANGED,			/* as the conflicts among the answers */
	MOT_EVENT_DELETED,
	MOT_EVENT_READ,
	MOT_EVENT_PHANTOM,
	MOT_EVENT_MIXED,			/* a dependency through the host's tables, too */
	MOT_EVENT_HELD,				/* it was not to wait */
	MOT_EVENT_SNAPSHOT,			/* its snapshots were of different moments */
	MOT_EVENTS
} mot_event;

extern void mot_count_event(mot_session *session, mot_event event);

/*
 * What a table would take that is not there (estimate.c): its rows, of each size so many; and
 * each index, of entries, sorted and without any twice, that stand for "total" of them.  The
 * bytes of an entry are those of mot_entry_estimated, and its value is the engine's.
 */
typedef struct mot_row_estimate
{
	mot_engine *engine;
	double		objects[64];	/* see mot_objects_add */
} mot_row_estimate;

#define MOT_ESTIMATED_HEAD 24	/* of a row: its head, and that of its version */

extern void mot_row_estimate_begin(mot_engine *engine, mot_row_estimate *estimate);
extern void mot_row_estimate_add(mot_row_estimate *estimate, size_t size);
extern double mot_row_estimate_bytes(const mot_row_estimate *estimate, double scale);

/* in place, behind "len" bytes of a key; "before": bytes of rows that come before this one */
extern size_t mot_entry_estimated(void *key, size_t len, bool unique, double before);
extern double mot_index_estimate(mot_engine *engine, mot_sorted_entry *entries, size_t n, double total);

/* counted per slot, summed here */
typedef struct mot_txn_counts
{
	uint64_t	commits,
				aborts;
	uint64_t	events[MOT_EVENTS];
} mot_txn_counts;
extern void mot_txn_counts_get(mot_engine *engine, mot_txn_counts *counts);

#endif							/* MOT_REPORT_H */
