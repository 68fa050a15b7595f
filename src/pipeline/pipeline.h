/*-------------------------------------------------------------------------
 *
 * pipeline.h
 *	  What a client has sent ahead: a pipeline's statements, without portals.
 *
 * Of a look-up by key in a pipeline (Bind, Execute, Bind, Execute ..., Sync) the server's own part is
 * several times ours: its loop makes a portal, with a resource owner, memory and a snapshot, for each.
 * It asks no module between two messages.  But all that it answers goes through PqCommMethods, and when
 * the last word of an Execute (CommandComplete) has gone, nothing of that is left to do.  So if a
 * statement of ours has been answered, and more messages have been received already, the next Bind is
 * read here, in that very place, and what follows it, and answered with the same messages, byte for byte.
 *
 * Whatever has been read must be served; nothing can be put back.  What can not be run here becomes the
 * portal that the server's loop would have made of it, and is left to that from there on.
 *
 * pipeline.c	when to read, what to read, and the statements that run here
 * bind.c		a Bind message: which statement, what parameters
 * portal.c		the server's way: portals, descriptions
 * unnamed.c	which is the unnamed statement?
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_PIPELINE_H
#define MOT_PIPELINE_H

#include "mot.h"
#include "statement/known.h"
#include "statement/statement.h"
#include "utils/portal.h"

/* How values of a parameter are read, if that is known. */
typedef struct MotInput
{
	int16		format;			/* that "function" is for; -1: none yet */
	bool		plain;			/* of one of the server's own types */
	FmgrInfo	function;
	Oid			io_type;
} MotInput;

/* What is known of a prepared statement, for as long as it lives. */
typedef struct MotPiped
{
	CachedPlanSource *source;	/* hash key */
	MemoryContext cxt;
	MotKnownPlan known;
	MotInput   *inputs;
	bool		plain;			/* all of them */
	ParamListInfo params;		/* of the last Bind; NULL: it has none */

	/* the message that describes its rows; "length" is 0 if there is none yet */
	StringInfoData description;
	int			described;		/* the source's generation then, ... */
	int			encoding;		/* ... the client's encoding ... */
	int16	   *formats;		/* ... and each column's */
} MotPiped;

typedef struct MotBind
{
	const char *portal;			/* its name */
	const char *statement;		/* its name, which lives as long as it does */
	bool		ascii;			/* ... and has no other letters */
	MotPiped   *piped;
	CachedPlanSource *source;
	int			nformats;		/* of columns, as in the message */
	int16	   *formats;
} MotBind;

/* bind.c */
extern void MotBindNames(StringInfo message, MotBind *bind);
extern void MotBindStatement(MotBind *bind, const char *name);
extern void MotBindValues(StringInfo message, MotBind *bind);

static inline int16
MotBindFormat(const MotBind *bind, int column)
{
	return bind->nformats == 0 ? 0 : bind->formats[bind->nformats == 1 ? 0 : column];
}

/* portal.c */
extern Portal MotPortalMake(const MotBind *bind);
extern void MotPortalCompleted(Portal portal, uint64 rows);
extern void MotPortalRun(Portal portal, long rows);
extern void MotPortalDescribe(const char *name);
extern void MotPipedDescribe(const MotBind *bind);
extern void MotStatementDescribe(const char *name);
extern void MotPipelineComplete(CommandTag tag, uint64 rows);

/* unnamed.c */
extern void MotUnnamedParsed(void);
extern bool MotUnnamedIsKnown(void);
extern CachedPlanSource *MotUnnamed(void);

#endif							/* MOT_PIPELINE_H */
