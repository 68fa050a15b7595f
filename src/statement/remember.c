/*-------------------------------------------------------------------------
 *
 * remember.c
 *	  Plans of statements that nobody has prepared.
 *
 * Scripts, poolers and many frameworks send each statement as text with its values in it, or as an
 * unnamed one that is forgotten at once.  Of what the server does for such a statement on a
 * MOT table, planning is about half; it cannot be left out but by who remembers the plan.  So
 * the planner's hook does: what is the same but for its constants (constants.c) is the
 * same statement, which has one generic plan, and one program, as if somebody had prepared it.
 *
 * What is remembered.  The rewritten query, its constants replaced by parameters, is compared as a
 * whole (equal()); names, schemas, types and views are resolved in it already, and whatever cannot
 * be compared that way is not remembered: row-level security, functions in SQL, which are inlined
 * as the search path is at that time, and calls that the planner makes.  Only statements of one MOT
 * table whose plan inserts rows, or reads few: one by a unique key, as many as LIMIT asks for, or
 * what its index has between two bounds.
 *
 * Few.  Another plan could be better for some constants, or for the rows that there are by now, by
 * no more than what this one reads in all.  So it is handed out only if that is less than what
 * planning takes by the server's own reckoning, some 250 entries of an index: less, if the rows'
 * filter is dear.  How many there are is not estimated but counted in the index, for the constants
 * of each execution (count_entries); statistics may be old, and would take longer to ask.  If there
 * are more it is planned as ever, and a value that many rows have, a range that is wide, an index
 * that does not suit get the plan that they deserve.
 *
 * What is returned.  The server copies a plan before it keeps it for an unnamed statement, and gives a
 * simple query no parameters.  So planning hands out a small plan (a "slip") which says what a client wants to know:
 * columns, tables to lock, dependencies.  It has one node of ours, with a reference to
 * what is remembered and this execution's values.  When the executor starts (run.c), the plan
 * itself and the values take its place, and all that follows is as for a prepared statement: the
 * first executions by the server's nodes, then by a program, which is known by the plan's address.
 *
 * How long.  Plans go when the plan cache would let go of them (invalidations of their table, functions, types and so
 * on), and the longest unused when all of them need more than mot.remember_memory.  What a slip refers to stays for as
 * long as the slip: its node counts references when it is copied, and a callback of its memory takes
 * them back.
 *
 * Only at the top level: a client's message, not EXPLAIN, cursors, functions or prepared statements, which keep
 * plans themselves or want to see one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/stratnum.h"
#include "access/transam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "compat/calls.h"
#include "jit/jit.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "parser/parse_coerce.h"
#include "relation/keys.h"
#include "statement/remember.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#define BUCKETS 256				/* a power of two */
#define SEEN 1024				/* likewise */

typedef struct Remembered
{
	dlist_node	bucket;
	dlist_node	used;			/* used last is first; or of what is gone */
	uint32		hash;
	int			references;
	MemoryContext cxt;			/* all of it */
	Size		bytes;
	Query	   *query;			/* with parameters in the place of constants */
	Oid			relid;
	PlannedStmt *plan;			/* NULL: it is planned each time */
	ForeignScan *bounds;		/* whose conditions say what is read of its
								 * index; NULL: few rows at most */
	unsigned	most;			/* entries within them, if it is handed out */
	PlannedStmt slip;			/* what is handed out of it, but for its node */
	CustomScan	node;			/* likewise */
	uint64		uses;
	int			n;				/* parameters */
	Oid		   *types;
	int16	   *lengths;
	bool	   *byval;
} Remembered;

/* What a slip refers to. */
typedef struct Reference
{
	ExtensibleNode node;		/* must be first */
	Remembered *remembered;
	ParamListInfo params;
	MemoryContextCallback callback;
} Reference;

static bool mot_remember_plans = true;
static int	mot_remember_memory = 4096;

