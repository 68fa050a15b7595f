/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  Looking rows up in a hash join's table.
 *
 * The server's node makes the table, and says how large it may be.  When all of it is in
 * memory we go through the outer rows in its place: keys are hashed as the
 * server's functions do it, without calling those that are a few instructions, and compared
 * where they lie in the table.  Where the join has come to is kept where the
 * server's node keeps it, so each call may be ours or its: ours are those that
 * look for outer rows' partners.  What comes before and behind is left to it.  Of a table in
 * several batches the first one is looked up as the rows come, and rows of others are put aside
 * where the server's node would put them, for later.
 *
 * Where the keys are integers and the outer rows are those of a scan in place, and many, machine
 * code looks at their conditions, hashes and compares keys (jit/keys.c), and finds a row's first
 * partner, or none: then the row never becomes a slot's.
 *
 * A table that no cache holds makes each look-up wait for memory, twice: for the bucket and for
 * the first row in it.  So when the outer rows are those of a scan of ours, which
 * knows the rows to come, their keys are hashed some rows ahead, and what will be looked at is
 * asked for.  Only columns are looked at for that, and nothing is evaluated.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "batch/batch.h"
#include "compat/hash.h"
#include "common/hashfn.h"
#include "executor/hashjoin.h"
#include "executor/nodeHash.h"
#include "executor/nodeHashjoin.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "port/pg_bitutils.h"
#include "utils/fmgroids.h"
#include "relation/rowcodec.h"
#include "statement/statement.h"
#include "storage/buffile.h"
#include "table/table.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"

/* states of nodeHashjoin.c's machine */
#define NEED_NEW_OUTER 2
#define SCAN_BUCKET 3
#define FILL_OUTER_TUPLE 4
#define FILL_INNER_TUPLES 5
#define NEED_NEW_BATCH 6

typedef enum HashKind
{
	HASH_INT2, HASH_INT4, HASH_INT8, HASH_TEXT,
	HASH_CALL
} HashKind;

typedef enum EqualKind
{
	EQUAL_INTEGERS, EQUAL_TEXT
} EqualKind;

typedef struct ProbeKey
{
	HashKind	hash;
	FmgrInfo	function;		/* HASH_CALL */
	Oid			collation;
	bool		strict;
	int			column;			/* of the outer slot, from 0; -1: computed */
	ExprState  *expr;

	/* "direct": how it is compared with the inner row's */
	EqualKind	equal;
	int16		length;			/* of the outer value */
	int			inner;			/* column of the inner row, from 0 */
	int16		inner_length;
	int			inner_offset;	/* in rows without nulls, or -1 */

	/* of the present outer row, if it is computed */
	Datum		value;
	bool		isnull;
} ProbeKey;

typedef struct Output
{
	bool		inner;
	int			column;
} Output;

/* rows between two steps: asking for a bucket, asking for its first row, looking at it */
#define AHEAD 6
/* a table of less is in the processor's own caches */
#define AHEAD_BYTES (256 * 1024)
#define NO_BUCKET PG_UINT32_MAX

/*
 * code for a join is larger than for an aggregate, and spares less: so many times the rows have to
 * pay for it
 */
#define DEARER 4

typedef struct MotAhead
{
	ScanState  *scan;
	int			ncolumns;		/* of the table: up to the last key */
	Datum	   *values;
	bool	   *nulls;
	int			turn;
	uint32		buckets[AHEAD];
	int			columns[FLEXIBLE_ARRAY_MEMBER]; /* the keys' */
} MotAhead;

typedef struct MotProbe
{
	bool		direct;			/* keys are compared by us */
	int			first_columns;	/* of each outer row: up to here */
	int			outer_columns;	/* of those that are shown */
	int			inner_columns;
	bool		computed;		/* a key is no column */
	bool		current;		/* computed keys are those of the present
								 * outer row */
	MotAhead   *ahead;			/* NULL: it is not known which rows will come */

	/* machine code, or why there is none */
	MotRowFunction function;
	MotRowContext context;
	MotPartners partners;
	bool		looked_up;		/* the present row's first partner is there */
	const char *why_not;
	MotRows    *rows;			/* it takes the rows from here */
	int			noutputs;
	Output	   *outputs;		/* NULL: projected by the server's expressions */
	int			nkeys;
	ProbeKey	keys[FLEXIBLE_ARRAY_MEMBER];
} MotProbe;

