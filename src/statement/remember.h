/*-------------------------------------------------------------------------
 *
 * remember.h
 *	  Plans of statements that nobody has prepared: see remember.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_REMEMBER_H
#define MOT_REMEMBER_H

#include "nodes/params.h"
#include "nodes/parsenodes.h"
#include "nodes/primnodes.h"
#include "statement/statement.h"

#define MOT_MAX_CONSTANTS 128	/* of a statement; one that has more is
								 * planned each time */

/* A constant, and what stands at its place meanwhile. */
typedef struct MotConstant
{
	void	  **place;
	Node	   *was;
	Param		param;
	Datum		value;
	bool		isnull;
} MotConstant;

typedef struct MotConstants
{
	ParamListInfo bound;		/* parameters that are constants, or NULL */
	uint32		hash;			/* of what is left */
	bool		calls;			/* may be made */
	bool		computed;		/* some values would be, by calls ... */
	bool		computed_params;	/* ... with parameters in them */
	bool		others;			/* there are expressions that the planner may
								 * compute */
	int			n;
	MotConstant places[MOT_MAX_CONSTANTS];
} MotConstants;

/* constants.c */
extern bool MotConstantsTake(Query *query, ParamListInfo bound, MotConstants *taken);
extern void MotConstantsPutBack(MotConstants *taken);
extern void MotConstantsForget(void);

/* remember.c */
#define MOT_REMEMBERED_PLAN "MOT remembered plan"	/* the memory that one is
													 * in */
extern void MotRememberInit(void);
extern PlannedStmt *MotRememberedPut(QueryDesc *query);
extern void MotRememberedShow(QueryDesc *query, PlannedStmt *slip, bool all);
extern bool MotPlannedAnew(Node *node);
extern uint64 MotRememberedUses(const PlannedStmt *plan);

#endif							/* MOT_REMEMBER_H */
