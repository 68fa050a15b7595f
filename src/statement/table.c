/*-------------------------------------------------------------------------
 *
 * table.c
 *	  The statements of this session that are known, and what ends them.
 *
 * A statement is known by the address of its plan, whose memory tells us when it goes.  That
 * callback cannot be taken back, so a plan gets one only, however often its
 * statement is thrown away and made anew; which plans have one is known by
 * their address, for just as long as they are there.
 *
 * If there are more plans than are known, the least used go, some at a
 * time.  By use, not by time: a session that goes through more statements than
 * that in a circle would otherwise throw each away shortly before it comes
 * again, and one that asks each question once would throw away those that it
 * asks all the time.  Use long ago counts half as much with each time that
 * something has to go.
 *
 * A program is thrown away when one of its tables changes, any function,
 * operator or type does, roles' memberships do, another user comes or the plan is freed; and
 * when an error leaves it in the middle.  What it holds between executions is
 * its own memory and pointers into the plan, so throwing it away looks at
 * nothing else.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "statement/remember.h"
#include "statement/statement.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#define MAX_STATEMENTS 1000		/* known at a time */
#define GO_AT_ONCE (MAX_STATEMENTS / 16)	/* if there are more */
#define MAX_PROGRAM_BYTES (1024 * 1024)
#define CACHE_SIZE 1024			/* a power of two */

bool		mot_jit = true;
int			mot_jit_prepare_above = 3;
MotStatement *MotStatementRunning = NULL;
uint64		MotPermissionsTime = 1;

typedef struct Entry
{
	const PlannedStmt *plan;
	MotStatement *statement;
} Entry;

static HTAB *statements = NULL;
static HTAB *watched = NULL;	/* plans that tell us when they go */
static MemoryContext statements_cxt = NULL;
static MotStatement *cache[CACHE_SIZE];

static pg_noinline MotStatement *find_or_make(QueryDesc *query, uint32 place);
static void forget(MotStatement *st);
static void plan_gone(void *arg);
static void xact_end(XactEvent event, void *arg);
static void subxact_end(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg);
static void relation_changed(Datum arg, Oid relid);
static void catalog_changed(Datum arg, int cacheid, uint32 hash);