static planner_hook_type prev_planner = NULL;
static dlist_head buckets[BUCKETS];
static dlist_head used = DLIST_STATIC_INIT(used);
static dlist_head gone = DLIST_STATIC_INIT(gone);	/* not listed any more */
static Size bytes = 0;			/* of those that are listed */
static uint32 seen[SEEN];		/* hashes of queries that came once */
static MemoryContext remembered_cxt = NULL;
static uint64 changes = 0;		/* goes up when something may have to be
								 * forgotten */
static MotConstants constants;

/* ---------------------------------------------------------------- references */

static void
release(void *arg)
{
	((Remembered *) arg)->references--;
}

/* in memory that lives as long as what refers to it */
static void
refer(Reference *reference, Remembered *r)
{
	reference->remembered = r;
	reference->callback.func = release;
	reference->callback.arg = r;
	r->references++;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &reference->callback);
}

static void
copy_reference(ExtensibleNode *to, const ExtensibleNode *from)
{
	Reference  *copy = (Reference *) to;
	const Reference *reference = (const Reference *) from;
	Remembered *r = reference->remembered;

	copy->params = NULL;
	if (reference->params != NULL)
	{
		copy->params = makeParamList(r->n);
		for (int i = 0; i < r->n; i++)
		{
			ParamExternData *prm = &copy->params->params[i];

			*prm = reference->params->params[i];
			if (!prm->isnull && !r->byval[i])
				prm->value = datumCopy(prm->value, false, r->lengths[i]);
		}
	}
	refer(copy, r);
}

static bool
equal_references(const ExtensibleNode *a, const ExtensibleNode *b)
{
	return ((const Reference *) a)->remembered == ((const Reference *) b)->remembered;
}

static void
out_reference(StringInfo str, const ExtensibleNode *node)
{
	appendStringInfo(str, " :uses " UINT64_FORMAT, ((const Reference *) node)->remembered->uses);
}

static void
read_reference(ExtensibleNode *node)
{
	elog(ERROR, "a remembered plan cannot be read");
}

static Node *
make_state(CustomScan *node)
{
	elog(ERROR, "a remembered plan was not put in its place");
	return NULL;				/* keep compiler quiet */
}

static const ExtensibleNodeMethods reference_methods = {
	"MotRemembered", sizeof(Reference), copy_reference, equal_references, out_reference, read_reference
};

static const CustomScanMethods slip_methods = {"MotRemembered", make_state};

static inline Reference *
slip_reference(const PlannedStmt *stmt)
{
	const CustomScan *node = (const CustomScan *) stmt->planTree;

	return node != NULL && IsA(node, CustomScan) && node->methods == &slip_methods ?
		(Reference *) linitial(node->custom_private) : NULL;
}

/*
 * When the executor starts: the plan in the place of what was handed out for it.  Returns that; or
 * NULL, if it is any other plan.
 */
PlannedStmt *
MotRememberedPut(QueryDesc *query)
{
	PlannedStmt *slip = query->plannedstmt;
	Reference  *reference = slip_reference(slip);

	if (likely(reference == NULL))
		return NULL;
	query->plannedstmt = reference->remembered->plan;
	query->params = reference->params;
	return slip;
}

/*
 * When it has started: others want to know what this execution is of; or "all" of its plan (EXPLAIN EXECUTE of a
 * statement that was prepared by a message of its own, and whose cached plan is a slip).
 */
void
MotRememberedShow(QueryDesc *query, PlannedStmt *slip, bool all)
{
	if (all)
	{
		PlannedStmt *plan = palloc(sizeof(PlannedStmt));

		*plan = *query->plannedstmt;
		plan->queryId = slip->queryId;
		plan->stmt_location = slip->stmt_location;
		plan->stmt_len = slip->stmt_len;
		slip = plan;
	}
	query->plannedstmt = slip;
}

/* ------------------------------------------------------------- what is kept */

/* Not at once: it may be that somebody is looking at its program just now. */
static void
forget(Remembered *r)
{
	dlist_delete(&r->bucket);
	dlist_delete(&r->used);
	dlist_push_head(&gone, &r->used);
	bytes -= r->bytes;
}

