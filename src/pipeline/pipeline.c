/*-------------------------------------------------------------------------
 *
 * pipeline.c
 *	  When to read, what to read, and the statements that run here.
 *
 * A statement runs here if a compiled procedure could run it without a QueryDesc and a snapshot of the
 * server's (MotStatementRunBare), its plan is known, and its rows go to the client by our own sender.  If
 * anything is to be logged of statements, all is left to the server.
 *
 * What others could see is as if there had been portals: pg_stat_activity (a statement's start to a
 * millisecond), timeouts, cancellation, statement_timestamp(), the counters of pg_prepared_statements,
 * and the unnamed portal, which is made afterwards where somebody could ask for it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/clients.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "compat/calls.h"
#include "faults.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "pipeline/pipeline.h"
#include "postmaster/interrupt.h"
#include "replication/walsender.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/ps_status.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"

#define REPORT_AFTER 1000		/* microseconds in which the same statement is
								 * not reported again */
#define SNAPSHOT_FOR 64			/* statements */
#define HOLD_AT_MOST (1024 * 1024)	/* bytes of RETURNING's rows; more go at
									 * once */
#define KEEP_BUFFER (64 * 1024) /* one that has grown beyond this is let go of */

typedef struct Receiver
{
	DestReceiver public;
	MotSender  *sender;
} Receiver;

/* While a pipeline is read. */
typedef struct Pipeline
{
	MemoryContext cxt;			/* of a statement */
	StringInfoData message;
	MotBind		bind;
	bool		vacant;			/* the unnamed portal is not there: Binds to
								 * it have been served ... */
	bool		ran;			/* ... the last of which has been run, with
								 * ... */
	uint64		rows;			/* ... so many rows */
	MemoryContext portals;		/* of all of them */
	bool		counted;		/* the Bind's plan has been */
	bool		alone;			/* there is no other portal */
	int			snapshot;		/* statements for which it may stay; 0: there
								 * is none */
	const CachedPlanSource *reported;
	TimestampTz reported_at;
} Pipeline;

static bool mot_pipeline;
static const PQcommMethods *below;
static PQcommMethods methods;
static bool reading = false;
static StringInfo held = NULL;	/* RETURNING's rows: length and body each */

static void read_ahead(void);

/* ------------------------------------------------------------------- when */

/* What has been held goes, and so does what comes. */
static int
send_held(void)
{
	StringInfo	rows = held;
	size_t		length;
	int			result = 0;

	held = NULL;
	for (int at = 0; at < rows->len && result == 0; at += sizeof(length) + length)
	{
		memcpy(&length, rows->data + at, sizeof(length));
		result = below->putmessage('D', rows->data + at + sizeof(length), length);
	}
	return result;
}

/* RETURNING's row.  As the server's, they go when all have been made: an error comes without any. */
static int
hold(const char *body, size_t length)
{
	appendBinaryStringInfo(held, (const char *) &length, sizeof(length));
	appendBinaryStringInfo(held, body, length);
	return held->len > HOLD_AT_MOST ? send_held() : 0;
}

/* The next message's type, if there is one at hand; else 0. */
static int
next_type(void)
{
	int			type;

	if (ConfigReloadPending || !MotClientHasSent())
		return 0;
	pq_startmsgread();
	type = pq_peekbyte();
	pq_endmsgread();
	return type;
}

/* Would the server say something of a statement? */
static inline bool
is_logged(void)
{
	return log_statement != LOGSTMT_NONE || log_duration || log_min_duration_statement >= 0 ||
		log_min_duration_sample >= 0 || xact_is_sampled || log_statement_stats || log_executor_stats ||
		log_parameter_max_length_on_error != 0 ||
		message_level_is_interesting(DEBUG2);
}

/*
 * Who waits here for the rest of a message can be ended by an administrator only, and by nothing else
 * that would end him in the server's loop: the transaction's timeout, a standby's replay.
 */
static inline bool
may_wait(void)
{
	return MotTransactionTimeout() == 0 && !RecoveryInProgress();
}

/*
 * CommandComplete has been sent.  Was it an Execute's?  A simple query's portal is gone by then, and so is
 * any after COMMIT.
 */
