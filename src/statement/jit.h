/*-------------------------------------------------------------------------
 *
 * jit.h
 *	  The seam between statements (here) and the compiler (jit/, a library of
 *	  its own, loaded when the first statement has proved hot).
 *
 * What is compiled is a row program: does a row satisfy the conditions, and
 * what comes out of it?  The statement's loop around it, its keys, locks and
 * writes are ours in every tier, so a statement's tiers differ in nothing but
 * the row function: by prepared expressions (tier 1) or by machine code
 * (tier 2).
 *
 * The compiler may decline any program, and says why.  What it compiles must
 * give the same answers and errors as the executor's expressions give.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_JIT_H
#define MOT_JIT_H

#include "access/tupdesc.h"
#include "nodes/primnodes.h"
#include "relation/rowcodec.h"

/* A number that is m / 10000^k, shown with so many digits behind the point. */
typedef struct MotDecimal
{
	int128		m;
	int32		k;
	int32		dscale;
} MotDecimal;

/* A sum of such, or of integers, and what the server's state has beside. */
typedef struct MotSum
{
	int128		sum;
	int64		n;				/* of how many values */
	int64		max_scale_count;
	int32		max_scale;		/* from here on: looked at as one word */
	int16		k;
	bool		seen;			/* there has been a row */
	bool		handed;			/* it is the server's from now on */
} MotSum;

/* A numeric expression as a program on a stack. */
typedef enum MotStepKind
{
	MOT_STEP_COLUMN, MOT_STEP_CONST, MOT_STEP_ADD, MOT_STEP_SUBTRACT, MOT_STEP_MULTIPLY
} MotStepKind;

typedef struct MotStep
{
	MotStepKind kind;
	Var		   *var;
	int			column;			/* the caller's word for it */
	MotDecimal	constant;
} MotStep;

typedef enum MotRowAggregateKind
{
	MOT_AGGREGATE_CALL,			/* of the caller's transition */
	MOT_AGGREGATE_COUNT,		/* of rows, or of an argument's values */
	MOT_AGGREGATE_SUM,			/* of int2 or int4, in 64 bits */
	MOT_AGGREGATE_SUM_WIDE,		/* of integers, and their number */
	MOT_AGGREGATE_SUM_FLOAT,	/* of float4 in float4, of float8 in float8 */
	MOT_AGGREGATE_MIN,			/* of integers, dates, times, floats */
	MOT_AGGREGATE_MAX,
	MOT_AGGREGATE_AVERAGE,		/* of int2 or int4: an array of number and sum */
	MOT_AGGREGATE_SUM_DECIMAL	/* of steps, in a MotSum */
} MotRowAggregateKind;

/*
 * CALL: its arguments become outputs "first_value" and so on, then
 * "call(arg)" is called.  So is it for a row of SUM_DECIMAL that machine code has
 * no answer for: a number of another form or size.
 */
typedef struct MotRowAggregate
{
	MotRowAggregateKind kind;
	List	   *args;			/* expressions */
	Expr	   *filter;			/* NULL: none */
	int			first_value;
	void		(*call) (void *arg);
	void	   *arg;
	int			sum;			/* SUM_WIDE, SUM_DECIMAL: which of a group's */
	int			nsteps;
	MotStep    *steps;
} MotRowAggregate;

/* How a grouping's key is compared. */
typedef enum MotKeyKind
{
	MOT_KEY_WORD,				/* equal if the bits are */
	MOT_KEY_FLOAT4,
	MOT_KEY_FLOAT8,
	MOT_KEY_UUID,
	MOT_KEY_BYTES,				/* text and its like: equal if the bytes are */
	MOT_KEY_PADDED,				/* char(n) */
	MOT_KEY_NUMBER,				/* numeric(p, s) */
	MOT_KEY_CALL				/* the type's functions are called */
} MotKeyKind;

typedef struct MotRowKey
{
	MotKeyKind	kind;
	Var		   *var;
	int			words;			/* of a group */
	int			k;				/* NUMBER: digits of base 10000 behind the
								 * point */
} MotRowKey;

/*
 * A group, and how it is found: by the hash of its keys' words, all of which are 1 for a null.
 * Bytes that fit, with one of length before them as a varlena of that length has it, and numbers
 * that are m / 10000^k, as 2 * m + 1, are these words: others are found by the caller.
 */
typedef struct MotGroup
{
	void	   *states;			/* the server's */
	uint32		nulls;			/* keys that are null, as bits */
	uint64		words[FLEXIBLE_ARRAY_MEMBER];
} MotGroup;

typedef struct MotBucket
{
	uint32		hash;			/* upper half, its bytes turned round */
	MotGroup   *group;			/* NULL: free */
} MotBucket;

typedef struct MotBuckets
{
	MotBucket  *buckets;		/* open addressing, one after the other */
	uint32		mask;
} MotBuckets;

/*
 * hash = mix(hash, word) for each word.  Words that differ in their upper bits only, as floats of
 * small integers, or keys with a number of a node above, have hashes that differ in these: so the
 * uppermost byte comes first in what buckets are found by.
 */