static void
free_gone(void)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &gone)
	{
		Remembered *r = dlist_container(Remembered, used, iter.cur);

		if (r->references > 0)
			continue;
		dlist_delete(&r->used);
		MemoryContextDelete(r->cxt);
	}
}

/* The longest unused go. */
static void
make_room(Size limit)
{
	while (bytes > limit)
		forget(dlist_container(Remembered, used, dlist_tail_node(&used)));
}

static void
relation_changed(Datum arg, Oid relid)
{
	dlist_mutable_iter iter;

	changes++;
	dlist_foreach_modify(iter, &used)
	{
		Remembered *r = dlist_container(Remembered, used, iter.cur);

		if (!OidIsValid(relid) || r->relid == relid)
			forget(r);
	}
}

/*
 * Does the plan depend on it: an entry of that cache (0: on any)?  The server's functions that the planner has
 * called are not in the plan, nor are domains that those in it are made of.
 */
static bool
depends_on(const Remembered *r, int cacheid, uint32 hash)
{
	if (r->plan == NULL)
		return false;
	if (hash == 0 || cacheid != TYPEOID)
		return true;
	foreach_node(PlanInvalItem, item, r->plan->invalItems)
	{
		if (item->cacheId == TYPEOID)
			return true;
	}
	return false;
}

/* (Of roles a plan knows nothing.) */
static void
catalog_changed(Datum arg, int cacheid, uint32 hash)
{
	dlist_mutable_iter iter;

	if (cacheid == AUTHOID || cacheid == AUTHMEMROLEMEM || cacheid == DATABASEOID)
		return;
	changes++;
	dlist_foreach_modify(iter, &used)
	{
		Remembered *r = dlist_container(Remembered, used, iter.cur);

		if (depends_on(r, cacheid, hash))
			forget(r);
	}
	if (cacheid == PROCOID)
		MotConstantsForget();
}

static Remembered *
find(const Query *query)
{
	dlist_iter	iter;

	dlist_foreach(iter, &buckets[constants.hash % BUCKETS])
	{
		Remembered *r = dlist_container(Remembered, bucket, iter.cur);

		if (r->hash == constants.hash && r->n == constants.n && equal(query, r->query))
			return r;
	}
	return NULL;
}

/* Has it come before?  (Or another one whose hash has the same place, lately: no matter.) */
static bool
has_come(uint32 hash)
{
	uint32		before = seen[hash % SEEN];

	seen[hash % SEEN] = hash;
	return before == hash;
}

/* ---------------------------------------------------- what is remembered */

/*
 * Is it of one table, and of nothing that its text and the catalogue do not say alone?  (Whether
 * the table is ours is looked at now if that is quick, and otherwise when it is to be remembered.)
 */
static bool
is_simple(const Query *query)
{
	Oid			relid = InvalidOid;

	switch (query->commandType)
	{
		case CMD_SELECT:
		case CMD_UPDATE:
		case CMD_DELETE:
			if (list_length(query->rtable) != 1)
				return false;
			break;
		case CMD_INSERT:
			break;
		default:
			return false;
	}
	foreach_node(RangeTblEntry, rte, query->rtable)
	{
		if (rte->rtekind == RTE_VALUES && query->commandType == CMD_INSERT && !rte->lateral)
			continue;
		if (rte->rtekind != RTE_RELATION || rte->securityQuals != NIL || rte->tablesample != NULL ||
			(OidIsValid(relid) && rte->relid != relid))
			return false;
		/* (ON CONFLICT's "excluded" is of a composite type) */
		if (rte->relkind == RELKIND_RELATION ? !MotIsOrdinaryTable(rte->relid) :
			rte->relkind != RELKIND_FOREIGN_TABLE && rte->relkind != RELKIND_COMPOSITE_TYPE)
			return false;
		relid = rte->relid;
	}
	foreach_ptr(Node, from, query->jointree->fromlist)
		if (!IsA(from, RangeTblRef))
		return false;
	return list_length(query->jointree->fromlist) <= 1 && query->querySource == QSRC_ORIGINAL &&
		!query->hasWindowFuncs && !query->hasTargetSRFs && !query->hasSubLinks && !query->hasDistinctOn &&
		!query->hasRecursive && !query->hasModifyingCTE && !query->hasRowSecurity &&
		query->cteList == NIL && query->mergeActionList == NIL && query->groupClause == NIL &&
		query->groupingSets == NIL && query->havingQual == NULL && query->windowClause == NIL &&
		query->setOperations == NULL && query->constraintDeps == NIL && query->withCheckOptions == NIL;
}

