/*-------------------------------------------------------------------------
 *
 * mot.h
 *	  What every room on the PostgreSQL side shares: settings, the engine,
 *	  this process's session.
 *
 * Layers, each using only those above it:
 *
 *	engine/		the storage engine (no PostgreSQL)
 *	compat/		server version differences
 *	machine/	the machine and its load: how many processes, and where
 *	mot.h		settings and the engine's handle
 *	islands/	on which node what is worked on had better live
 *	xact/		sessions, transactions, snapshots, waiting
 *	relation/	row format, key codec, per-process relation cache,
 *				transactional storage
 *	ddl/ fdw/ monitor/ wal/		on top, side by side
 *	statement/	statements without the executor, on top of fdw/
 *	procedure/	PL/pgSQL as machine code, by statement/'s compiler
 *	mot.c		module entry; the only _PG_init
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_H
#define MOT_H

#include "postgres.h"

#include "compat/export.h"
#include "compat/foreach.h"
#include "compat/names.h"
#include "engine/mot_engine.h"
#include "storage/lwlock.h"
#include "utils/palloc.h"

/* mot.default_engine */
typedef enum MotDefaultEngine
{
	MOT_DEFAULT_HEAP, MOT_DEFAULT_MOT
} MotDefaultEngine;

/* mot.huge_pages */
typedef enum MotHugePages
{
	MOT_HUGE_PAGES_OFF, MOT_HUGE_PAGES_TRY, MOT_HUGE_PAGES_ON
} MotHugePages;

/* mot.write_conflicts */
typedef enum MotWriteConflicts
{
	MOT_WRITE_CONFLICTS_WAIT, MOT_WRITE_CONFLICTS_ABORT
} MotWriteConflicts;

extern int	mot_default_engine;
extern int	mot_write_conflicts;
extern bool mot_early_locks;
extern int	mot_max_memory_mb;	/* mot.max_memory; the default share once
								 * resolved */
extern double mot_insert_reserve;	/* percent */

#define MOT_LEAST_RESERVE 6.25	/* what the engine's own marks leave */

/*
 * The engine, NULL when the module was not preloaded or could not reserve its
 * memory; MotEngineRequired raises a clear error with a HINT then.
 */
extern mot_engine *MotEngine;
extern mot_engine *MotEngineRequired(void);
extern bool MotPreloaded(void);

/* A statement in another memory context (an error leaves it there, as ever). */
#define MotWithin(context, statement) \
	do { \
		MemoryContext within_ = MemoryContextSwitchTo(context); \
		statement; \
		MemoryContextSwitchTo(within_); \
	} while (0)

/* A hash table of bytes, in that context. */
extern struct HTAB *MotHashCreate(const char *name, long nelem, Size keysize, Size entrysize, MemoryContext cxt);

/* In PG_CATCH, by who goes on: the error. */
extern ErrorData *MotErrorTake(MemoryContext cxt);

/*
 * In PG_CATCH, by a hook of the engine's, which goes on: "what" and the error to the log.  Nothing is
 * raised, no cancellation either, and the client, who may not be reading, is told nothing.
 */
extern void MotErrorLog(MemoryContext cxt, const char *what,...) pg_attribute_printf(2, 3);

/*
 * Set in PG_CATCH around what may reclaim, by who raises the error again afterwards: a hook that
 * took an error of its own would forget that one with it, so what may fail is put off.
 */
extern bool MotCleansUp;

/*
 * A part of the server's shared memory: so many bytes, and so many more for each
 * process.  It begins as zeroes, which is what atomic words are to begin with, too, unless
 * init says more.
 */
typedef struct MotShmem
{
	const char *name;
	void	  **at;				/* where it is, then */
	Size		size;
	Size		each;
	void		(*init) (void);
} MotShmem;

/* of all in a list that ends with NULL */
extern void MotShmemRequest(const MotShmem *const *parts);
extern void MotShmemInit(const MotShmem *const *parts);

/* held while an empty table is made for a definition that has none */
extern LWLock *MotDirectoryLock;

#define MOT_FDW_NAME "mot_fdw"
#define MOT_SERVER_NAME "mot_server"
#define MOT_LABEL_PROVIDER "mot"
#define MOT_AM_NAME "mot_index" /* of foreign tables' indexes */
#define MOT_TABLE_AM_NAME "mot"

/* xact/module hooks, called once by _PG_init */
extern void MotXactInit(void);
extern void MotRelationInit(void);
extern void MotDdlInit(void);
extern void MotFdwInit(void);
extern void MotTableInit(void);
extern void MotStatementInit(void);
extern void MotProcedureInit(void);
extern void MotPipelineInit(void);
extern void MotBatchInit(void);
extern void MotMonitorInit(void);
extern void MotSizesInit(void);
extern bool MotPlannerIsOurs(void);

#endif							/* MOT_H */