const char *
MotProbeWhyNot(const HashJoinState *node)
{
	const HashJoin *plan = (const HashJoin *) node->js.ps.plan;

	if (innerPlan(plan)->parallel_aware)
		return "its table is the workers' common one";
	if (outerPlan(plan)->plan_rows < MOT_BATCH_MIN_ROWS)
		return "few rows are expected";
	return NULL;
}

/* ---------------------------------------------------------------- building */

static bool
is_deterministic(Oid collation)
{
	return OidIsValid(collation) && get_collation_isdeterministic(collation);
}

static HashKind
kind_of_hash(Oid function, Oid collation)
{
	switch (MotHashesAs(function))
	{
		case F_HASHINT2:
			return HASH_INT2;
		case F_HASHINT4:
		case F_HASHOID:
			return HASH_INT4;
		case F_HASHINT8:
		case F_TIMESTAMP_HASH:
			return HASH_INT8;
		case F_HASHTEXT:
			return is_deterministic(collation) ? HASH_TEXT : HASH_CALL;
		default:
			return HASH_CALL;
	}
}

/* An expression as a column of one side, whatever type it is taken for; NULL: it is none. */
Var *
MotVarOf(Node *expr, int varno)
{
	while (IsA(expr, RelabelType))
		expr = (Node *) ((RelabelType *) expr)->arg;
	if (IsA(expr, Var) && ((Var *) expr)->varno == varno && ((Var *) expr)->varattno > 0)
		return (Var *) expr;
	return NULL;
}

/* where a column is in rows that have no null, if that is the same for all of them */
static int
offset_of(TupleDesc desc, int column)
{
	int			offset = 0;

	for (int i = 0; i <= column; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attlen <= 0)
			return -1;
		offset = att_align_nominal(offset, att->attalign);
		if (i < column)
			offset += att->attlen;
	}
	return offset;
}

/* Can we compare by ourselves what this clause compares? */
static bool
make_direct(MotProbe *probe, ProbeKey *key, Node *clause, TupleDesc inner_desc)
{
	OpExpr	   *op = (OpExpr *) clause;
	Var		   *outer;
	Var		   *inner;
	bool		byval;

	if (!IsA(clause, OpExpr) || list_length(op->args) != 2 ||
		(inner = MotVarOf(lsecond(op->args), INNER_VAR)) == NULL)
		return false;
	outer = MotVarOf(linitial(op->args), OUTER_VAR);
	if (outer == NULL ? key->column >= 0 : key->column != outer->varattno - 1)
		return false;
	switch (op->opfuncid)
	{
		case F_INT2EQ:
		case F_INT4EQ:
		case F_INT8EQ:
		case F_INT24EQ:
		case F_INT42EQ:
		case F_INT28EQ:
		case F_INT82EQ:
		case F_INT48EQ:
		case F_INT84EQ:
		case F_OIDEQ:
		case F_DATE_EQ:
		case F_TIMESTAMP_EQ:
		case F_TIMESTAMPTZ_EQ:
			key->equal = EQUAL_INTEGERS;
			break;
		case F_TEXTEQ:
			if (outer == NULL || !is_deterministic(op->inputcollid))
				return false;
			key->equal = EQUAL_TEXT;
			break;
		default:
			return false;
	}
	get_typlenbyval(exprType(linitial(op->args)), &key->length, &byval);
	key->inner = inner->varattno - 1;
	key->inner_length = TupleDescAttr(inner_desc, key->inner)->attlen;
	key->inner_offset = offset_of(inner_desc, key->inner);
	return true;
}

/* Outputs that are nothing but columns of both sides; NULL: there are others. */
static void
make_outputs(MotProbe *probe, List *targetlist)
{
	ListCell   *lc;

	probe->outputs = palloc(Max(1, list_length(targetlist)) * sizeof(Output));
	foreach(lc, targetlist)
	{
		Node	   *expr = (Node *) lfirst_node(TargetEntry, lc)->expr;
		Output	   *output = &probe->outputs[probe->noutputs++];
		Var		   *var;

		output->inner = false;
		if ((var = MotVarOf(expr, OUTER_VAR)) == NULL)
		{
			output->inner = true;
			var = MotVarOf(expr, INNER_VAR);
		}
		if (var == NULL)
		{
			probe->outputs = NULL;
			return;
		}
		output->column = var->varattno - 1;
	}
	for (int i = 0; i < probe->noutputs; i++)
	{
		Output	   *output = &probe->outputs[i];

		if (output->inner)
			probe->inner_columns = Max(probe->inner_columns, output->column + 1);
		else
			probe->outer_columns = Max(probe->outer_columns, output->column + 1);
	}
}