/* What is asked of an expression. */
typedef struct Planning
{
	bool		patterns;		/* do operators that are estimated count, too? */
	bool		estimated;		/* is it a condition, or LIMIT? */
	bool		constant;		/* the node has no column in it */
} Planning;

/*
 * Does the planner call it, or look into it?  Functions in SQL are inlined, and what is immutable
 * and has no column in it is computed: as it is defined at that time, by whoever may call it, and
 * from what a table says, though it should not look.  What the server brings along is the same each
 * time, but for text search, and for what goes by settings though it is called immutable: output
 * (extra_float_digits, IntervalStyle, bytea_output) and quote_ident.  To estimate a condition the
 * planner also computes what is stable; of that the server's own can fail at one time and not at
 * another if it reads text.
 */
static bool
is_of_planning(Oid funcid, void *context)
{
	const Planning *planning = context;
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	Form_pg_proc form;
	bool		immutable;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return true;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	result = form->prolang == SQLlanguageId;
	immutable = form->provolatile == PROVOLATILE_IMMUTABLE;
	if (planning->constant && (immutable || (planning->estimated && form->provolatile == PROVOLATILE_STABLE)))
	{
		result |= funcid >= FirstUnpinnedObjectId || !heap_attisnull(tuple, Anum_pg_proc_proacl, NULL) ||
			(immutable && (form->prorettype == CSTRINGOID || funcid == F_QUOTE_IDENT));
		for (int i = 0; i < form->pronargs; i++)
		{
			Oid			type = form->proargtypes.values[i];

			result |= immutable ? type == REGCONFIGOID || type == REGDICTIONARYOID :
				type == CSTRINGOID || TypeCategory(type) == TYPCATEGORY_STRING;
		}
	}
	ReleaseSysCache(tuple);
	return result;
}

/* Might somebody see, or miss, that the planner calls it? */
static bool
is_procedural(Oid funcid)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	Oid			language = HeapTupleIsValid(tuple) ? ((Form_pg_proc) GETSTRUCT(tuple))->prolang : InvalidOid;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return language != INTERNALlanguageId && language != ClanguageId;
}

/*
 * To estimate what a comparison finds the planner calls it, with what statistics have, or looks into a pattern: may
 * that fail, or be seen?
 */
static bool
may_fail_to_estimate(OpExpr *op)
{
	Oid			estimate = get_oprrest(op->opno);

	if (OidIsValid(estimate) &&
		(is_procedural(get_opcode(op->opno)) ||
		 (!OidIsValid(op->inputcollid) && type_is_collatable(exprType(linitial(op->args))))))
		return true;
	switch (estimate)
	{
		case F_REGEXEQSEL:
		case F_REGEXNESEL:
		case F_ICREGEXEQSEL:
		case F_ICREGEXNESEL:
		case F_LIKESEL:
		case F_NLIKESEL:
		case F_ICLIKESEL:
		case F_ICNLIKESEL:
			return true;
		default:
			return false;
	}
}

static bool
needs_planning(Node *node, void *context)
{
	Planning   *planning = context;

	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		const Query *query = (const Query *) node;
		Planning	limit = {.patterns = true,.estimated = true};

		return query_tree_walker((Query *) node, needs_planning, context, 0) ||
			needs_planning(query->limitOffset, &limit) || needs_planning(query->limitCount, &limit);
	}
	if (IsA(node, FromExpr))
	{
		Planning	conditions = {.patterns = planning->patterns,.estimated = true};

		return expression_tree_walker(node, needs_planning, &conditions);
	}
	planning->constant = !contain_var_clause(node);
	return (planning->patterns && IsA(node, OpExpr) && may_fail_to_estimate((OpExpr *) node)) ||
		check_functions_in_node(node, is_of_planning, context) ||
		expression_tree_walker(node, needs_planning, context);
}