#define MOT_MIX_FACTOR UINT64CONST(0x9E3779B97F4A7C15)
#define MOT_MIX_SHIFT 29

/* A hash join's key: integers, which are hashed and compared as the server does it. */
typedef struct MotRowJoinKey
{
	Var		   *var;
	int			inner;			/* of the table's rows: column, from 0 */
	int			inner_offset;	/* in those without nulls; -1: it varies, so
								 * the caller compares */
	int			inner_length;
} MotRowJoinKey;

/* Where a row is looked up, and what is found: the first with its keys. */
typedef struct MotPartners
{
	struct HashJoinTupleData **buckets;
	uint32		mask;
	uint32		hash;
	struct HashJoinTupleData *found;	/* NULL: none */
	bool		certain;		/* false: it has the hash, no more is known */
} MotPartners;

/*
 * What a row function works with.  Parameters have the numbers of the request.
 * CurrentMemoryContext is reset after every row.
 */
typedef struct MotRowContext
{
	const Datum *params;
	const bool *params_isnull;
	Datum	   *values;			/* outputs, one for each of the request's */
	bool	   *isnull;
	void	   *states;			/* one for each of its aggregates: the
								 * server's AggStatePerGroupData */
	void	   *sums;			/* beside these: MotSum */
	const bool *row_isnull;		/* of a slot's row */
	void	   *private;		/* of the compiler's */
} MotRowContext;

/*
 * "row" and "host_bits" are mot_version_data and mot_version_host_bits of the
 * version (see rowcodec.h).  False: the row does not satisfy the conditions,
 * and the outputs are undefined.  By-reference outputs may point into the row
 * and into CurrentMemoryContext.  Of a program over slots "row" are a slot's values.
 */
typedef bool (*MotRowFunction) (const char *row, unsigned host_bits, MotRowContext *context);

/*
 * A row program.  Expressions are the planner's, ready for execution: a Var of
 * "varno" is a column of the row (attribute numbers from 1; whole rows and
 * system columns do not occur), and every Param is one of "params" (equal in
 * kind and id; the list position is its number in MotRowContext).  Values of
 * parameters are there before the first row, without side effects: a
 * statement whose parameters can't be had that way is not run by this.
 * No sub-plans, aggregates or set-returning functions occur.
 */
typedef struct MotRowRequest
{
	TupleDesc	desc;			/* of the table; attcacheoff is not to be
								 * relied on */
	Index		varno;
	List	   *quals;			/* implicitly and-ed; only true passes */
	List	   *outputs;		/* expressions */
	List	   *aggregates;		/* MotRowAggregates, advanced in this order */
	List	   *params;			/* Params */
	bool		from_slot;		/* columns are those of a slot, which have
								 * been taken apart; "desc" is its */

	/*
	 * The aggregates' states are of the group that "group(arg)" finds when
	 * the outputs are there: it sets "states" and "sums".  NULL: these stay
	 * the same.
	 */
	void		(*group) (void *arg);
	void	   *group_arg;
	List	   *keys;			/* MotRowKeys: the code looks for the group
								 * itself, among these: */
	const MotBuckets *groups;
	int			group_words;

	List	   *join_keys;		/* MotRowJoinKeys: what is found goes here: */
	MotPartners *partners;
	const char *statement;		/* its text, for mot_jit_dump; may be NULL */
} MotRowRequest;

typedef struct MotRowCode
{
	MotRowFunction function;
	size_t		code_bytes;		/* its part of bytes() */
	double		compile_ms;		/* all of it: building, optimizing, emitting */
	void	   *private;		/* goes into MotRowContext */
} MotRowCode;

/*
 * The library's side.  compile: NULL and *why_not (a constant, or palloc'd in
 * CurrentMemoryContext) if it declines; it may raise only when memory is
 * short.  What it needs of the request after it returned it copies.  release
 * may be called in an aborted transaction, and must not raise.  bytes: memory
 * that all code of this session takes.  dump: the code's intermediate
 * representation as text, palloc'd, or NULL.
 */
struct MotProcedureRequest;

typedef struct MotJitProvider
{
	MotRowCode *(*compile) (const MotRowRequest *request, const char **why_not);
	void		(*release) (MotRowCode *code);
	size_t		(*bytes) (void);
	char	   *(*dump) (const MotRowCode *code);

	/*
	 * a procedure (procedure/program.h), whose function is called as
	 * MotProcedureFunction
	 */
	MotRowCode *(*compile_procedure) (struct MotProcedureRequest *request, const char **why_not);

	/*
	 * of the module: a function that does the same as the server's, and
	 * sooner, or NULL
	 */
	PGFunction	(*sooner) (Oid funcid);
} MotJitProvider;

extern PGFunction (*MotCompilerSooner) (Oid funcid);	/* what that is to be */

/*
 * The library ("mot_jit" in $libdir) has this function, which fills in the provider.
 */
#define MOT_JIT_LIBRARY "$libdir/mot_jit"
#define MOT_JIT_INIT_FUNCTION "mot_jit_provider_init"
typedef void (*MotJitProviderInit) (MotJitProvider *provider);

#endif							/* MOT_JIT_H */
