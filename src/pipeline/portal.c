/*-------------------------------------------------------------------------
 *
 * portal.c
 *	  The server's way: portals, descriptions.
 *
 * What exec_bind_message(), exec_execute_message() and exec_describe_*_message() do with a message that
 * we have read and can not, or need not, run ourselves.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat/clients.h"

#include "access/printtup.h"
#include "access/xact.h"
#include "commands/prepare.h"
#include "compat/calls.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "parser/analyze.h"
#include "pipeline/pipeline.h"
#include "tcop/pquery.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"

/* The portal of a Bind, ready to run; BindComplete is the caller's to send. */
Portal
MotPortalMake(const MotBind *bind)
{
	CachedPlanSource *source = bind->source;
	bool		unnamed = bind->portal[0] == '\0';
	Portal		portal = CreatePortal(bind->portal, unnamed, unnamed);
	bool		snapshot = source->num_params > 0 ||
	(source->raw_parse_tree != NULL && analyze_requires_snapshot(source->raw_parse_tree));
	MemoryContext oldcxt = MemoryContextSwitchTo(portal->portalContext);
	char	   *query = pstrdup(source->query_string);
	char	   *name = bind->statement[0] != '\0' ? pstrdup(bind->statement) : NULL;
	ParamListInfo params = source->num_params > 0 ? copyParamList(bind->piped->params) : NULL;
	CachedPlan *plan;

	MemoryContextSwitchTo(oldcxt);
	if (snapshot)
		PushActiveSnapshot(GetTransactionSnapshot());
	/* nothing may fail between these two */
	plan = MotPlanGet(&bind->piped->known, source, params, NULL);
	PortalDefineQuery(portal, name, query, source->commandTag, plan->stmt_list, plan);
	if (snapshot)
		PopActiveSnapshot();
	PortalStart(portal, params, 0, InvalidSnapshot);
	PortalSetResultFormat(portal, bind->nformats, bind->formats);
	return portal;
}

/* It is as if it had been run to its end: somebody may yet describe it, or ask it for more. */
void
MotPortalCompleted(Portal portal, uint64 rows)
{
	switch (portal->strategy)
	{
		case PORTAL_ONE_SELECT:
			portal->portalPos = rows;
			break;
		case PORTAL_ONE_RETURNING:
			PortalCreateHoldStore(portal);
			SetQueryCompletion(&portal->qc, portal->commandTag, rows);
			portal->portalPos = rows;
			break;
		default:
			MarkPortalActive(portal);
			MarkPortalDone(portal);
			return;
	}
	portal->atStart = false;
	portal->atEnd = true;
}

/* An Execute of SELECT, INSERT, UPDATE or DELETE has been completed.  (EndCommand() formats by pattern.) */
void
MotPipelineComplete(CommandTag tag, uint64 rows)
{
	char		said[COMPLETION_TAG_BUFSIZE];
	const char *name = tag == CMDTAG_INSERT ? "INSERT 0 " : tag == CMDTAG_UPDATE ? "UPDATE " :
	tag == CMDTAG_DELETE ? "DELETE " : "SELECT ";
	size_t		length = strlen(name);

	memcpy(said, name, length);
	length += pg_ulltoa_n(rows, said + length);
	said[length] = '\0';

	CommandCounterIncrement();
	MyXactFlags |= XACT_FLAGS_PIPELINING;
	if (get_timeout_active(STATEMENT_TIMEOUT))
		disable_timeout(STATEMENT_TIMEOUT, false);
	(void) pq_putmessage('C', said, length + 1);
}

/* Execute, of a portal with a plain statement: so many rows, all if that is 0 or less. */
void
MotPortalRun(Portal portal, long rows)
{
	DestReceiver *receiver = CreateDestReceiver(DestRemoteExecute);
	QueryCompletion qc;
	bool		completed;

	SetRemoteDestReceiverParams(receiver, portal);
	completed = MotRunPortal(portal, rows <= 0 ? FETCH_ALL : rows, receiver, &qc);
	receiver->rDestroy(receiver);
	if (completed)
		MotPipelineComplete(qc.commandTag, qc.nprocessed);
	else
	{
		pq_putemptymessage('s');
		MyXactFlags |= XACT_FLAGS_PIPELINING;
	}
}

/* ---------------------------------------------------------- descriptions */

/* Describe, of a portal. */
void
MotPortalDescribe(const char *name)
{
	Portal		portal = GetPortalByName(name);
	StringInfoData buffer;

	if (!PortalIsValid(portal))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_CURSOR),
				 errmsg("portal \"%s\" does not exist", name)));
	initStringInfo(&buffer);
	if (portal->tupDesc)
		SendRowDescriptionMessage(&buffer, portal->tupDesc, FetchPortalTargetList(portal), portal->formats);
	else
		pq_putemptymessage('n');
}

/* Describe, of a statement. */
void
MotStatementDescribe(const char *name)
{
	MotBind		bind = {0};
	StringInfoData buffer;

	MotBindStatement(&bind, name);
	pq_beginmessage(&buffer, 't');
	pq_sendint16(&buffer, bind.source->num_params);
	for (int i = 0; i < bind.source->num_params; i++)
		pq_sendint32(&buffer, bind.source->param_types[i]);
	pq_endmessage(&buffer);
	initStringInfo(&buffer);
	if (bind.source->resultDesc)
		SendRowDescriptionMessage(&buffer, bind.source->resultDesc, CachedPlanGetTargetList(bind.source, NULL), NULL);
	else
		pq_putemptymessage('n');
}

/* Is what has described its rows before right for this Bind? */
static bool
is_described(const MotPiped *piped, const MotBind *bind)
{
	if (piped->description.len == 0 || piped->described != piped->source->generation ||
		piped->encoding != pg_get_client_encoding())
		return false;
	for (int i = 0; i < piped->source->resultDesc->natts; i++)
	{
		if (piped->formats[i] != MotBindFormat(bind, i))
			return false;
	}
	return true;
}

/* Describe, of a statement that has been bound, is known, and will run without a portal. */
void
MotPipedDescribe(const MotBind *bind)
{
	MotPiped   *piped = bind->piped;
	TupleDesc	desc = piped->source->resultDesc;

	if (desc == NULL)
	{
		pq_putemptymessage('n');
		return;
	}
	if (likely(is_described(piped, bind)))
	{
		(void) pq_putmessage('T', piped->description.data, piped->description.len);
		return;
	}
	if (piped->formats == NULL)
	{
		MotWithin(piped->cxt, initStringInfo(&piped->description));
		piped->formats = MemoryContextAlloc(piped->cxt, Max(desc->natts, 1) * sizeof(int16));
	}
	piped->described = -1;
	for (int i = 0; i < desc->natts; i++)
		piped->formats[i] = MotBindFormat(bind, i);
	SendRowDescriptionMessage(&piped->description, desc,
							  FetchStatementTargetList((Node *) MotKnownStatement(&piped->known)), piped->formats);
	piped->encoding = pg_get_client_encoding();
	piped->described = piped->source->generation;
}