/* Has an expression parts that are computed when it is planned, and are not the same each time? */
bool
MotPlannedAnew(Node *node)
{
	Planning	planning = {0};

	return needs_planning(node, &planning);
}

/*
 * A scan of an index.  At most one row: is each column of a unique key equal to something?  Bounded: is what
 * bounds it known without computing anything?
 */
static bool
is_by_key(const ForeignScan *scan, bool *bounded)
{
	List	   *private = scan->fdw_private;
	Oid			indexoid = (Oid) list_nth_int(private, MOT_PLAN_INDEX);
	int			at = MOT_PLAN_NCONDITIONS + 1;
	Bitmapset  *fixed = NULL;
	Relation	index;
	bool		result;

	*bounded = false;
	if (!OidIsValid(indexoid) || list_nth_int(private, MOT_PLAN_ARMS) != 1)
		return false;
	for (int n = list_nth_int(private, MOT_PLAN_NCONDITIONS); n > 0; n--)
	{
		if (list_nth_int(private, at) == MOT_CONDITION_COMPARE && list_nth_int(private, at + 2) == BTEqualStrategyNumber)
			fixed = bms_add_member(fixed, list_nth_int(private, at + 1));
		at += 4 + list_nth_int(private, at + 3);
	}
	*bounded = true;
	for (int n = list_nth_int(private, MOT_PLAN_NVALUES) - 1; n >= 0; n--)
	{
		Node	   *value = list_nth(scan->fdw_exprs, n);

		*bounded &= IsA(value, Const) || IsA(value, Param);
	}
	/* (the planner has locked it) */
	index = relation_open(indexoid, NoLock);
	result = MotIndexIsUnique(index) && RelationGetIndexPredicate(index) == NIL &&
		bms_num_members(fixed) == IndexRelationGetNumberOfKeyAttributes(index);
	relation_close(index, NoLock);
	return result;
}

/*
 * So many entries of an index are read by a scan while the planner would choose another one: the server's own
 * measure of what it takes to plan (plancache.c).
 */
static double
most_entries(const ForeignScan *scan)
{
	QualCost	filter;

	cost_qual_eval(&filter, scan->scan.plan.qual, NULL);
	return Min(1000.0 * cpu_operator_cost * 2 /
			   Max(cpu_tuple_cost + cpu_index_tuple_cost + cpu_operator_cost + filter.per_tuple, 1e-6), 1000);
}

/* Rows that a LIMIT asks for, if it is known. */
static double
limit_rows(const Limit *limit)
{
	const Const *count = (const Const *) limit->limitCount;
	const Const *offset = (const Const *) limit->limitOffset;

	if (count == NULL || !IsA(count, Const) || count->constisnull ||
		(offset != NULL && (!IsA(offset, Const) || offset->constisnull)))
		return INFINITY;
	return (double) DatumGetInt64(count->constvalue) + (offset != NULL ? DatumGetInt64(offset->constvalue) : 0);
}

/*
 * Does a plan read few rows: one by a key, as many as LIMIT asks for, or what lies within bounds, which is
 * to be looked at for the constants of each execution?
 */
static bool
finds_few(const Plan *plan, Remembered *r)
{
	double		asked = INFINITY;	/* of what is below */
	bool		bounded;

	for (; plan != NULL; plan = outerPlan(plan))
	{
		if (plan->initPlan != NIL || innerPlan(plan) != NULL)
			return false;
		switch (nodeTag(plan))
		{
			case T_Limit:
				asked = limit_rows((const Limit *) plan);
				break;
			case T_LockRows:
			case T_ModifyTable:
				break;
			case T_ForeignScan:
				{
					const ForeignScan *scan = (const ForeignScan *) plan;
					double		most = most_entries(scan);

					if (is_by_key(scan, &bounded) || (plan->qual == NIL && asked <= most))
						return true;
					if (!bounded || plan->plan_rows > most)
						return false;
					r->bounds = makeNode(ForeignScan);
					r->bounds->fdw_private = scan->fdw_private;
					r->bounds->fdw_exprs = scan->fdw_exprs;
					r->most = most;
					return true;
				}
			case T_Agg:
			case T_Sort:
			case T_IncrementalSort:
			case T_Unique:
			case T_Result:
			case T_ValuesScan:
				asked = INFINITY;
				break;
			default:
				return false;
		}
	}
	return true;
}