/*
 * Which columns of a scan the keys are; NULL if the outer rows are no scan's, or keys are anything
 * else.
 */
static MotAhead *
make_ahead(const MotProbe *probe, PlanState *outer)
{
	MotAhead   *ahead = palloc0(offsetof(MotAhead, columns) + probe->nkeys * sizeof(int));

	if (!IsA(outer, SeqScanState) || !MotRowsAreOurs(outer) || probe->computed)
		return NULL;
	ahead->scan = (ScanState *) outer;
	for (int i = 0; i < AHEAD; i++)
		ahead->buckets[i] = NO_BUCKET;
	for (int i = 0; i < probe->nkeys; i++)
	{
		Expr	   *expr = list_nth_node(TargetEntry, outer->plan->targetlist, probe->keys[i].column)->expr;

		if (!IsA(expr, Var) || ((Var *) expr)->varattno <= 0 || probe->keys[i].hash > HASH_INT8)
			return NULL;
		ahead->columns[i] = ((Var *) expr)->varattno - 1;
		ahead->ncolumns = Max(ahead->ncolumns, ahead->columns[i] + 1);
	}
	ahead->values = palloc(Max(1, ahead->ncolumns) * sizeof(Datum));
	ahead->nulls = palloc(Max(1, ahead->ncolumns) * sizeof(bool));
	return ahead;
}

/* As ExecInitHashJoin finds how a key is hashed: versions differ in where they keep it. */
static void
make_hash(ProbeKey *key, Oid operator, Oid collation)
{
	Oid			function;
	Oid			inner_function;

	if (!get_op_hash_functions(operator, &function, &inner_function))
		elog(ERROR, "could not find hash function for hash operator %u", operator);
	fmgr_info(function, &key->function);
	key->collation = collation;
	key->strict = op_strict(operator);
	key->hash = kind_of_hash(function, collation);
}

/* In the query's memory; the table is there. */
static MotProbe *
make_probe(HashJoinState *node)
{
	const HashJoin *plan = (const HashJoin *) node->js.ps.plan;
	MemoryContext oldcxt = MemoryContextSwitchTo(node->js.ps.state->es_query_cxt);
	int			nkeys = list_length(plan->hashkeys);
	MotProbe   *probe = palloc0(offsetof(MotProbe, keys) + nkeys * sizeof(ProbeKey));
	TupleDesc	inner_desc = node->hj_HashTupleSlot->tts_tupleDescriptor;

	probe->nkeys = nkeys;
	probe->direct = list_length(plan->hashclauses) == nkeys;
	for (int i = 0; i < nkeys; i++)
	{
		ProbeKey   *key = &probe->keys[i];
		Node	   *expr = list_nth(plan->hashkeys, i);
		Var		   *var = MotVarOf(expr, OUTER_VAR);

		make_hash(key, list_nth_oid(plan->hashoperators, i), list_nth_oid(plan->hashcollations, i));
		key->column = var != NULL ? var->varattno - 1 : -1;
		if (var == NULL)
			key->expr = ExecInitExpr((Expr *) expr, &node->js.ps);
		probe->first_columns = Max(probe->first_columns, key->column + 1);
		probe->computed |= key->column < 0;
		probe->direct = probe->direct && make_direct(probe, key, list_nth(plan->hashclauses, i), inner_desc);
	}
	make_outputs(probe, plan->join.plan.targetlist);

	/*
	 * a row is taken apart once if most are shown, and else no further than
	 * keys go
	 */
	if (plan->join.plan.plan_rows > outerPlan(plan)->plan_rows / 2)
		probe->first_columns = Max(probe->first_columns, probe->outer_columns);
	probe->ahead = make_ahead(probe, outerPlanState(node));
	MemoryContextSwitchTo(oldcxt);
	return probe;
}

