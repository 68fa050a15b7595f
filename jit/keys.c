/*-------------------------------------------------------------------------
 *
 * keys.c
 *	  Keys: from a row to its group, or to its partner in a hash join.
 *
 * A group's keys are words (statement/jit.h).  Those of the row are made without a branch
 * where they are numbers, or short texts that lie in the row as most do; hashed; and looked for
 * among the groups.  Other keys, and groups that are new, are the caller's matter, who does all of
 * it again: what is made of keys here has to be what src/batch/group.c makes of them.
 *
 * A hash join's table is the server's, so integers are hashed as its functions
 * do it, and compared with columns of its rows where these lie.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "emit.h"
#include "executor/hashjoin.h"

#define int32(value) MotEmitConst(emit, emit->int32, value)
#define int64(value) MotEmitConst(emit, emit->int64, value)

static LLVMValueRef
at(MotEmit * emit, LLVMValueRef base, LLVMValueRef offset)
{
	return LLVMBuildGEP2(emit->builder, emit->int8, base, &offset, 1, "");
}

/* ------------------------------------------------------------------ groups */

/* the words of a key, and whether it is null */
typedef struct Words
{
	LLVMValueRef word[2];
	LLVMValueRef isnull;
} Words;

static LLVMValueRef
mix(MotEmit * emit, LLVMValueRef hash, LLVMValueRef word)
{
	LLVMBuilderRef b = emit->builder;

	hash = LLVMBuildMul(b, LLVMBuildXor(b, hash, word, ""), int64 ((int64) MOT_MIX_FACTOR), "");
	return LLVMBuildXor(b, hash, LLVMBuildLShr(b, hash, int64 (MOT_MIX_SHIFT), ""), "");
}

/*
 * Without blanks at its end, the length of a char(n): of the last eight bytes those that are blank
 * don't count.  If there is its header among them, that is none.
 */
static LLVMValueRef
without_blanks(MotEmit * emit, LLVMValueRef bytes, LLVMValueRef size, LLVMBasicBlockRef other)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef args[2];

	args[0] = MotEmitLoadAt(emit, emit->int64, bytes, LLVMBuildSub(b, size, int64 (8), ""), 1);
	args[0] = LLVMBuildXor(b, args[0], int64 (INT64CONST(0x2020202020202020)), "");
	args[1] = MotEmitConst(emit, emit->bit, 1);
	MotEmitGoOnIf(emit, LLVMBuildICmp(b, LLVMIntNE, args[0], int64 (0), ""), other);
	args[0] = MotEmitIntrinsic(emit, "llvm.ctlz", emit->int64, args, 2);
	return LLVMBuildSub(b, size, LLVMBuildLShr(b, args[0], int64 (3), ""), "");
}

/*
 * The words of a text that fits into them with its header of one byte.  The last eight bytes are
 * loaded as one word: those before the header are of whatever lies there, and go.
 */