/* The generic plan, by a key if there is one: it is not to depend on how few rows there are just now. */
static PlannedStmt *
plan_generic(Remembered *r, MOT_PLANNER_PARAMETERS)
{
	PlannedStmt *stmt;
	const PlannedStmt *run;
	bool		seqscan = enable_seqscan;
	bool		bitmapscan = enable_bitmapscan;
	bool		hashagg = enable_hashagg;
	bool		incremental_sort = enable_incremental_sort;

	parse = copyObject(parse);
	cursor_options = 0;
	params = NULL;
	PG_TRY();
	{
		enable_seqscan = enable_bitmapscan = false;
		/* what is few is sorted as soon, and run here */
		enable_hashagg = enable_incremental_sort = false;
		stmt = prev_planner(MOT_PLANNER_ARGUMENTS);
	}
	PG_FINALLY();
	{
		enable_seqscan = seqscan;
		enable_bitmapscan = bitmapscan;
		enable_hashagg = hashagg;
		enable_incremental_sort = incremental_sort;
	}
	PG_END_TRY();
	run = MotPlanTranslate(stmt);
	return stmt->transientPlan || stmt->dependsOnRole || stmt->subplans != NIL ||
		MotWhyNot(run, NULL) != NULL || !finds_few(run->planTree, r) ? NULL : stmt;
}

/* What is handed out of a plan: what the server looks at before the executor starts. */
static void
make_slip(Remembered *r)
{
	Plan	   *plan = r->plan->planTree;

	memcpy(&r->slip, r->plan, sizeof(PlannedStmt));
	MotPlanWithoutPermissions(&r->slip);
	r->slip.rtable = NIL;
	foreach_node(RangeTblEntry, rte, r->plan->rtable)
	{
		RangeTblEntry *bare = makeNode(RangeTblEntry);

		bare->rtekind = rte->rtekind;
		bare->relid = rte->relid;
		bare->relkind = rte->relkind;
		bare->rellockmode = rte->rellockmode;
		r->slip.rtable = lappend(r->slip.rtable, bare);
	}
	r->node.scan.plan = *plan;
	r->node.scan.plan.type = T_CustomScan;
	r->node.scan.plan.lefttree = NULL;
	r->node.scan.plan.qual = NIL;
	r->node.methods = &slip_methods;
}

/* NULL: not this time. */
static Remembered *
remember(MOT_PLANNER_PARAMETERS)
{
	uint64		before;
	MemoryContext cxt;
	PlannedStmt *plan = NULL;
	Planning	planning = {.patterns = true};
	Remembered *r;

	before = changes;
	cxt = AllocSetContextCreate(CurrentMemoryContext, MOT_REMEMBERED_PLAN, ALLOCSET_SMALL_SIZES);
	r = MemoryContextAllocZero(cxt, sizeof(Remembered));
	r->cxt = cxt;
	r->hash = constants.hash;
	r->n = constants.n;
	r->relid = linitial_node(RangeTblEntry, parse->rtable)->relid;
	if (MotIsOrdinaryTable(r->relid) || MotIsMotTable(r->relid))
		if (!needs_planning((Node *) parse, &planning))
			plan = plan_generic(r, MOT_PLANNER_ARGUMENTS);
	MemoryContextSwitchTo(cxt);
	r->query = copyObject(parse);
	if (plan != NULL)
	{
		r->plan = copyObject(plan);
		r->bounds = copyObject(r->bounds);
		r->types = palloc(r->n * sizeof(Oid));
		r->lengths = palloc(r->n * sizeof(int16));
		r->byval = palloc(r->n * sizeof(bool));
		for (int i = 0; i < r->n; i++)
		{
			r->types[i] = constants.places[i].param.paramtype;
			get_typlenbyval(r->types[i], &r->lengths[i], &r->byval[i]);
		}
		make_slip(r);
	}
	MemoryContextSwitchTo(MemoryContextGetParent(cxt));
	if (changes != before)
	{
		MemoryContextDelete(cxt);
		return NULL;
	}
	MemoryContextSetParent(cxt, remembered_cxt);
	r->bytes = MemoryContextMemAllocated(cxt, true);
	bytes += r->bytes;
	dlist_push_head(&buckets[r->hash % BUCKETS], &r->bucket);
	dlist_push_head(&used, &r->used);
	make_room((Size) mot_remember_memory * 1024);
	return r;
}