/* Why is there no machine code, if that is known beforehand?  "now" rows are to be looked up. */
static const char *
code_why_not(const MotProbe *probe, const HashJoinState *node, bool now)
{
	double		rows;

	if (!MotRowsCan(outerPlanState(node)))
		return "its rows are not those of a scan in place";
	/* (there is little to be gained if none is left out) */
	if (node->hj_NullInnerTupleSlot != NULL)
		return "it shows rows without a partner";
	for (int i = 0; i < probe->nkeys; i++)
	{
		const ProbeKey *key = &probe->keys[i];

		if (!probe->direct || key->column < 0 || key->equal != EQUAL_INTEGERS || key->hash > HASH_INT8)
			return "its keys are not columns of integers";
	}
	rows = ((const ScanState *) outerPlanState(node))->ss_currentRelation->rd_rel->reltuples / DEARER;
	return now ? MotCodeWhyNotNow(rows) : MotCodeWhyNot(rows);
}

static void
compile(MotProbe *probe, HashJoinState *node)
{
	PlanState  *below = outerPlanState(node);
	MemoryContext oldcxt = MemoryContextSwitchTo(node->js.ps.state->es_query_cxt);
	MotRowRequest request = {0};
	MotRowCode *code;

	request.desc = RelationGetDescr(((ScanState *) below)->ss_currentRelation);
	request.varno = ((Scan *) below->plan)->scanrelid;
	request.quals = below->plan->qual;
	request.partners = &probe->partners;
	for (int i = 0; i < probe->nkeys; i++)
	{
		MotRowJoinKey *key = palloc(sizeof(MotRowJoinKey));

		key->var = (Var *) list_nth_node(TargetEntry, below->plan->targetlist, probe->keys[i].column)->expr;
		key->inner = probe->keys[i].inner;
		key->inner_offset = probe->keys[i].inner_offset;
		key->inner_length = probe->keys[i].inner_length;
		request.join_keys = lappend(request.join_keys, key);
	}
	code = MotRowCodeMake(&request, CurrentMemoryContext, &probe->why_not);
	if (code != NULL)
	{
		probe->function = code->function;
		probe->context.private = code->private;
		probe->rows = MotRowsMake(below);
	}
	MemoryContextSwitchTo(oldcxt);
}

/* ------------------------------------------------------------------- keys */

static inline int64
integer_of(Datum value, int16 length)
{
	switch (length)
	{
		case 2:
			return DatumGetInt16(value);
		case 4:
			return DatumGetInt32(value);
		default:
			return DatumGetInt64(value);
	}
}

static inline uint32
hash_of(ProbeKey *key, Datum value)
{
	switch (key->hash)
	{
		case HASH_INT2:
			return hash_bytes_uint32((uint32) (int32) DatumGetInt16(value));
		case HASH_INT4:
			return hash_bytes_uint32(DatumGetUInt32(value));
		case HASH_INT8:
			{
				/* as hashint8 does it, so that equal integers have one hash */
				int64		number = DatumGetInt64(value);
				uint32		low = (uint32) number;
				uint32		high = (uint32) (number >> 32);

				return hash_bytes_uint32(low ^ (number >= 0 ? high : ~high));
			}
		case HASH_TEXT:
			{
				struct varlena *text = PG_DETOAST_DATUM_PACKED(value);

				return hash_bytes((const unsigned char *) VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text));
			}
		case HASH_CALL:
			return DatumGetUInt32(FunctionCall1Coll(&key->function, key->collation, value));
	}
	return 0;
}

/* As ExecHashGetHashValue; false: the row can have no partner. */
static inline bool
hash_row(MotProbe *probe, HashJoinState *node, TupleTableSlot *slot, uint32 *hash)
{
	ExprContext *econtext = node->js.ps.ps_ExprContext;
	MemoryContext oldcxt;
	bool		fill_outer = node->hj_NullInnerTupleSlot != NULL;
	bool		passes = true;

	ResetExprContext(econtext);
	econtext->ecxt_outertuple = slot;
	oldcxt = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	*hash = 0;
	for (int i = 0; i < probe->nkeys; i++)
	{
		ProbeKey   *key = &probe->keys[i];
		bool		isnull;

		Datum		value;

		*hash = pg_rotate_left32(*hash, 1);
		if (likely(key->column >= 0))
		{
			value = slot->tts_values[key->column];
			isnull = slot->tts_isnull[key->column];
		}
		else
		{
			key->value = value = ExecEvalExpr(key->expr, econtext, &isnull);
			key->isnull = isnull;
		}
		if (likely(!isnull))
			*hash ^= hash_of(key, value);
		else if (key->strict && !fill_outer)
		{
			passes = false;
			break;
		}
	}
	MemoryContextSwitchTo(oldcxt);
	return passes;
}

