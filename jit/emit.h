/*-------------------------------------------------------------------------
 *
 * emit.h
 *	  What the parts of the compiler share while they write a program.
 *
 *	provider.c	the library's face; LLVM's instance in this session
 *	program.c	a whole row function: conditions, then outputs
 *	columns.c	columns of the row, straight from its bytes
 *	expr.c		expressions, node by node
 *	keys.c		which group a row is of, or its partner in a join
 *	aggregate.c	aggregates
 *	decimal.c	numeric as integers
 *	call.c		calls of functions by their C entries
 *	interpret.c	what is left to the executor's interpreter
 *	inline.c	functions that are a few machine instructions
 *	runtime.c	what compiled code calls: errors, comparisons of strings
 *	procedure.c	a whole procedure, of the same expressions
 *
 * Code is made for one session and lives in it, so what is known of the
 * process is put into it as it is: addresses of functions and of constants.
 *
 * While LLVM is at work the handlers of errors.h are in place, and catalogue
 * look-ups may raise in between: that is no problem as long as none of LLVM's
 * own frames is on the stack then; provider.c cleans up.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_JIT_EMIT_H
#define MOT_JIT_EMIT_H

#include "postgres.h"

#include <setjmp.h>

#include <llvm-c/Core.h>

#include "compat/names.h"
#include "nodes/primnodes.h"
#include "statement/jit.h"

/* how a value is kept in registers; by-reference ones as addresses in MOT_WORD */
typedef enum MotKind
{
	MOT_BOOL,
	MOT_INT8, MOT_INT16, MOT_INT32, MOT_WORD,	/* 8, 16, 32, 64 bits */
	MOT_FLOAT, MOT_DOUBLE
} MotKind;

#define MOT_KINDS (MOT_DOUBLE + 1)

/*
 * A value and whether it is null.  isnull is NULL when it is known not to be.
 * The value of a null is anything, but it can be computed with.
 */
typedef struct MotValue
{
	LLVMValueRef value;
	LLVMValueRef isnull;
	MotKind		kind;
} MotValue;

static inline MotValue
MotMake(LLVMValueRef value, LLVMValueRef isnull, MotKind kind)
{
	MotValue result = {value, isnull, kind};

	return result;
}

typedef struct MotColumns MotColumns;

typedef struct MotEmit
{
	const MotRowRequest *request;
	struct MotProcedureRequest *procedure;	/* NULL: a row program */
	MemoryContext cxt;			/* the code's; lives as long as it does */

	LLVMContextRef context;
	LLVMModuleRef module;
	LLVMBuilderRef builder;
	LLVMTypeRef bit;
	LLVMTypeRef int8;
	LLVMTypeRef int16;
	LLVMTypeRef int32;
	LLVMTypeRef int64;
	LLVMTypeRef pointer;		/* to bytes */
	LLVMTypeRef kinds[MOT_KINDS];

	LLVMValueRef function;
	LLVMBasicBlockRef entry;	/* for places on the stack */
	LLVMValueRef row;
	LLVMValueRef host_bits;
	LLVMValueRef arguments;		/* the MotRowContext */
	LLVMValueRef params;		/* members of MotRowContext */
	LLVMValueRef params_isnull;
	LLVMValueRef values;
	LLVMValueRef isnull;
	LLVMValueRef states;
	LLVMValueRef sums;
	LLVMValueRef variables;		/* a procedure's */

	struct MotColumns *walk;	/* over the row (columns.c) */
	MotValue   *columns;		/* by attribute number - 1, once loaded */
	struct MotNumber **numbers; /* likewise, once they have been read as
								 * decimals */
	const MotValue *case_value; /* of the innermost CASE */

	int			depth;			/* of expressions */
	int			nodes;			/* of expressions so far */
	const char *why_not;
	sigjmp_buf	declined;
} MotEmit;

/* provider.c */
extern PGFunction (*MotSooner) (Oid funcid);	/* the provider's "sooner" */

/* procedure.c */
extern void MotEmitProcedure(MotEmit *emit, const char *name);
extern MotValue MotEmitVariable(MotEmit *emit, Param *param);

/* program.c */
extern void MotEmitTypes(MotEmit *emit);
extern void MotEmitProgram(MotEmit *emit, const char *name);
extern void MotEmitOutputs(MotEmit *emit, List *expressions, int first);
extern void MotDecline(MotEmit *emit, const char *format,...) pg_attribute_printf(2, 3) pg_attribute_noreturn();