void
MotStatementTableInit(void)
{
	DefineCustomBoolVariable("mot.jit",
							 "Runs statements on memory-optimized tables without the executor.",
							 "Off leaves every statement to the server's executor.",
							 &mot_jit, true, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("mot.jit_prepare_above_executions",
							"Executions of a plan after which it is run without the executor.",
							"-1 never does.",
							&mot_jit_prepare_above, 3, -1, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
	RegisterXactCallback(xact_end, NULL);
	RegisterSubXactCallback(subxact_end, NULL);
}

static void
make_table(void)
{
	statements_cxt = AllocSetContextCreate(TopMemoryContext, "MOT statements",
										   ALLOCSET_DEFAULT_SIZES);
	statements = MotHashCreate("MOT statements", MAX_STATEMENTS, sizeof(PlannedStmt *), sizeof(Entry), statements_cxt);
	watched = MotHashCreate("MOT plans", 256, sizeof(PlannedStmt *), sizeof(PlannedStmt *), statements_cxt);
	MotWatchPlans(relation_changed, catalog_changed);
}

/* ------------------------------------------------------------------ plans */

/* The server's own way of ON CONFLICT takes a transaction id; so these are run here at once. */
static bool
at_once(const PlannedStmt *stmt)
{
	return IsA(stmt->planTree, ModifyTable) &&
		((const ModifyTable *) stmt->planTree)->onConflictAction != ONCONFLICT_NONE &&
		MotPlanIsOurs(stmt, true);
}

/*
 * Is it a plan of ours that is to be known from its first execution on?  Plans that nobody keeps
 * are executed once only.
 */
static bool
is_to_be_known(const PlannedStmt *stmt)
{
	const char *context = GetMemoryChunkContext(unconstify(PlannedStmt *, stmt))->name;

	return (strcmp(context, "CachedPlan") == 0 || strcmp(context, "SQL function") == 0 ||
			strcmp(context, MOT_REMEMBERED_PLAN) == 0 ||
			mot_jit_prepare_above == 0 || at_once(stmt)) && MotPlanIsOurs(stmt, false);
}

static inline uint32
cache_place(const PlannedStmt *plan)
{
	return (uint32) (((uintptr_t) plan * UINT64CONST(0x9E3779B97F4A7C15)) >> 40) & (CACHE_SIZE - 1);
}

static void
watch(MotStatement *st)
{
	PlannedStmt *plan = unconstify(PlannedStmt *, st->plan);

	if (hash_search(watched, &plan, HASH_FIND, NULL) == NULL)
	{
		MemoryContext cxt = GetMemoryChunkContext(plan);
		MemoryContextCallback *callback = MemoryContextAlloc(cxt, sizeof(MemoryContextCallback));

		/* the entry first: without it the callback would do nothing */
		(void) hash_search(watched, &plan, HASH_ENTER, NULL);
		callback->func = plan_gone;
		callback->arg = plan;
		MemoryContextRegisterResetCallback(cxt, callback);
	}
}

static int
compare_heats(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

/* The coldest of those that are not running are forgotten. */
static void
make_room(void)
{
	uint64	   *heats = palloc(hash_get_num_entries(statements) * sizeof(uint64));
	uint64		limit;
	int			n = 0;
	int			go;

	foreach_hash(Entry, entry, statements)
	{
		MotStatement *st = entry->statement;
		uint64		uses = st->asked + st->executions;

		if (st->state == MOT_STATEMENT_RUNNING)
			continue;
		st->heat = st->heat / 2 + (uses - st->heated);
		st->heated = uses;
		heats[n++] = st->heat;
	}
	go = Min(GO_AT_ONCE, n);
	qsort(heats, n, sizeof(uint64), compare_heats);
	limit = go > 0 ? heats[go - 1] : 0;
	pfree(heats);

	/* all that are colder, and as many of those that are as cold as it takes */
	for (int as_cold = 0; as_cold <= 1; as_cold++)
	{
		foreach_hash(Entry, entry, statements)
		{
			MotStatement *st = entry->statement;

			if (st->state == MOT_STATEMENT_RUNNING || go == 0 ||
				(as_cold ? st->heat != limit : st->heat >= limit))
				continue;
			forget(st);
			go--;
		}
	}
}

static MotStatement *
find(const PlannedStmt *plan)
{
	MotStatement *st;
	Entry	   *entry;

	if (statements == NULL)
		make_table();
	entry = hash_search(statements, &plan, HASH_FIND, NULL);
	if (entry != NULL)
		return entry->statement;
	if (hash_get_num_entries(statements) >= MAX_STATEMENTS)
		make_room();
	st = MemoryContextAllocZero(statements_cxt, sizeof(MotStatement));
	st->plan = st->run = plan;
	watch(st);
	st->state = MOT_STATEMENT_COUNTING;
	entry = hash_search(statements, &plan, HASH_ENTER, NULL);
	entry->statement = st;
	return st;
}

static inline MotStatement *
at_hand(uint32 place, const PlannedStmt *plan, ParamListInfo params)
{
	MotStatement *st = cache[place];

	if (likely(st != NULL && st->plan == plan && st->state == MOT_STATEMENT_READY && !st->stale &&
			   st->userid == GetUserId() && st->params_compile == (params ? params->paramCompile : NULL)))
		return st;
	return NULL;
}

/* The statement, if it has a program that nothing is to be asked of; else NULL. */
MotStatement *
MotStatementAtHand(const PlannedStmt *plan, ParamListInfo params)
{
	return at_hand(cache_place(plan), plan, params);
}

/*
 * The statement, ready to be run; NULL: it is left to the ordinary path.
 */
MotStatement *
MotStatementFor(QueryDesc *query)
{
	uint32		place = cache_place(query->plannedstmt);
	const MotStatement *cached = cache[place];
	MotStatement *st;

	if (unlikely(cached != NULL && cached->plan == query->plannedstmt && cached->state == MOT_STATEMENT_RUNNING))
		return NULL;
	st = at_hand(place, query->plannedstmt, query->params);
	return likely(st != NULL) ? st : find_or_make(query, place);
}

static pg_noinline MotStatement *
find_or_make(QueryDesc *query, uint32 place)
{
	const PlannedStmt *plan = query->plannedstmt;
	MotStatement *st = cache[place];

	if (st != NULL && st->plan == plan)
		MotStatementDiscard(st);
	else if (is_to_be_known(plan))
		st = find(plan);
	else
		return NULL;

	st->asked++;
	if (st->state == MOT_STATEMENT_UNFIT || st->state == MOT_STATEMENT_RUNNING)
		return NULL;
	if (st->state == MOT_STATEMENT_READY)
	{
		cache[place] = st;
		return MotStatementFor(query);
	}
	if (st->seen < mot_jit_prepare_above && !at_once(plan))
	{
		st->seen++;
		return NULL;
	}

	if (st->text == NULL && query->sourceText != NULL)
		st->text = MemoryContextStrdup(statements_cxt, query->sourceText);
	st->query_id = plan->queryId;

	if (st->cxt != NULL)
		MotStatementDiscard(st);	/* an error ended the last attempt */
	st->cxt = AllocSetContextCreate(statements_cxt, "MOT statement", ALLOCSET_SMALL_SIZES);
	MotWithin(st->cxt, st->run = MotPlanTranslate(plan));
	st->why_not = MotWhyNot(st->run, &st->bare);
	if (st->why_not != NULL)
	{
		MotStatementDiscard(st);
		st->state = MOT_STATEMENT_UNFIT;
		return NULL;
	}

	if (!MotProgramBuild(st, query))
	{
		MotStatementDiscard(st);
		if (st->why_not != NULL)
			st->state = MOT_STATEMENT_UNFIT;
		return NULL;
	}
	st->state = MOT_STATEMENT_READY;
	cache[place] = st;
	return st;
}

/* -------------------------------------------------------------- execution */

void
MotStatementEnter(MotStatement *st, QueryDesc *query)
{
	st->state = MOT_STATEMENT_RUNNING;
	st->query = query;
	st->level = GetCurrentTransactionNestLevel();
	st->below = MotStatementRunning;
	MotStatementRunning = st;
}

void
MotStatementLeave(MotStatement *st)
{
	MotStatement **place = &MotStatementRunning;

	while (*place != st)
		place = &(*place)->below;
	*place = st->below;
	st->state = MOT_STATEMENT_READY;
	st->query = NULL;
	st->executions++;
	st->uses++;
	if (unlikely(st->gone))
		forget(st);
	else if (unlikely(st->stale) ||
			 (st->uses % 256 == 0 &&
			  MemoryContextMemAllocated(st->cxt, true) > MAX_PROGRAM_BYTES))
		MotStatementDiscard(st);
}

void
MotStatementDiscard(MotStatement *st)
{
	MemoryContext cxt = st->cxt;
	uint32		place = cache_place(st->plan);

	if (cache[place] == st)
		cache[place] = NULL;
	if (st->state == MOT_STATEMENT_READY)
		st->state = MOT_STATEMENT_COUNTING;
	MotStatementRelease(st);
	st->run = st->plan;
	memset(&st->cxt, 0, sizeof(MotStatement) - offsetof(MotStatement, cxt));
	if (cxt != NULL)
		MemoryContextDelete(cxt);
}

static void
forget(MotStatement *st)
{
	MotStatementDiscard(st);
	(void) hash_search(statements, &st->plan, HASH_REMOVE, NULL);
	if (st->text !=NULL)
		pfree(st->text);
	pfree(st);
}

void
MotStatementEach(void (*visit) (MotStatement *st, void *arg), void *arg)
{
	if (statements == NULL)
		return;
	foreach_hash(Entry, entry, statements)
		visit(entry->statement, arg);
}

/* ------------------------------------------------------------ what ends it */

static void
plan_gone(void *arg)
{
	Entry	   *entry = hash_search(statements, &arg, HASH_FIND, NULL);

	if (hash_search(watched, &arg, HASH_REMOVE, NULL) == NULL || entry == NULL)
		return;
	if (entry->statement->state == MOT_STATEMENT_RUNNING)
		entry->statement->gone = true;	/* in an abort, whose end comes later */
	else
		forget(entry->statement);
}

/*
 * Those that are still running, from nesting level "level" on: an error ended
 * them.
 */
static void
leave_all(int level)
{
	MotStatement **place = &MotStatementRunning;

	while (*place != NULL)
	{
		MotStatement *st = *place;

		if (st->level < level)
		{
			place = &st->below;
			continue;
		}
		*place = st->below;
		MotStatementCloseTables(st);
		st->run_level = 0;
		st->state = MOT_STATEMENT_READY;
		st->query = NULL;
		if (st->gone)
			forget(st);
		else
			MotStatementDiscard(st);
	}
}

/* Also at commit: a cursor that failed in a savepoint is never ended. */
static void
xact_end(XactEvent event, void *arg)
{
	if (MotStatementRunning != NULL &&
		(event == XACT_EVENT_ABORT || event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE))
	{
		leave_all(0);
		MotSenderFails();
	}
}

static void
subxact_end(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	int			level;

	if (MotStatementRunning == NULL)
		return;
	level = GetCurrentTransactionNestLevel();
	if (event == SUBXACT_EVENT_ABORT_SUB)
	{
		leave_all(level);
		MotSenderFails();
		/* a cursor that failed in it: its table may be altered from now on */
		for (MotStatement *st = MotStatementRunning; st != NULL; st = st->below)
			if (st->run_level >= level)
				MotStatementCloseTables(st);
	}
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		for (MotStatement *st = MotStatementRunning; st != NULL; st = st->below)
			if (st->level >= level)
				st->level = level - 1;
}

static void
relation_changed(Datum arg, Oid relid)
{
	MotPermissionsTime++;
	foreach_hash(Entry, entry, statements)
	{
		MotStatement *st = entry->statement;

		if (st->cxt == NULL || st->stale)
			continue;
		if (!OidIsValid(relid))
			st->stale = true;
		else
			for (int i = 0; i < st->ntables; i++)
				if (st->tables[i].relid == relid)
					st->stale = true;
	}
}

static void
catalog_changed(Datum arg, int cacheid, uint32 hash)
{
	if (!MotIsOtherDatabase(cacheid, hash))
		relation_changed(arg, InvalidOid);
}