/* Do all keys equal those of an inner row?  (Equality is strict.) */
static inline bool
is_partner(const MotProbe *probe, HashJoinState *node, TupleTableSlot *outer, MinimalTuple tuple)
{
	const char *base = (const char *) tuple - MINIMAL_TUPLE_OFFSET + tuple->t_hoff;
	TupleTableSlot *inner = NULL;

	for (int i = 0; i < probe->nkeys; i++)
	{
		const ProbeKey *key = &probe->keys[i];
		Datum		value = key->column >= 0 ? outer->tts_values[key->column] : key->value;
		Datum		other;

		if (unlikely(key->column >= 0 ? outer->tts_isnull[key->column] : key->isnull))
			return false;

		/* a heap row may be older than the last columns, which are null then */
		if (likely(key->inner_offset >= 0 && (tuple->t_infomask & HEAP_HASNULL) == 0 &&
				   HeapTupleHeaderGetNatts(tuple) > key->inner))
			other = fetch_att(base + key->inner_offset, true, key->inner_length);
		else
		{
			bool		isnull;

			if (inner == NULL)
				inner = ExecStoreMinimalTuple(tuple, node->hj_HashTupleSlot, false);
			other = slot_getattr(inner, key->inner + 1, &isnull);
			if (isnull)
				return false;
		}
		if (key->equal == EQUAL_INTEGERS)
		{
			if (integer_of(value, key->length) != integer_of(other, key->inner_length))
				return false;
		}
		else
		{
			struct varlena *a = PG_DETOAST_DATUM_PACKED(value);
			struct varlena *b = PG_DETOAST_DATUM_PACKED(other);

			if (VARSIZE_ANY_EXHDR(a) != VARSIZE_ANY_EXHDR(b) ||
				memcmp(VARDATA_ANY(a), VARDATA_ANY(b), VARSIZE_ANY_EXHDR(a)) != 0)
				return false;
		}
	}
	return true;
}

/* As ExecScanHashBucket. */
static bool
next_partner(MotProbe *probe, HashJoinState *node, ExprContext *econtext)
{
	HashJoinTuple tuple = node->hj_CurTuple;

	tuple = tuple != NULL ? tuple->next.unshared : node->hj_HashTable->buckets.unshared[node->hj_CurBucketNo];
	if (unlikely(probe->rows != NULL))
	{
		if (probe->looked_up)
		{
			probe->looked_up = false;
			tuple = probe->partners.found;
			if (likely(probe->partners.certain))
			{
				econtext->ecxt_innertuple = ExecStoreMinimalTuple(HJTUPLE_MINTUPLE(tuple), node->hj_HashTupleSlot, false);
				node->hj_CurTuple = tuple;
				return true;
			}
		}

		/*
		 * a row that has been looked up where it lies has not been taken
		 * apart
		 */
		slot_getsomeattrs(econtext->ecxt_outertuple, probe->first_columns);
	}
	for (; tuple != NULL; tuple = tuple->next.unshared)
	{
		if (tuple->hashvalue != node->hj_CurHashValue)
			continue;
		if (likely(probe->direct))
		{
			MemoryContext oldcxt = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
			bool		is = is_partner(probe, node, econtext->ecxt_outertuple, HJTUPLE_MINTUPLE(tuple));

			MemoryContextSwitchTo(oldcxt);
			if (!is)
				continue;
			econtext->ecxt_innertuple = ExecStoreMinimalTuple(HJTUPLE_MINTUPLE(tuple), node->hj_HashTupleSlot, false);
		}
		else
		{
			econtext->ecxt_innertuple = ExecStoreMinimalTuple(HJTUPLE_MINTUPLE(tuple), node->hj_HashTupleSlot, false);
			if (!ExecQualAndReset(node->hashclauses, econtext))
				continue;
		}
		node->hj_CurTuple = tuple;
		return true;
	}
	return false;
}