/* --------------------------------------------------------------- planning */

/*
 * How many entries are within the bounds, at most, counted no further than "most" and one; of a unique index there are
 * no more than different keys, which are numbers of some bytes.
 */
static unsigned
count_entries(const MotKeys *keys, unsigned most)
{
	const mot_bound *lower = &keys->lower_bound;
	const mot_bound *upper = &keys->upper_bound;
	int			width = keys->index->key->width;
	int			i = 0;
	uint64		distance = 0;

	if (keys->index->unique && width > 0 && lower->kind != MOT_BOUND_NONE && upper->kind != MOT_BOUND_NONE &&
		lower->len == width && upper->len == width)
	{
		const uint8 *from = lower->key;
		const uint8 *to = upper->key;

		while (i < width && from[i] == to[i])
			i++;
		if (width - i <= (int) sizeof(distance))
		{
			for (; i < width; i++)
				distance = (distance << 8) + to[i] - from[i];
			if (distance < most)
				return distance + 1;
		}
	}
	return mot_entries_count(MotSession(), keys->index->handle.index, lower, upper, most + 1);
}

/* Are few entries within the bounds that the values make? */
static bool
reads_few(const Remembered *r, ParamListInfo params)
{
	ExprContext econtext = {.type = T_ExprContext,.ecxt_param_list_info = params};
	Relation	rel;
	MotIndex   *index;
	bool		few = false;

	if (r->bounds == NULL)
		return true;
	rel = relation_open(r->relid, NoLock);
	index = MotRelationIndex(MotRelationGet(rel), (Oid) list_nth_int(r->bounds->fdw_private, MOT_PLAN_INDEX));
	if (index != NULL && !index->key->blind && !index->key->ranked)
	{
		int			at = MOT_PLAN_NCONDITIONS;
		int			value = 0;
		MotKeys    *keys = MotKeysCreate(index, r->bounds, NULL, &at, &value);
		unsigned	n = 0;

		few = !keys->watched;
		for (bool more = few && MotKeysFirst(keys, &econtext); more && few; more = MotKeysNext(keys))
		{
			unsigned	found = count_entries(keys, r->most);

			n += Max(found, 1);
			few = n <= r->most;
		}
	}
	relation_close(rel, NoLock);
	return few;
}

/* NULL: it is none for these values. */
static PlannedStmt *
hand_out(Remembered *r, const Query *query)
{
	PlannedStmt *slip;
	CustomScan *node;
	Reference  *reference = palloc0(sizeof(Reference));

	reference->node.type = T_ExtensibleNode;
	reference->node.extnodename = reference_methods.extnodename;
	if (r->n > 0)
		reference->params = makeParamList(r->n);
	for (int i = 0; i < r->n; i++)
	{
		ParamExternData *prm = &reference->params->params[i];

		prm->value = constants.places[i].value;
		prm->isnull = constants.places[i].isnull;
		prm->pflags = PARAM_FLAG_CONST;
		prm->ptype = r->types[i];
	}
	if (!reads_few(r, reference->params))
		return NULL;
	slip = palloc(sizeof(PlannedStmt));
	node = palloc(sizeof(CustomScan));
	refer(reference, r);
	*node = r->node;
	node->custom_private = list_make1(reference);
	*slip = r->slip;
	slip->planTree = &node->scan.plan;
	slip->queryId = query->queryId;
	slip->stmt_location = query->stmt_location;
	r->uses++;
	return slip;
}