/* small pieces (program.c) */
extern LLVMValueRef MotEmitAddress(MotEmit *emit, const void *address, LLVMTypeRef type);
extern LLVMValueRef MotEmitLoadAt(MotEmit *emit, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef offset, unsigned align);
extern LLVMValueRef MotEmitLoad(MotEmit *emit, LLVMTypeRef type, LLVMValueRef base, int64 offset, unsigned align);
extern LLVMValueRef MotEmitFlag(MotEmit *emit, LLVMValueRef base, int64 offset);	/* a bool, as a bit */
extern void MotEmitStore(MotEmit *emit, LLVMValueRef value, LLVMValueRef base, int64 offset, unsigned align);
extern LLVMValueRef MotEmitRoom(MotEmit *emit, size_t size);
extern LLVMBasicBlockRef MotEmitBlock(MotEmit *emit, const char *name);
extern void MotEmitGoOnIf(MotEmit *emit, LLVMValueRef condition, LLVMBasicBlockRef otherwise);
extern void MotEmitBranchUnlikely(MotEmit *emit, LLVMValueRef condition, LLVMBasicBlockRef then, LLVMBasicBlockRef otherwise);
extern LLVMValueRef MotEmitPhi(MotEmit *emit, LLVMTypeRef type, int n, LLVMValueRef * values, LLVMBasicBlockRef * blocks);
extern LLVMValueRef MotEmitConst(MotEmit *emit, LLVMTypeRef type, int64 value);
extern LLVMValueRef MotEmitCallAddress(MotEmit *emit, const void *address, LLVMTypeRef type, LLVMValueRef * args, int n, const char *name);
extern LLVMValueRef MotEmitIntrinsic(MotEmit *emit, const char *name, LLVMTypeRef overload, LLVMValueRef * args, int n);
extern LLVMValueRef MotEmitOr(MotEmit *emit, LLVMValueRef a, LLVMValueRef b);

/* Datums (program.c) */
extern MotKind MotKindOf(Oid type);
extern MotKind MotKindOfLength(int16 typlen, bool typbyval);
extern LLVMValueRef MotToDatum(MotEmit *emit, MotValue value);
extern MotValue MotFromDatum(MotEmit *emit, LLVMValueRef datum, LLVMValueRef isnull, MotKind kind);
extern MotValue MotConvert(MotEmit *emit, MotValue value, MotKind kind);
extern LLVMValueRef MotIsNull(MotEmit *emit, MotValue value);	/* as a bit, always */

/* columns.c: load the columns that "expressions" use */
extern void MotEmitColumns(MotEmit *emit, List *expressions);

/* expr.c */
extern MotValue MotEmitExpr(MotEmit *emit, Expr *expr);

extern MotValue MotReadOnly(MotEmit *emit, MotValue value);
extern LLVMValueRef MotIsTrue(MotEmit *emit, MotValue value);	/* and not null */

/* keys.c */
extern List *MotKeyExpressions(const MotRowRequest *request);
extern void MotEmitGroup(MotEmit *emit);
extern void MotEmitPartner(MotEmit *emit);

/* aggregate.c */
extern List *MotAggregateExpressions(const MotRowRequest *request);
extern void MotEmitAggregates(MotEmit *emit);

/* decimal.c */

/* A numeric in registers, if "ok" (NULL: always) and not "isnull" (NULL: never). */
typedef struct MotNumber
{
	LLVMValueRef m;				/* as in MotDecimal; of 128 bits if "wide",
								 * else of 64 */
	bool		wide;
	int			digits;			/* it is less than 10 to this power */
	int			k;
	int			dscale;
	LLVMValueRef ok;
	LLVMValueRef isnull;
} MotNumber;

extern bool MotEmitNumber(MotEmit *emit, const MotStep *steps, int nsteps, MotNumber *result);
extern LLVMValueRef MotWiden(MotEmit *emit, const MotNumber *number);

/* call.c */
extern bool MotIsSqlFunction(Oid funcid, void *context);
extern MotValue MotEmitFunction(MotEmit *emit, Expr *node, Oid funcid, Oid type, Oid collation, List *args);
extern MotValue MotEmitCall(MotEmit *emit, Expr *node, Oid funcid, Oid type, Oid collation, MotValue *args, int nargs);

/* interpret.c */
extern MotValue MotEmitInterpreted(MotEmit *emit, Expr *expr);

/* inline.c: false if it is not one of those.  No argument may be null. */
extern bool MotCanInline(Oid funcid, Oid collation);
extern bool MotInlineIsSafe(Oid funcid);	/* cannot raise, may run on
											 * anything */
extern LLVMValueRef MotEmitInline(MotEmit *emit, Oid funcid, MotValue *args, MotKind *kind);

/* runtime.c */
typedef struct MotSubscripts
{
	int			n;
	int16		typlen;			/* of the elements */
	bool		typbyval;
	char		typalign;
} MotSubscripts;

extern Datum MotArrayElement(Datum array, int *subscripts, const MotSubscripts *of, bool *isnull);
extern void MotRaiseOverflow(int bits) pg_attribute_noreturn();
extern void MotRaiseDivisionByZero(void) pg_attribute_noreturn();
extern bool MotTextEqual(Datum a, Datum b);
extern bool MotBpcharEqual(Datum a, Datum b);
extern Datum MotCallTracked(FunctionCallInfo fcinfo);

#endif							/* MOT_JIT_EMIT_H */