/*
 * Is a partner by its keys one by the other conditions as well, and not shown already if once is
 * enough?
 */
static inline bool
is_wanted(HashJoinState *node, ExprContext *econtext)
{
	if (MotIsRightSemi(node->js.jointype) && HeapTupleHeaderHasMatch(HJTUPLE_MINTUPLE(node->hj_CurTuple)))
		return false;
	if (node->js.joinqual == NULL || ExecQual(node->js.joinqual, econtext))
		return true;
	InstrCountFiltered1(node, 1);
	return false;
}

/* ------------------------------------------------------------------- rows */

static inline TupleTableSlot *
project(MotProbe *probe, HashJoinState *node, ExprContext *econtext)
{
	TupleTableSlot *result;
	TupleTableSlot *outer = econtext->ecxt_outertuple;
	TupleTableSlot *inner = econtext->ecxt_innertuple;

	if (probe->outputs == NULL)
		return ExecProject(node->js.ps.ps_ProjInfo);
	slot_getsomeattrs(outer, probe->outer_columns);
	slot_getsomeattrs(inner, probe->inner_columns);
	result = node->js.ps.ps_ProjInfo->pi_state.resultslot;
	ExecClearTuple(result);
	for (int i = 0; i < probe->noutputs; i++)
	{
		const Output *output = &probe->outputs[i];
		const TupleTableSlot *from = output->inner ? inner : outer;

		result->tts_values[i] = from->tts_values[output->column];
		result->tts_isnull[i] = from->tts_isnull[output->column];
	}
	return ExecStoreVirtualTuple(result);
}

/*
 * Ask for what rows to come will look at: for the bucket of the one that is two steps ahead,
 * and for the first row in the bucket that was asked for a step ago.
 */
static inline void
look_ahead(MotProbe *probe, HashJoinTable table)
{
	MotAhead   *ahead = probe->ahead;
	uint32	   *bucket = &ahead->buckets[ahead->turn];
	const mot_version *version = MotScanPeek(ahead->scan->ss_currentScanDesc, 2 * AHEAD);
	uint32		hash = 0;

	ahead->turn = (ahead->turn + 1) % AHEAD;
	/* (it may be of an earlier table, if its rows were not all wanted) */
	if (*bucket < (uint32) table->nbuckets)
		__builtin_prefetch(table->buckets.unshared[*bucket]);
	*bucket = NO_BUCKET;
	if (version == NULL)
		return;
	MotRowDeform(RelationGetDescr(ahead->scan->ss_currentRelation), version, ahead->ncolumns,
				 ahead->values, ahead->nulls);
	for (int i = 0; i < probe->nkeys; i++)
	{
		int			column = ahead->columns[i];

		if (ahead->nulls[column])
			return;
		hash = pg_rotate_left32(hash, 1) ^ hash_of(&probe->keys[i], ahead->values[column]);
	}
	*bucket = hash & (table->nbuckets - 1);
	__builtin_prefetch(&table->buckets.unshared[*bucket]);
}

/* As ExecHashJoinGetSavedTuple: a row that was put aside, and its hash. */
static TupleTableSlot *
saved_outer(HashJoinState *node, BufFile *file, uint32 *hash)
{
	uint32		header[2];
	MinimalTuple tuple;
	size_t		nread = BufFileRead(file, header, sizeof(header));

	if (nread == 0)
		return ExecClearTuple(node->hj_OuterTupleSlot);
	if (nread == sizeof(header))
	{
		*hash = header[0];
		tuple = palloc(header[1]);
		tuple->t_len = header[1];
		nread = BufFileRead(file, (char *) tuple + sizeof(uint32), header[1] - sizeof(uint32));
		if (nread == header[1] - sizeof(uint32))
		{
			ExecForceStoreMinimalTuple(tuple, node->hj_OuterTupleSlot, true);
			return node->hj_OuterTupleSlot;
		}
	}
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not read from hash-join temporary file: read only %zu bytes", nread)));
}

/*
 * The next outer row that has a partner, by machine code: of a table that is in memory as a whole.
 */
