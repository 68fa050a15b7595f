/*-------------------------------------------------------------------------
 *
 * measure.h
 *	  The server's side of islands.h: what sessions count, who decides by it,
 *	  and what both share.
 *
 * Sessions count (measure.c), in memory of the node they run on, by the scheme
 * that is in force; the maintenance worker adds up, decides and makes another
 * scheme (decide.c); views show it (views.c).  A place is a node here.
 *
 * Shared memory has two schemes, the one of the present generation and the one before.
 * A session remembers of a table where its sub-ranges are in the scheme, as of
 * a generation; one that is late by two finds others' numbers there, counts wrongly, and
 * throws it away at its transaction's end.
 *
 * This room is below relation/ and beside xact/, which call it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_MEASURE_H
#define MOT_MEASURE_H

#include "mot.h"
#include "datatype/timestamp.h"
#include "islands/islands.h"

/* mot.islands */
typedef enum MotIslandsMode
{
	MOT_ISLANDS_OFF, MOT_ISLANDS_ADVISE, MOT_ISLANDS_ON
} MotIslandsMode;

extern int	mot_islands;

extern void MotIslandsInit(void);
extern void MotIslandsShmemRequest(void);
extern void MotIslandsShmemInit(void);

/* ---------------------------------------------------------------- sessions */

/*
 * Is what the present transaction touches to be counted?  Never while mot.islands is
 * off; else one transaction in several is (isl_counts_leave_out).
 */
extern bool MotIslandsCounting;
extern uint32 MotIslandsLeft;	/* until that is asked again */

/* what a process knows of a table */
typedef struct MotIslandsSeen
{
	uint64		generation;
	uint64		serial;			/* of the table */
	bool		watched;
	uint32		index;			/* host_id of the index whose keys it goes by */
	uint32		first;			/* its sub-ranges */
	uint32		subs;
	uint32		skip;
	const uint8 *common;
	const uint64 *low;
} MotIslandsSeen;

/* is the table watched? */
extern bool MotIslandsWatches(MotIslandsSeen *seen, uint64 serial);

/* the transaction has read or changed so many rows about this key */
extern void MotIslandsTouch(const MotIslandsSeen *seen, const uint8 *key, size_t len,
							unsigned rows, bool change);

extern void MotIslandsTurn(mot_session *session);

/* a transaction has ended, and mot.islands is not off */
static inline void
MotIslandsEnd(mot_session *session)
{
	if (--MotIslandsLeft == 0)
		MotIslandsTurn(session);
}

/* ------------------------------------------------------------------ worker */

/* in each round of the maintenance worker, about once a second, while tables can be used */
extern void MotIslandsStep(mot_session *session);

/* Moves rows to where they belong, some milliseconds long.  True: there are more. */
extern bool MotIslandsMove(mot_session *session);

extern bool MotIslandsMachine(isl_machine *machine);	/* nodes.c; false: it is
														 * only pretended */

/*
 * What makes up an index's keys, as a number (relation/derive.c): positions by two indexes of a
 * table mean the same only if it is the same.  Of one whose key could just be made.
 */
extern uint32 (*MotIslandsKey) (const mot_index *index);

/*
 * act.c: where the engine has been told that ranges live (at most ISL_MAX_SUBS; how many; 0:
 * nothing), and telling it
 */
typedef struct MotIslandsTable MotIslandsTable;
extern unsigned MotIslandsPlaced(const mot_table *table, unsigned *skip, isl_range *range);
extern void MotIslandsPlace(mot_session *session, mot_table *table, const MotIslandsTable *as,
							const isl_scheme *scheme, unsigned number);
extern void MotIslandsKeep(mot_session *session, uint16 node);
extern bool MotIslandsLook(isl_machine *machine, bool real);

/* ------------------------------------------------------------------ shared */

#define MOT_ISLANDS_COMMON 64	/* bytes that keys may have in common */

struct MotIslandsTable
{
	Oid			database;
	Oid			relid;
	uint32		index;
	uint32		key;			/* MotIslandsKey of that */
	uint32		skip;
	uint8		common[MOT_ISLANDS_COMMON];
};

typedef struct MotIslandsScheme
{
	isl_scheme	scheme;
	MotIslandsTable table[ISL_MAX_TABLES];
} MotIslandsScheme;

#define MOT_ISLANDS_DECISIONS 64	/* that are remembered */
#define MOT_ISLANDS_ACTIONS 16	/* ... of each */

typedef struct MotIslandsDecision
{
	TimestampTz at;
	isl_why		why;
	bool		done;			/* not only advised */
	unsigned	count[3];		/* of actions, by kind */
	double		milliseconds;
	isl_cost	before;
	isl_cost	after;
	unsigned	actions;		/* that follow */
	struct
	{
		isl_action	action;
		Oid			database;
		Oid			relid;
		uint32		skip;
		uint8		common[MOT_ISLANDS_COMMON];
	}			action[MOT_ISLANDS_ACTIONS];
} MotIslandsDecision;

#define MOT_ISLANDS_HOMELESS PG_UINT16_MAX

typedef struct MotIslandsSlot
{
	isl_counts *_Atomic counts; /* whoever has the slot writes them; or NULL */
	_Atomic uint16 home;		/* the node that its work is on mostly */
	char		pad[PG_CACHE_LINE_SIZE - sizeof(void *) - sizeof(uint16)];
} MotIslandsSlot;

typedef struct MotIslandsShared
{
	/* everybody reads it at each access, and it changes once an interval */
	_Atomic uint64 generation;	/* 0: there is no scheme yet */
	char		pad[PG_CACHE_LINE_SIZE - sizeof(uint64)];
	MotIslandsScheme scheme[2]; /* [generation % 2] */

	/* the lock's: who looks at counts or replaces a slot's, and what follows */
	LWLock	   *lock;
	isl_interval interval;
	double		heat[ISL_MAX_SUBS]; /* of each range's first sub-range: its
									 * part of all work */
	isl_cost	before;			/* as rows live, in parts of all work */
	isl_cost	after;			/* as they had better */
	uint64		decisions;
	MotIslandsDecision decision[MOT_ISLANDS_DECISIONS];
	MotIslandsSlot slot[FLEXIBLE_ARRAY_MEMBER];
} MotIslandsShared;

extern MotIslandsShared *MotIslands;

#endif							/* MOT_MEASURE_H */