/* NULL: it is to be planned. */
static PlannedStmt *
plan_remembered(MOT_PLANNER_PARAMETERS)
{
	int			len = parse->stmt_len;
	PlannedStmt *slip = NULL;
	Remembered *r;

	/* (what is known of functions from now on must be told of changes) */
	if (remembered_cxt == NULL)
	{
		remembered_cxt = AllocSetContextCreate(TopMemoryContext, "MOT remembered plans", ALLOCSET_SMALL_SIZES);
		MotWatchPlans(relation_changed, catalog_changed);
	}
	free_gone();
	if (!MotConstantsTake(parse, params, &constants))
		return NULL;
	/* (of a text with several statements) */
	parse->stmt_len = 0;
	r = find(parse);
	if (r != NULL)
		dlist_move_head(&used, &r->used);
	else if (has_come(constants.hash))
		r = remember(MOT_PLANNER_ARGUMENTS);
	if (r != NULL && r->plan != NULL)
	{
		slip = hand_out(r, parse);
		if (slip != NULL)
			slip->stmt_len = len;
	}
	parse->stmt_len = len;
	MotConstantsPutBack(&constants);
	return slip;
}

/*
 * Is it a client's message?  Whatever is planned while a portal is run, or has
 * another text, is part of something else.
 */
static inline bool
is_sent(const char *query_string, int cursor_options)
{
	return ActivePortal == NULL && query_string == debug_query_string && cursor_options == CURSOR_OPT_PARALLEL_OK;
}

/* Who turns these off wants to see what the planner does then.  (Constraints are excluded for constants.) */
static inline bool
is_usual(void)
{
	return enable_seqscan && enable_indexscan && enable_indexonlyscan && enable_bitmapscan && enable_tidscan &&
		enable_sort && enable_incremental_sort && enable_hashagg && constraint_exclusion != CONSTRAINT_EXCLUSION_ON &&
		plan_cache_mode != PLAN_CACHE_MODE_FORCE_CUSTOM_PLAN && !Debug_print_plan;
}

static PlannedStmt *
plan_query(MOT_PLANNER_PARAMETERS)
{
	PlannedStmt *slip;

	if (mot_remember_plans && is_sent(query_string, cursor_options) && MotEngine != NULL && is_simple(parse) &&
		is_usual() && MotPlannerIsOurs() && MotStatementsWhyNot() == NULL &&
		(slip = plan_remembered(MOT_PLANNER_ARGUMENTS)) != NULL)
		return slip;
	return prev_planner(MOT_PLANNER_ARGUMENTS);
}

/* how often a plan was handed out */
uint64
MotRememberedUses(const PlannedStmt *plan)
{
	dlist_iter	iter;

	dlist_foreach(iter, &used)
	{
		Remembered *r = dlist_container(Remembered, used, iter.cur);

		if (r->plan == plan)
			return r->uses;
	}
	return 0;
}

void
MotRememberInit(void)
{
	DefineCustomBoolVariable("mot.remember_plans",
							 "Remembers plans of statements on memory-optimized tables that nobody has prepared.",
							 "Those are planned once, though their constants change.",
							 &mot_remember_plans, true, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("mot.remember_memory",
							"How much of a session's memory such plans may take.",
							"The longest unused are forgotten.",
							&mot_remember_memory, 4096, 64, MAX_KILOBYTES, PGC_USERSET, GUC_UNIT_KB, NULL, NULL, NULL);
	for (int i = 0; i < BUCKETS; i++)
		dlist_init(&buckets[i]);
	RegisterExtensibleNodeMethods(&reference_methods);
	RegisterCustomScanMethods(&slip_methods);
	prev_planner = planner_hook;
	planner_hook = plan_query;
}