static void
short_text(MotEmit * emit, LLVMValueRef datum, const MotRowKey *key, Words *words, LLVMBasicBlockRef other)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef bytes = LLVMBuildIntToPtr(b, datum, emit->pointer, "");
	LLVMValueRef header = LLVMBuildZExt(b, MotEmitLoad(emit, emit->int8, bytes, 0, 1), emit->int64, "");
	LLVMValueRef size = LLVMBuildLShr(b, header, int64 (1), "");
	LLVMValueRef before;
	LLVMValueRef last;
	LLVMValueRef shift;
	LLVMValueRef is_long;

	/* (a header of 1 is a pointer to elsewhere) */
	last = LLVMBuildICmp(b, LLVMIntULT, LLVMBuildSub(b, size, int64 (1), ""), int64 (8 * key->words), "");
	MotEmitGoOnIf(emit, LLVMBuildAnd(b, LLVMBuildTrunc(b, header, emit->bit, ""), last, ""), other);
	if (key->kind == MOT_KEY_PADDED)
	{
		size = without_blanks(emit, bytes, size, other);
		header = LLVMBuildOr(b, LLVMBuildShl(b, size, int64 (1), ""), int64 (1), "");
	}
	before = LLVMBuildSub(b, size, int64 (8), "");
	last = MotEmitLoadAt(emit, emit->int64, bytes, before, 1);
	shift = LLVMBuildShl(b, LLVMBuildAnd(b, LLVMBuildNeg(b, size, ""), int64 (7), ""), int64 (3), "");
	last = LLVMBuildLShr(b, last, shift, "");
	words->word[0] = last;
	if (key->words > 1)
	{
		is_long = LLVMBuildICmp(b, LLVMIntUGT, size, int64 (8), "");
		before = LLVMBuildSelect(b, is_long, int64 (0), before, "");
		words->word[0] = LLVMBuildSelect(b, is_long, MotEmitLoadAt(emit, emit->int64, bytes, before, 1), last, "");
		words->word[1] = LLVMBuildSelect(b, is_long, last, int64 (0), "");
	}
	if (key->kind == MOT_KEY_PADDED)
		words->word[0] = LLVMBuildOr(b, LLVMBuildAnd(b, words->word[0], int64 (-256), ""), header, "");
}

/* What lies elsewhere is looked at only if it is not null. */
static void
load_words(MotEmit * emit, MotValue value, const MotRowKey *key, Words *words, LLVMBasicBlockRef other)
{
	LLVMBuilderRef b = emit->builder;
	LLVMBasicBlockRef blocks[2] = {LLVMGetInsertBlock(b)};
	LLVMBasicBlockRef there = MotEmitBlock(emit, "key");
	LLVMBasicBlockRef joined = MotEmitBlock(emit, "key_known");

	LLVMBuildCondBr(b, words->isnull, joined, there);
	LLVMPositionBuilderAtEnd(b, there);
	if (key->kind == MOT_KEY_UUID)
	{
		LLVMValueRef bytes = LLVMBuildIntToPtr(b, value.value, emit->pointer, "");

		for (int i = 0; i < 2; i++)
			words->word[i] = MotEmitLoad(emit, emit->int64, bytes, 8 * i, 1);
	}
	else
		short_text(emit, value.value, key, words, other);
	blocks[1] = LLVMGetInsertBlock(b);
	LLVMBuildBr(b, joined);
	LLVMPositionBuilderAtEnd(b, joined);
	for (int i = 0; i < key->words; i++)
	{
		LLVMValueRef choices[2];

		choices[0] = int64 (1);

		choices[1] = words->word[i];
		words->word[i] = MotEmitPhi(emit, emit->int64, 2, choices, blocks);
	}
}

static void
read_key(MotEmit * emit, const MotRowKey *key, const MotNumber * number, Words *words, LLVMBasicBlockRef other)
{
	LLVMBuilderRef b = emit->builder;
	MotValue	value = emit->columns[key->var->varattno - 1];

	words->isnull = MotIsNull(emit, value);
	switch (key->kind)
	{
		case MOT_KEY_WORD:
			words->word[0] = value.kind == MOT_WORD ? value.value : LLVMBuildZExt(b, value.value, emit->int64, "");
			break;
		case MOT_KEY_NUMBER:
			MotEmitGoOnIf(emit, number->ok, other);
			words->word[0] = LLVMBuildOr(b, LLVMBuildShl(b, number->m, int64 (1), ""), int64 (1), "");
			break;
		default:
			load_words(emit, value, key, words, other);
			return;
	}
	words->word[0] = LLVMBuildSelect(b, words->isnull, int64 (1), words->word[0], "");
}

/* the caller's member of the context, which it has set */
static LLVMValueRef
get_member(MotEmit * emit, size_t offset)
{
	return MotEmitLoad(emit, emit->pointer, emit->arguments, offset, 8);
}

static void
call_group(MotEmit * emit)
{
	LLVMValueRef arg = MotEmitAddress(emit, emit->request->group_arg, emit->pointer);

	MotEmitCallAddress(emit, emit->request->group,
					   LLVMFunctionType(LLVMVoidTypeInContext(emit->context), &emit->pointer, 1, false), &arg, 1, "");
}

