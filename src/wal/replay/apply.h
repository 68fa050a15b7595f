/*-------------------------------------------------------------------------
 *
 * apply.h
 *	  Between apply.c, advance.c, redo.c and target.c: a table as those who
 *	  apply redo see it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_WAL_APPLY_H
#define MOT_WAL_APPLY_H

#include "wal/internal.h"
#include "wal/log/record.h"

struct MotLeftOut;
typedef struct MotLeftOut MotLeftOut;

typedef struct MotTargetKey
{
	Oid			dbid;
	Oid			relid;
} MotTargetKey;

/* where the rows of a table are, by their content: see content.c */
typedef struct MotContent
{
	struct MotContentMap *map;	/* NULL: not there, or not looked at */
	Size		size;			/* of the mapping */
	bool		unusable;		/* no file can be had: rows are looked for one
								 * by one */
} MotContent;

/*
 * Cached by the process.  What is of one transaction is set up by
 * MotTargetBegin and holds until MotTargetsForget.
 */
typedef struct MotTarget
{
	MotTargetKey key;			/* hash key */
	uint64		serial;			/* of the table that def is of */
	const char *bytes;			/* the definition that def is of */
	size_t		len;
	MotDefinition *def;			/* NULL: nothing cached */
	MemoryContext cxt;			/* of all that */
	int			nindexes;
	MotIndex   *indexes;		/* def's; handle.index NULL: not built (yet) */
	AttrNumber	max_attnum;		/* highest column of any index */
	Datum	   *old_values;
	bool	   *old_isnull;
	Datum	   *new_values;
	bool	   *new_isnull;
	const MotTail *old_tail;
	const MotTail *new_tail;
	MotKeyBuffer old_key;
	MotKeyBuffer new_key;

	/* of this transaction */
	bool		begun;
	struct MotTarget *next_begun;
	mot_table  *table;			/* NULL: there is none */
	MotContent	content;
	bool		damaged;		/* passed over */
	bool		created;		/* table is new, not published */
	bool		wanted;			/* or was to be, and there may be no room for
								 * it */
	bool		dropped;
	bool		defined;		/* bytes are to be the table's definition */
	mot_definition *definition; /* and this is it for the engine */
	List	   *new_indexes;	/* mot_index, to be attached */
	List	   *old_indexes;	/* mot_index, to be dropped */
	bool		left_out;		/* what is for it goes to files */
	bool		emptied;		/* it is made, and left out at once */
	MotLeftOut *files;			/* emptied: new ones; or those there are, when
								 * something is written to them */
	StringInfo	redo;			/* what is for it */
} MotTarget;

extern MotTarget *MotTargetGet(Oid dbid, Oid relid);

extern const char *MotTargetName(const MotTarget *target);
extern void MotTargetDefine(MotTarget *target, const char *bytes, size_t len);
extern void MotTargetResolve(MotTarget *target);	/* look indexes up again */
extern void MotTargetResolveIndex(MotTarget *target, int i, mot_index *index);	/* this one, or NULL */
extern void MotTargetFree(MotTarget *target);

/* all that were begun, in no order */
extern void MotTargetsEach(void (*visit) (MotTarget *target));
extern void MotTargetsForget(void); /* the transaction has ended */
extern void MotTargetsEnd(mot_session *session);	/* replay has ended */

/* keys of a row from its bytes; which: MotTarget.old_... or new_... */
extern void MotTargetDeform(MotTarget *target, unsigned host_bits, const void *row,
							Datum *values, bool *isnull);

/*
 * Makes the key of the old, or the new, row (as deformed) in old_key or new_key; returns flags for
 * the engine.
 */
extern unsigned MotTargetOldKey(MotTarget *target, int index);
extern unsigned MotTargetNewKey(MotTarget *target, int index);
extern bool MotTargetKeysDiffer(MotTarget *target, int index);

extern bool MotTargetGivesWay(const MotTarget *target, bool duplicate);

/* which index of the definition has this oid; -1: none */
extern int	MotTargetIndexAt(const MotTarget *target, Oid indexoid);