static bool
was_execute(void)
{
	Portal		portal;

	if (!IsTransactionState() || (MyXactFlags & XACT_FLAGS_PIPELINING) == 0)
		return false;
	portal = GetPortalByName("");
	return PortalIsValid(portal) && portal->visible && portal->status != PORTAL_ACTIVE;
}

static int
put_message(char type, const char *body, size_t length)
{
	int			result;

	if (held != NULL && type == 'D')
		return hold(body, length);
	result = below->putmessage(type, body, length);
	switch (type)
	{
		case 'D':				/* DataRow */
			break;
		case '1':				/* ParseComplete */
			MotUnnamedParsed();
			MotStatementRan = false;
			break;
		case 'C':				/* CommandComplete */
			if (!MotStatementRan || reading)
				break;
			MotStatementRan = false;
			if (mot_pipeline && next_type() == 'B' && result == 0 && whereToSendOutput == DestRemote &&
				MyProcPort != NULL && !am_walsender && was_execute() && !IsolationUsesXactSnapshot() && !is_logged() &&
				may_wait() && MotUnnamedIsKnown())
				read_ahead();
			break;
		case 'E':				/* ErrorResponse: it ends what is being read */
		case 'Z':				/* ReadyForQuery */
			reading = MotStatementRan = false;
			held = NULL;
			break;
	}
	return result;
}

void
MotPipelineInit(void)
{
	DefineCustomBoolVariable("mot.pipeline",
							 "Runs the statements that a client has sent ahead without portals.",
							 "Statements on memory-optimized tables, of the extended query protocol.",
							 &mot_pipeline, true, PGC_USERSET, 0, NULL, NULL, NULL);
	below = PqCommMethods;
	methods = *below;
	methods.putmessage = put_message;
	PqCommMethods = &methods;
}

/* --------------------------------------------------------------- messages */

/* pq_getmessage(), which is made for messages of any size, for a small one */
static bool
get_message(StringInfo message, int limit)
{
	int32		length;

	resetStringInfo(message);
	if (pq_getbytes((char *) &length, sizeof(length)) == EOF)
		return false;
	length = pg_ntoh32(length);
	if (length < (int32) sizeof(length) || length > limit)
	{
		ereport(COMMERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("invalid message length")));
		return false;
	}
	length -= sizeof(length);
	if (unlikely(length >= message->maxlen))
	{
		PG_TRY();
		{
			enlargeStringInfo(message, length);
		}
		PG_CATCH();
		{
			char		waste[1024];

			/*
			 * what has no room is read all the same, to understand the next
			 * one
			 */
			for (int n; length > 0; length -= n)
			{
				n = Min(length, (int) sizeof(waste));
				if (pq_getbytes(waste, n) == EOF)
					break;
			}
			pq_endmsgread();
			PG_RE_THROW();
		}
		PG_END_TRY();
	}
	if (length > 0 && pq_getbytes(message->data, length) == EOF)
		return false;
	message->len = length;
	message->data[length] = '\0';
	pq_endmsgread();
	return true;
}

/*
 * It is taken.  If not all of it is there it is waited for, as for COPY's data: until the client goes, or
 * somebody ends the session.  A client that is gone, or talks nonsense, ends it, as in the server's loop.
 */
static void
take(Pipeline *p, int limit)
{
	bool		taken;

	HOLD_CANCEL_INTERRUPTS();
	pq_startmsgread();
	(void) pq_getbyte();
	taken = get_message(&p->message, limit);
	RESUME_CANCEL_INTERRUPTS();
	if (!taken)
	{
		ereport(COMMERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("unexpected EOF on client connection with an open transaction")));
		pgStatSessionEndCause = DISCONNECT_CLIENT_EOF;
		whereToSendOutput = DestNone;
		proc_exit(0);
	}
}

/* -------------------------------------------------------------- statements */

/* What others see of a statement that is about to begin; its time runs. */
static void
report(Pipeline *p)
{
	CachedPlanSource *source = p->bind.source;
	TimestampTz now;

	SetCurrentStatementStartTimestamp();
	now = GetCurrentStatementStartTimestamp();
	debug_query_string = source->query_string;
	if (StatementTimeout > 0 && !get_timeout_active(STATEMENT_TIMEOUT))
		enable_timeout_after(STATEMENT_TIMEOUT, StatementTimeout);
	if (likely(source == p->reported && now - p->reported_at < REPORT_AFTER && now >= p->reported_at))
		return;
	p->reported = source;
	p->reported_at = now;
	pgstat_report_activity(STATE_RUNNING, source->query_string);
	foreach_node(Query, query, source->query_list)
	{
		if (query->queryId != 0)
		{
			pgstat_report_query_id(query->queryId, false);
			break;
		}
	}
	set_ps_display(GetCommandTagName(source->commandTag));
}