static pg_noinline bool
next_in_place(MotProbe *probe, HashJoinState *node, bool looks_ahead)
{
	ScanState  *scan = (ScanState *) outerPlanState(node);
	ExprContext *econtext = node->js.ps.ps_ExprContext;
	const mot_version *version;

	/* (another table may lie where one was before) */
	probe->partners.buckets = node->hj_HashTable->buckets.unshared;
	probe->partners.mask = node->hj_HashTable->nbuckets - 1;
	if (scan->ss_currentScanDesc == NULL || scan->ps.chgParam != NULL)
		MotRowsStart(probe->rows);
	while ((version = MotRowsNext(probe->rows)) != NULL)
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
		bool		passes;

		CHECK_FOR_INTERRUPTS();
		if (looks_ahead)
			look_ahead(probe, node->hj_HashTable);
		ResetExprContext(econtext);
		passes = probe->function((const char *) mot_version_data(version), mot_version_host_bits(version), &probe->context);
		MemoryContextSwitchTo(oldcxt);
		if (!passes)
			continue;
		node->hj_OuterNotEmpty = true;
		if (probe->partners.found == NULL)
			continue;
		econtext->ecxt_outertuple = MotRowsShow(probe->rows, version);
		node->hj_MatchedOuter = false;
		node->hj_CurHashValue = probe->partners.hash;
		node->hj_CurBucketNo = probe->partners.hash & probe->partners.mask;
		node->hj_CurSkewBucketNo = INVALID_SKEW_BUCKET_NO;
		node->hj_CurTuple = NULL;
		probe->looked_up = true;
		return true;
	}
	return false;
}

/* The next outer row that may have a partner, or is shown without one. */
static inline bool
next_outer(MotProbe *probe, HashJoinState *node)
{
	PlanState  *below = outerPlanState(node);
	HashJoinTable table = node->hj_HashTable;
	bool		looks_ahead = probe->ahead != NULL && table->curbatch == 0 && table->spaceUsed > AHEAD_BYTES;

	if (probe->function != NULL && table->nbatch == 1 && TupIsNull(node->hj_FirstOuterTupleSlot))
		return next_in_place(probe, node, looks_ahead);
	for (;;)
	{
		TupleTableSlot *slot = node->hj_FirstOuterTupleSlot;
		uint32		hash;
		uint32		saved_hash = 0;
		int			batch = table->curbatch;

		CHECK_FOR_INTERRUPTS();
		if (unlikely(table->curbatch > 0))
		{
			BufFile    *file = table->outerBatchFile[table->curbatch];

			slot = file != NULL ? saved_outer(node, file, &saved_hash) : NULL;
		}
		else if (unlikely(!TupIsNull(slot)))
			node->hj_FirstOuterTupleSlot = NULL;
		else
			slot = ExecProcNode(below);
		if (TupIsNull(slot))
			return false;
		slot_getsomeattrs(slot, probe->first_columns);
		if (looks_ahead)
			look_ahead(probe, table);
		if (unlikely(table->curbatch > 0))
		{
			ResetExprContext(node->js.ps.ps_ExprContext);
			node->js.ps.ps_ExprContext->ecxt_outertuple = slot;
			/* (keys can be computed again, as the server's comparisons do) */
			if (probe->direct && probe->computed)
				(void) hash_row(probe, node, slot, &hash);
			hash = saved_hash;
		}
		else if (!hash_row(probe, node, slot, &hash))
			continue;
		else
			node->hj_OuterNotEmpty = true;
		probe->current = true;
		node->hj_MatchedOuter = false;
		node->hj_CurHashValue = hash;
		node->hj_CurBucketNo = hash & (table->nbuckets - 1);
		node->hj_CurSkewBucketNo = INVALID_SKEW_BUCKET_NO;
		node->hj_CurTuple = NULL;
		if (unlikely(table->nbatch > 1))
			ExecHashGetBucketAndBatch(table, hash, &node->hj_CurBucketNo, &batch);
		if (likely(batch == table->curbatch))
			return true;
		else
		{
			bool		copied;
			MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &copied);

			MotHashSaveTuple(tuple, hash, &table->outerBatchFile[batch], table);
			if (copied)
				heap_free_minimal_tuple(tuple);
		}
	}
}

/* The server's node: which may go on to another outer row. */
static TupleTableSlot *
by_server(MotTakenNode *taken)
{
	if (taken->probe != NULL)
		taken->probe->current = false;
	return taken->below(taken->ps);
}

static TupleTableSlot *
no_row(PlanState *ps)
{
	return NULL;
}