/* ------------------------------------------------------------------- redo.c */
typedef struct MotRedo
{
	mot_session *session;
	mot_view	view;
	XLogRecPtr	lsn;			/* of the transaction at hand */
	MotTarget  *target;			/* of the operations that come */
	bool		gives_up;		/* a table that the log does not fit, and goes
								 * on */
	bool		full;			/* the engine's memory is */
	bool		clash;			/* collations are not what they were: see
								 * MotKeyGivesWay */
	MemoryContext cxt;			/* as long as this */
	MemoryContext row_cxt;		/* reset after each operation */
	bool		amended;		/* the row found has more in its tail than the
								 * operation knows of, see content.c */
	char	   *row;			/* an updated row is put together here */
	size_t		row_size;
	uint64		operations;
} MotRedo;

extern void MotRedoEach(MotRedo *redo, const char *ops, size_t len,
						void (*one) (MotRedo *redo, const MotOpData *op, const char *raw, size_t len),
						void (*look) (MotRedo *redo));
extern bool MotRedoMisfit(MotRedo *redo, const char *fmt,...) pg_attribute_printf(2, 3);
extern bool MotRedoCheck(MotRedo *redo, mot_status status);
extern bool MotRedoClashes(MotRedo *redo);	/* is that what has been raised? */
extern bool MotRedoFind(MotRedo *redo, const MotOpData *op, mot_row **row, const mot_version **version);
extern bool MotRedoIsWhole(const MotTarget *target, unsigned host_bits, const char *row, size_t len);
extern bool MotRedoCheckRow(MotRedo *redo, unsigned host_bits, const void *row, size_t len);
extern bool MotRedoLoad(MotRedo *redo, unsigned host_bits, const void *bytes, size_t len);
extern bool MotRedoPatch(MotRedo *redo, const MotOpData *op, unsigned old_host_bits,
						 const void *old_bytes, size_t old_size);
extern bool MotRedoCreate(MotRedo *redo, const MotOpData *op);
extern MotDefinition *MotRedoDefine(MotRedo *redo, const MotOpData *op);

/* ------------------------------------------------------------------- room.c */
extern void MotRoomBefore(void);	/* a transaction */
extern void MotRoomTry(void);	/* it begins, for the first time or again */
extern void MotRoomNote(const MotTargetKey *key, mot_table *table); /* made by it, and about
																	 * to be undone */
extern void MotRoomClash(const MotTarget *target);	/* ... for this table is
													 * to be had with plain
													 * keys */
extern void MotRoomWasThere(void);	/* it is done */
extern bool MotRoomNotToMake(const MotTargetKey *key);
extern bool MotRoomIsForClash(const MotTargetKey *key); /* ... and not for want
														 * of memory */
extern bool MotRoomReclaim(void);	/* true: some was freed */
extern void MotRoomKeep(MotTarget *target, MemoryContext cxt, const char *raw, size_t len);
extern void MotRoomKeepRest(MotTarget *target); /* before commit, too */
extern void MotRoomKeepDone(MotTarget *target); /* it is committed, so this
												 * counts */

/* ---------------------------------------------------------------- content.c */
extern void MotContentBegin(MotTarget *target); /* the target has a table */
extern void MotContentPrepare(mot_session *session, MotTarget *target);
extern bool MotContentFind(mot_session *session, const mot_view *view, MotTarget *target, const MotOpData *op,
						   mot_row **row, const mot_version **version, bool *amended);

extern bool MotContentChoose(mot_session *session, const mot_view *view, MotTarget *target, const MotOpData *op,
							 bool (*fits) (void *arg, mot_row *row, const mot_version *version), void *arg,
							 mot_row **row, const mot_version **version);

/* a row has this content now, or no longer */
extern void MotContentAdd(mot_session *session, MotTarget *target, mot_row *row,
						  unsigned host_bits, const void *bytes, size_t size);
extern void MotContentDrop(mot_session *session, MotTarget *target, mot_row *row,
						   unsigned host_bits, const void *bytes, size_t size);

/* the transaction has ended; gone: the table, or replay, or the changes noted were undone */
extern void MotContentLeave(MotTarget *target, bool gone);

#endif							/* MOT_WAL_APPLY_H */