/* What is called in the server's functions may expect a snapshot, and finds one. */
static void
keep_snapshot(Pipeline *p)
{
	if (p->snapshot > 0 && --p->snapshot == 0)
		PopActiveSnapshot();
	if (p->snapshot == 0)
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		p->snapshot = SNAPSHOT_FOR;
	}
}

static void
drop_snapshot(Pipeline *p)
{
	if (p->snapshot > 0)
		PopActiveSnapshot();
	p->snapshot = 0;
}

/* What the client is told, but where a rule has made another statement of his. */
static CommandTag
tag_of(CmdType type)
{
	switch (type)
	{
		case CMD_SELECT:
			return CMDTAG_SELECT;
		case CMD_INSERT:
			return CMDTAG_INSERT;
		case CMD_UPDATE:
			return CMDTAG_UPDATE;
		case CMD_DELETE:
			return CMDTAG_DELETE;
		default:
			return CMDTAG_UNKNOWN;
	}
}

/* The statement's program, if it can be run here; else NULL. */
static MotStatement *
program(Pipeline *p)
{
	MotBind    *bind = &p->bind;
	const PlannedStmt *stmt;
	MotStatement *st;

	if (!p->alone || !MotPlanIsKnown(&bind->piped->known, bind->source, bind->piped->params))
		return NULL;
	stmt = MotKnownStatement(&bind->piped->known);
	st = MotStatementBare(stmt, bind->piped->params);
	if (st == NULL || !stmt->canSetTag || bind->source->commandTag != tag_of(stmt->commandType))
		return NULL;
	if (bind->source->resultDesc == NULL)
		return st->operation != CMD_SELECT && !stmt->hasReturning ? st : NULL;
	return st->sender != NULL && MotSenderFormats(st->sender, bind->formats, bind->nformats) ? st : NULL;
}

static void
begin_rows(DestReceiver *self, int operation, TupleDesc desc)
{
}

static bool
send_row(TupleTableSlot *slot, DestReceiver *self)
{
	MotSenderRow(((Receiver *) self)->sender, slot);
	return true;
}

static void
end_rows(DestReceiver *self)
{
}

/*
 * False: not now, and nothing has been done.  (To describe its rows may have brought news: a program that
 * is out of date does not run.)
 */
static bool
run(Pipeline *p, MotStatement *st)
{
	CachedPlanSource *source = p->bind.source;
	Receiver	receiver = {{send_row, begin_rows, end_rows, end_rows, DestRemoteExecute}, st->sender};
	StringInfoData rows;

	CHECK_FOR_INTERRUPTS();
	MOT_FAULT("pipeline-run");
	keep_snapshot(p);
	if (st->change != NULL && st->sender != NULL)
	{
		initStringInfo(&rows);
		held = &rows;
	}
	if (!MotStatementRunBare(st, p->bind.piped->params, source->query_string, 0, &receiver.public, &p->rows))
	{
		held = NULL;
		return false;
	}
	if (held != NULL)
		(void) send_held();
	if (st->sender != NULL)
		MotSenderEnds();
	p->ran = true;
	MotPipelineComplete(source->commandTag, p->rows);
	return true;
}

/* ------------------------------------------------------------------- what */

/* The server goes on, and would have this portal. */
static Portal
make_portal(Pipeline *p)
{
	Portal		portal;

	drop_snapshot(p);
	if (p->counted)
		p->bind.source->num_generic_plans--;	/* and will be */
	p->counted = false;
	portal = MotPortalMake(&p->bind);
	if (p->bind.portal[0] == '\0')
		p->vacant = false;
	return portal;
}

/* Of the last statement that ran here, and has none. */
static void
make_completed(Pipeline *p)
{
	if (!p->ran)
		return;
	p->ran = false;
	p->bind.portal = "";
	MotPortalCompleted(make_portal(p), p->rows);
}