/* Go through the buckets from the hash's on; "missing" if there is no such group. */
static LLVMValueRef
find_group(MotEmit * emit, const Words *words, LLVMValueRef hash, LLVMValueRef nulls, LLVMBasicBlockRef missing)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef table = MotEmitAddress(emit, emit->request->groups, emit->pointer);
	LLVMValueRef buckets = MotEmitLoad(emit, emit->pointer, table, offsetof(MotBuckets, buckets), 8);
	LLVMValueRef mask = MotEmitLoad(emit, emit->int32, table, offsetof(MotBuckets, mask), 4);
	LLVMBasicBlockRef probe = MotEmitBlock(emit, "probe");
	LLVMBasicBlockRef miss = MotEmitBlock(emit, "miss");
	LLVMBasicBlockRef found = MotEmitBlock(emit, "found");
	LLVMBasicBlockRef start = LLVMGetInsertBlock(b);
	LLVMValueRef first = LLVMBuildAnd(b, hash, mask, "");
	LLVMValueRef next;
	LLVMValueRef number;
	LLVMValueRef bucket;
	LLVMValueRef group;
	LLVMValueRef is;
	int64		offset = offsetof(MotGroup, words);

	StaticAssertStmt(sizeof(MotBucket) == 16, "a bucket's place is a shift");
	LLVMBuildBr(b, probe);
	LLVMPositionBuilderAtEnd(b, probe);
	number = LLVMBuildPhi(b, emit->int32, "");
	bucket = at(emit, buckets, LLVMBuildShl(b, LLVMBuildZExt(b, number, emit->int64, ""), int64 (4), ""));
	group = MotEmitLoad(emit, emit->int64, bucket, offsetof(MotBucket, group), 8);
	MotEmitGoOnIf(emit, LLVMBuildICmp(b, LLVMIntNE, group, int64 (0), ""), missing);
	is = MotEmitLoad(emit, emit->int32, bucket, offsetof(MotBucket, hash), 4);
	MotEmitGoOnIf(emit, LLVMBuildICmp(b, LLVMIntEQ, is, hash, ""), miss);
	group = LLVMBuildIntToPtr(b, group, emit->pointer, "");
	is = MotEmitLoad(emit, emit->int32, group, offsetof(MotGroup, nulls), 4);
	is = LLVMBuildICmp(b, LLVMIntEQ, is, nulls, "");
	foreach_ptr(const MotRowKey, key, emit->request->keys)
	{
		for (int i = 0; i < key->words; i++, offset += sizeof(uint64))
			is = LLVMBuildAnd(b, is, LLVMBuildICmp(b, LLVMIntEQ, MotEmitLoad(emit, emit->int64, group, offset, 8),
												   words[foreach_current_index(key)].word[i], ""), "");
	}
	LLVMBuildCondBr(b, is, found, miss);

	LLVMPositionBuilderAtEnd(b, miss);
	next = LLVMBuildAnd(b, LLVMBuildAdd(b, number, int32 (1), ""), mask, "");
	LLVMBuildBr(b, probe);
	LLVMAddIncoming(number, &first, &start, 1);
	LLVMAddIncoming(number, &next, &miss, 1);
	LLVMPositionBuilderAtEnd(b, found);
	return group;
}