/*
 * The server's node, where there are no more outer rows: which is asked for in vain (nodes need not
 * bear being asked again).
 */
static pg_noinline TupleTableSlot *
behind_outer(MotTakenNode *taken)
{
	PlanState  *outer = outerPlanState(taken->ps);
	PlanState	none = {.type = T_ResultState,.ExecProcNode = no_row};
	TupleTableSlot *slot;

	outerPlanState(taken->ps) = &none;
	slot = by_server(taken);
	outerPlanState(taken->ps) = outer;
	return slot;
}

/* What EXPLAIN says of a node that is ours: "probe" is NULL if it has not been run. */
const char *
MotProbeCodeWhyNot(HashJoinState *node, MotProbe *probe)
{
	return probe != NULL ? probe->why_not : code_why_not(make_probe(node), node, false);
}

/* A HashJoin node's function. */
TupleTableSlot *
MotProbeHashJoin(PlanState *ps)
{
	MotTakenNode *taken = MotTakenFind(ps);
	HashJoinState *node = (HashJoinState *) ps;
	HashJoinTable table = node->hj_HashTable;
	ExprContext *econtext = ps->ps_ExprContext;
	ExprState  *otherqual = ps->qual;
	bool		fill_inner = node->hj_NullOuterTupleSlot != NULL;
	MotProbe   *probe;

	if (table == NULL || table->skewEnabled || table->parallel_state != NULL ||
		node->hj_JoinState < NEED_NEW_OUTER || node->hj_JoinState > FILL_OUTER_TUPLE)
		return by_server(taken);
	if (unlikely(taken->probe == NULL))
	{
		taken->probe = make_probe(node);
		taken->probe->why_not = code_why_not(taken->probe, node, true);
		if (taken->probe->why_not == NULL)
			compile(taken->probe, node);
	}
	probe = taken->probe;

	ResetExprContext(econtext);
	if (node->hj_JoinState != NEED_NEW_OUTER)
	{
		slot_getsomeattrs(econtext->ecxt_outertuple, probe->first_columns);
		if (unlikely(probe->direct && probe->computed && !probe->current))
		{
			uint32		hash;

			(void) hash_row(probe, node, econtext->ecxt_outertuple, &hash);
			probe->current = true;
		}
	}
	for (;;)
	{
		if (node->hj_JoinState == NEED_NEW_OUTER)
		{
			if (!next_outer(probe, node))
			{
				if (MOT_HASH_KEEPS_NULLS)
					return behind_outer(taken);
				if (fill_inner)
				{
					ExecPrepHashTableForUnmatched(node);
					node->hj_JoinState = FILL_INNER_TUPLES;
				}
				else
					node->hj_JoinState = NEED_NEW_BATCH;
				return by_server(taken);
			}
			node->hj_JoinState = SCAN_BUCKET;
		}
		if (node->hj_JoinState == SCAN_BUCKET)
		{
			if (!next_partner(probe, node, econtext))
				node->hj_JoinState = FILL_OUTER_TUPLE;
			else if (!is_wanted(node, econtext))
			{
				/* of many partners, whose keys may have been detoasted */
				ResetExprContext(econtext);
				CHECK_FOR_INTERRUPTS();
				continue;
			}
			else
			{
				node->hj_MatchedOuter = true;
				if (fill_inner || MotIsRightSemi(node->js.jointype))
					HeapTupleHeaderSetMatch(HJTUPLE_MINTUPLE(node->hj_CurTuple));
				if (node->js.single_match || node->js.jointype == JOIN_ANTI)
					node->hj_JoinState = NEED_NEW_OUTER;
				if (node->js.jointype == JOIN_ANTI || MotIsRightAnti(node->js.jointype))
					continue;
				if (otherqual == NULL || ExecQual(otherqual, econtext))
					return project(probe, node, econtext);
				InstrCountFiltered2(node, 1);
				continue;
			}
		}

		/* out of partners */
		node->hj_JoinState = NEED_NEW_OUTER;
		if (node->hj_MatchedOuter || node->hj_NullInnerTupleSlot == NULL)
			continue;
		econtext->ecxt_innertuple = node->hj_NullInnerTupleSlot;
		if (otherqual == NULL || ExecQual(otherqual, econtext))
			return project(probe, node, econtext);
		InstrCountFiltered2(node, 1);
	}
}