/* Binds to the unnamed portal replace it. */
static void
drop_unnamed_portal(Pipeline *p)
{
	Portal		portal;

	p->ran = false;
	if (p->vacant)
		return;
	portal = GetPortalByName("");
	p->vacant = true;
	if (!PortalIsValid(portal))
		return;
	p->portals = MemoryContextGetParent(portal->portalContext);
	PortalDrop(portal, false);
	p->alone = p->portals->firstchild == NULL;
}

/* An Execute; "st" is to run then, or NULL: a portal has been made. */
static void
execute(Pipeline *p, MotStatement *st)
{
	const char *name = pq_getmsgstring(&p->message);
	int			rows = pq_getmsgint(&p->message, 4);

	pq_getmsgend(&p->message);
	if (unlikely(name[0] != '\0'))
	{
		Assert(p->alone && GetPortalByName(name) == NULL);
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_CURSOR),
				 errmsg("portal \"%s\" does not exist", name)));
	}
	if (unlikely(rows > 0 || !run(p, st)))
		MotPortalRun(make_portal(p), rows);
}

/* A Describe, before "st" runs.  False: a portal has been made. */
static bool
describe(Pipeline *p)
{
	int			type = pq_getmsgbyte(&p->message);
	const char *name = pq_getmsgstring(&p->message);

	pq_getmsgend(&p->message);
	if (likely(type == 'P' && name[0] == '\0'))
	{
		MotPipedDescribe(&p->bind);
		return true;
	}
	(void) make_portal(p);
	if (type == 'P')
		MotPortalDescribe(name);
	else if (type == 'S')
		MotStatementDescribe(name);
	else
		ereport(ERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("invalid DESCRIBE message subtype %d", type)));
	return false;
}

/* A Bind, and what follows it.  False: the server goes on. */
static bool
serve(Pipeline *p)
{
	MotBind    *bind = &p->bind;
	MotStatement *st;

	debug_query_string = NULL;
	if (unlikely(p->message.maxlen > KEEP_BUFFER))
	{
		pfree(p->message.data);
		MotWithin(MessageContext, initStringInfo(&p->message));
	}
	take(p, PQ_LARGE_MESSAGE_LIMIT);
	/* (the portal's name comes first: it goes to another one) */
	if (p->ran && p->message.data[0] != '\0')
		make_completed(p);
	p->counted = false;
	MotContextReset(p->cxt);
	MotBindNames(&p->message, bind);
	report(p);
	if (bind->portal[0] == '\0')
		drop_unnamed_portal(p);
	MotBindValues(&p->message, bind);
	/* users' input functions may have opened one */
	if (!bind->piped->plain && p->alone)
		p->alone = p->portals->firstchild == NULL;
	st = bind->portal[0] == '\0' ? program(p) : NULL;
	if (st == NULL)
	{
		(void) make_portal(p);
		pq_putemptymessage('2');
		return false;
	}
	bind->source->num_generic_plans++;
	p->counted = true;
	pq_putemptymessage('2');

	while (next_type() == 'D')
	{
		bind->portal = "";		/* (its message goes) */
		take(p, PQ_SMALL_MESSAGE_LIMIT);
		if (!describe(p))
			return false;
	}
	bind->portal = "";
	if (next_type() != 'E')
	{
		(void) make_portal(p);
		return false;
	}
	take(p, PQ_SMALL_MESSAGE_LIMIT);
	execute(p, st);
	return true;
}

/* An error leaves all of it to the message's memory and the end of the transaction. */
static void
read_ahead(void)
{
	Pipeline	p = {0};
	MemoryContext oldcxt;

	reading = true;
	oldcxt = MemoryContextSwitchTo(MessageContext);
	initStringInfo(&p.message);
	p.cxt = AllocSetContextCreate(MessageContext, "MOT pipeline's message", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(p.cxt);
	while (serve(&p) && next_type() == 'B')
		;

	/*
	 * a Sync ends the transaction, and portals with it; but for who has begun
	 * one himself
	 */
	if (p.ran && (next_type() != 'S' || IsTransactionBlock()))
		make_completed(&p);
	drop_snapshot(&p);
	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(p.cxt);
	reading = false;
}