/* The row's group: where its states are. */
void
MotEmitGroup(MotEmit * emit)
{
	LLVMBuilderRef b = emit->builder;
	int			n = list_length(emit->request->keys);
	MotNumber  *numbers = palloc0(Max(n, 1) * sizeof(MotNumber));
	Words	   *words = palloc0(Max(n, 1) * sizeof(Words));
	LLVMBasicBlockRef blocks[2];
	LLVMBasicBlockRef joined;
	LLVMValueRef states[2];
	LLVMValueRef sums[2];
	LLVMValueRef hash = int64 (0);
	LLVMValueRef nulls = int32 (0);
	bool		known = n > 0;

	/* before any branch (they raise nothing): others use them, too */
	foreach_ptr(const MotRowKey, key, emit->request->keys)
	{
		int			i = foreach_current_index(key);
		MotStep		step = {.kind = MOT_STEP_COLUMN,.var = key->var};

		if (key->kind == MOT_KEY_NUMBER)
			known = known && MotEmitNumber(emit, &step, 1, &numbers[i]) && numbers[i].k == key->k;
	}
	if (!known)
	{
		if (emit->request->group != NULL)
			call_group(emit);
		emit->states = get_member(emit, offsetof(MotRowContext, states));
		emit->sums = get_member(emit, offsetof(MotRowContext, sums));
		return;
	}

	blocks[1] = MotEmitBlock(emit, "other_group");
	joined = MotEmitBlock(emit, "group_known");
	foreach_ptr(const MotRowKey, key, emit->request->keys)
	{
		int			i = foreach_current_index(key);

		read_key(emit, key, &numbers[i], &words[i], blocks[1]);
	}
	foreach_ptr(const MotRowKey, key, emit->request->keys)
	{
		int			i = foreach_current_index(key);

		for (int w = 0; w < key->words; w++)
			hash = mix(emit, hash, words[i].word[w]);
		nulls = LLVMBuildOr(b, nulls, LLVMBuildShl(b, LLVMBuildZExt(b, words[i].isnull, emit->int32, ""), int32 (i), ""), "");
	}
	hash = LLVMBuildTrunc(b, MotEmitIntrinsic(emit, "llvm.bswap", emit->int64, &hash, 1), emit->int32, "");
	sums[0] = find_group(emit, words, hash, nulls, blocks[1]);
	states[0] = MotEmitLoad(emit, emit->pointer, sums[0], offsetof(MotGroup, states), 8);
	sums[0] = at(emit, sums[0], int64 (offsetof(MotGroup, words) + emit->request->group_words * sizeof(uint64)));
	MotEmitStore(emit, states[0], emit->arguments, offsetof(MotRowContext, states), 8);
	MotEmitStore(emit, sums[0], emit->arguments, offsetof(MotRowContext, sums), 8);
	blocks[0] = LLVMGetInsertBlock(b);
	LLVMBuildBr(b, joined);

	LLVMPositionBuilderAtEnd(b, blocks[1]);
	call_group(emit);
	states[1] = get_member(emit, offsetof(MotRowContext, states));
	sums[1] = get_member(emit, offsetof(MotRowContext, sums));
	LLVMBuildBr(b, joined);

	LLVMPositionBuilderAtEnd(b, joined);
	emit->states = MotEmitPhi(emit, emit->pointer, 2, states, blocks);
	emit->sums = MotEmitPhi(emit, emit->pointer, 2, sums, blocks);
}

/* what keys use of the row */
List *
MotKeyExpressions(const MotRowRequest *request)
{
	List	   *result = NIL;

	foreach_ptr(const MotRowKey, key, request->keys)
	{
		result = lappend(result, key->var);
	}
	foreach_ptr(const MotRowJoinKey, key, request->join_keys)
	{
		result = lappend(result, key->var);
	}
	return result;
}

/* ------------------------------------------------------------------- joins */

/* as hash_bytes_uint32 */
static LLVMValueRef
rotate(MotEmit * emit, LLVMValueRef value, int by)
{
	LLVMBuilderRef b = emit->builder;

	return LLVMBuildOr(b, LLVMBuildShl(b, value, int32 (by), ""), LLVMBuildLShr(b, value, int32 (32 - by), ""), "");
}

static LLVMValueRef
hash_word(MotEmit * emit, LLVMValueRef word)
{
	static const struct
	{
		int			to;
		int			from;
		int			by;
	}			steps[] = {{2, 1, 14}, {0, 2, 11}, {1, 0, 25}, {2, 1, 16}, {0, 2, 4}, {1, 0, 14}, {2, 1, 24}};
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef abc[3];

	abc[1] = abc[2] = int32 ((int32) (0x9e3779b9 + (uint32) sizeof(uint32) + 3923095));

	abc[0] = LLVMBuildAdd(b, abc[1], word, "");
	for (int i = 0; i < lengthof(steps); i++)
		abc[steps[i].to] = LLVMBuildSub(b, LLVMBuildXor(b, abc[steps[i].to], abc[steps[i].from], ""),
										rotate(emit, abc[steps[i].from], steps[i].by), "");
	return abc[2];
}

/* as hashint2, hashint4, hashint8 */
static LLVMValueRef
hash_integer(MotEmit * emit, MotValue value)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef low;
	LLVMValueRef high;

	if (value.kind == MOT_INT32)
		return hash_word(emit, value.value);
	if (value.kind == MOT_INT16)
		return hash_word(emit, LLVMBuildSExt(b, value.value, emit->int32, ""));
	low = LLVMBuildTrunc(b, value.value, emit->int32, "");
	/* the upper half, turned round if it is negative */
	high = LLVMBuildXor(b, value.value, LLVMBuildAShr(b, value.value, int64 (63), ""), "");
	high = LLVMBuildTrunc(b, LLVMBuildLShr(b, high, int64 (32), ""), emit->int32, "");
	return hash_word(emit, LLVMBuildXor(b, low, high, ""));
}

static LLVMTypeRef
integer_type(MotEmit * emit, int length)
{
	return length == 2 ? emit->int16 : length == 4 ? emit->int32 : emit->int64;
}

static LLVMValueRef
sign_extended(MotEmit * emit, LLVMValueRef value)
{
	return LLVMTypeOf(value) == emit->int64 ? value : LLVMBuildSExt(emit->builder, value, emit->int64, "");
}

static void
set_found(MotEmit * emit, LLVMValueRef partners, LLVMValueRef tuple, bool certain, LLVMBasicBlockRef done)
{
	MotEmitStore(emit, tuple, partners, offsetof(MotPartners, found), 8);
	MotEmitStore(emit, MotEmitConst(emit, emit->int8, certain), partners, offsetof(MotPartners, certain), 1);
	LLVMBuildBr(emit->builder, done);
	LLVMPositionBuilderAtEnd(emit->builder, done);
}

/* Are these keys those of a row of the table?  On from here if so, else "miss"; or "unknown". */
static void
compare_integers(MotEmit * emit, LLVMValueRef row, int last, LLVMBasicBlockRef miss, LLVMBasicBlockRef unknown)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef word;
	LLVMValueRef is;

	/* one with nulls, or older than the last columns, is for the caller */
	row = at(emit, row, int64 (HJTUPLE_OVERHEAD));
	word = MotEmitLoad(emit, emit->int16, row, offsetof(MinimalTupleData, t_infomask), 2);
	is = LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildAnd(b, word, MotEmitConst(emit, emit->int16, HEAP_HASNULL), ""),
					   MotEmitConst(emit, emit->int16, 0), "");
	word = MotEmitLoad(emit, emit->int16, row, offsetof(MinimalTupleData, t_infomask2), 2);
	word = LLVMBuildAnd(b, word, MotEmitConst(emit, emit->int16, HEAP_NATTS_MASK), "");
	is = LLVMBuildAnd(b, is, LLVMBuildICmp(b, LLVMIntUGT, word, MotEmitConst(emit, emit->int16, last), ""), "");
	MotEmitGoOnIf(emit, is, unknown);
	word = MotEmitLoad(emit, emit->int8, row, offsetof(MinimalTupleData, t_hoff), 1);
	word = LLVMBuildSub(b, LLVMBuildZExt(b, word, emit->int64, ""), int64 (MINIMAL_TUPLE_OFFSET), "");
	row = at(emit, row, word);
	foreach_ptr(const MotRowJoinKey, key, emit->request->join_keys)
	{
		word = MotEmitLoad(emit, integer_type(emit, key->inner_length), row, key->inner_offset, key->inner_length);
		is = LLVMBuildICmp(b, LLVMIntEQ, sign_extended(emit, word),
						   sign_extended(emit, emit->columns[key->var->varattno - 1].value), "");
		MotEmitGoOnIf(emit, is, miss);
	}
}

void
MotEmitPartner(MotEmit * emit)
{
	LLVMBuilderRef b = emit->builder;
	LLVMValueRef partners = MotEmitAddress(emit, emit->request->partners, emit->pointer);
	LLVMBasicBlockRef none = MotEmitBlock(emit, "no_partner");
	LLVMBasicBlockRef look = MotEmitBlock(emit, "look");
	LLVMBasicBlockRef miss = MotEmitBlock(emit, "miss");
	LLVMBasicBlockRef unknown = MotEmitBlock(emit, "unknown");
	LLVMBasicBlockRef done = MotEmitBlock(emit, "done");
	LLVMBasicBlockRef start;
	LLVMValueRef hash = NULL;
	LLVMValueRef first;
	LLVMValueRef next;
	LLVMValueRef tuple;
	LLVMValueRef row;
	LLVMValueRef word;
	int			last = 0;
	bool		compares = true;

	foreach_ptr(const MotRowJoinKey, key, emit->request->join_keys)
	{
		MotValue	value = emit->columns[key->var->varattno - 1];

		if (value.kind != MOT_INT16 && value.kind != MOT_INT32 && value.kind != MOT_WORD)
			MotDecline(emit, "a key is not an integer");
		MotEmitGoOnIf(emit, LLVMBuildNot(b, MotIsNull(emit, value), ""), none);
		word = hash_integer(emit, value);
		hash = hash == NULL ? word : LLVMBuildXor(b, rotate(emit, hash, 1), word, "");
		last = Max(last, key->inner);
		compares = compares && key->inner_offset >= 0;
	}
	MotEmitStore(emit, hash, partners, offsetof(MotPartners, hash), 4);
	first = LLVMBuildAnd(b, hash, MotEmitLoad(emit, emit->int32, partners, offsetof(MotPartners, mask), 4), "");
	first = LLVMBuildShl(b, LLVMBuildZExt(b, first, emit->int64, ""), int64 (3), "");
	first = MotEmitLoadAt(emit, emit->int64,
						  MotEmitLoad(emit, emit->pointer, partners, offsetof(MotPartners, buckets), 8), first, 8);
	start = LLVMGetInsertBlock(b);
	LLVMBuildBr(b, look);

	LLVMPositionBuilderAtEnd(b, look);
	tuple = LLVMBuildPhi(b, emit->int64, "");
	row = LLVMBuildIntToPtr(b, tuple, emit->pointer, "");
	MotEmitGoOnIf(emit, LLVMBuildICmp(b, LLVMIntNE, tuple, int64 (0), ""), none);
	word = MotEmitLoad(emit, emit->int32, row, offsetof(HashJoinTupleData, hashvalue), 4);
	MotEmitGoOnIf(emit, LLVMBuildICmp(b, LLVMIntEQ, word, hash, ""), miss);

	if (compares)
	{
		compare_integers(emit, row, last, miss, unknown);
		set_found(emit, partners, tuple, true, done);
	}
	else
		LLVMBuildBr(b, unknown);

	LLVMPositionBuilderAtEnd(b, unknown);
	set_found(emit, partners, tuple, false, done);
	LLVMPositionBuilderAtEnd(b, none);
	set_found(emit, partners, int64 (0), true, done);
	LLVMPositionBuilderAtEnd(b, miss);
	next = MotEmitLoad(emit, emit->int64, LLVMBuildIntToPtr(b, tuple, emit->pointer, ""), 0, 8);
	LLVMBuildBr(b, look);
	LLVMAddIncoming(tuple, &first, &start, 1);
	LLVMAddIncoming(tuple, &next, &miss, 1);
	LLVMPositionBuilderAtEnd(b, done);
}
