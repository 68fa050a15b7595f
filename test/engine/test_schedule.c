/*-------------------------------------------------------------------------
 *
 * test_schedule.c
 *	  Small transactions in every interleaving, against a sequential model.
 *
 * Two or three transactions of a few operations each run under the scheduler
 * of schedule.h, which stops them at every stop point of the engine.  Each
 * notes what its operations returned and when they began and ended.  The
 * model is a list of commits in the order of their timestamps; a state is
 * what the first n of them made.  Then, with own changes on top,
 *
 *	SERIALIZABLE	as SNAPSHOT; and those that committed, readers included, can be put
 *					into an order in which each returned what those before it
 *					give, and which ends in the last state.  All orders are
 *					tried in which nobody comes before one that had ended
 *					when it began.  (That of the timestamps mostly is
 *					one; see precede.c)
 *	SNAPSHOT		every transaction returned what one state gives, and of those
 *					that committed nobody changed a row that somebody else had
 *					changed since that state
 *	READ COMMITTED	each operation returned what some state gives that was
 *					newest while it ran; changes started from the state just
 *					before the own commit (no lost update)
 *
 * where a state is one that the clock allows: no newer than what had begun to
 * commit, no older than what had ended (for transactions that failed, too).
 * Two rules are PostgreSQL's own.  Whether a key is free is decided on the
 * newest rows at every level, so with one snapshot a transaction can insert
 * a key that its snapshot still shows, and then sees two rows, or hear of a
 * duplicate that it does not show.  And at READ
 * COMMITTED a change whose row was deleted or moved meanwhile changes nothing,
 * even if the same commit put another row in its place.
 * Nobody fails but for a commit that came in between; so one always gets through.
 * Afterwards all ways to read the table agree with the last state, and when
 * everything is reclaimed nothing is left over.
 *
 * Needs a library with stop points (-DMOT_STOP_POINTS).
 * Each set of transactions runs in all schedules without preemptions, then in
 * all with at most one, two, ..., as long as these are not more than
 * MOT_SCHEDULE_LIMIT (300; a long run takes 20000), and
 * MOT_SCHEDULE_SECONDS is how long random transactions are tried (5).
 *
 *-------------------------------------------------------------------------
 */
#include "test.h"

#if defined(MOT_STOP_POINTS) && !defined(__SANITIZE_THREAD__)

#include <sys/prctl.h>

#include "schedule_actors.h"
#include "schedule_model.h"

/* ------------------------------------------------------------ before, after */

static void
prepare(void)
{
	now = 0;
	if (st.engine == NULL)
		store_create(&st, 64 << 20, 8, MOT_ENGINE_PRIVATE, value_index);
	else
	{
		mot_engine_reset(st.engine);
		store_tables(&st, value_index);
	}
	for (int i = 0; i < SCHEDULE_ACTORS; i++)
		session[i] = open_session(st.engine, (unsigned) i + 1);
	(void) mot_snapshot_take(session[0]);
	mot_txn_begin(session[0], MOT_READ_COMMITTED, 0, 0);
	for (int k = 0; k < KEYS; k++)
	{
		first_state.value[k] = k < 2 ? 10 + k : ABSENT;
		if (k < 2)
			REQUIRE(insert(&st, session[0], 0, (uint64_t) k, 10 + k) == MOT_OK);
	}
	(void) mot_txn_commit(session[0]);
	keeper = open_session(st.engine, SCHEDULE_ACTORS + 1);
	for (int n = 0; with_remains && n < 3; n++)
	{
		/* one row has had key 3, two have had key 2 */
		mot_view	view = begin_view(session[0], MOT_COMMAND_MAX);

		mot_txn_begin(session[0], MOT_READ_COMMITTED, 0, 0);
		REQUIRE(insert(&st, session[0], 0, n == 0 ? 3 : 2, 50 + n) == MOT_OK);
		(void) mot_txn_commit(session[0]);
		view = begin_view(session[0], MOT_COMMAND_MAX);
		(void) mot_snapshot_take(keeper);
		mot_txn_begin(session[0], MOT_READ_COMMITTED, 0, 0);
		REQUIRE(delete_id(&st, session[0], &view, 0, n == 0 ? 3 : 2) == MOT_OK);
		(void) mot_txn_commit(session[0]);
	}
	mot_snapshot_hold(session[0], MOT_TS_NONE);
	for (int i = 0; i < txns; i++)
	{
		program		p = txn[i].program;

		memset(&txn[i], 0, sizeof(txn[i]));
		txn[i].program = p;
	}
}

static void
print_state(const char *what, const state *s)
{
	printf("#   %s:", what);
	for (int k = 0; k < KEYS; k++)
		printf(" %lld", (long long) s->value[k]);
	printf("\n");
}

static void
print_transactions(void)
{
	static const char *const level_name[] = {"READ COMMITTED", "SNAPSHOT", "SERIALIZABLE"};

	printf("# at %s%s%s\n", level_name[level], value_index ? ", with an index of values" : "",
		   with_remains ? ", with remains of deleted rows" : "");
	for (int i = 0; i < txns; i++)
	{
		const transaction *t = &txn[i];

		printf("# %c: %s (%s), timestamp %llu, %llu to %llu, commit began %llu\n", 'A' + i,
			   t->failed ? "failed" : "committed", mot_status_name(t->why), (unsigned long long) t->ts,
			   (unsigned long long) t->began, (unsigned long long) t->ended, (unsigned long long) t->commit_began);
		for (int n = 0; n < t->program.ops; n++)
		{
			const operation *op = &t->program.op[n];
			const result *r = &t->result[n];

			printf("#   %s %d", op_name[op->kind], op->key);
			if (op->kind == MOVE)
				printf(" to %d", op->to);
			if (n < t->done)
			{
				printf(": %s, made %lld, saw", r->outcome == DONE ? "done" : r->outcome == NONE ? "none" : "duplicate",
					   (long long) r->made);
				for (int k = 0; k < (op->kind >= SCAN && op->kind <= SCAN_BY_VALUE ? KEYS : 1); k++)
					printf(" %lld", (long long) r->seen.value[k]);
				printf(" (%llu to %llu)", (unsigned long long) r->began, (unsigned long long) r->ended);
			}
			printf("\n");
		}
	}
	for (int i = 0; i <= commit_count; i++)
		print_state("state", &states[i]);
}

/* commits that come before others with smaller timestamps, in all runs */
static uint64_t preceding;

/*
 * Whoever fails does so because of somebody who has committed meanwhile: not of
 * one who never did, and in no circle of any size do all fail.
 */
static bool
failed_for_nothing(const transaction *t)
{
	if (!t->failed || t->why == MOT_BUSY)
		return false;
	for (int i = 0; i < commit_count; i++)
		if (commits[i]->commit_began < t->ended && commits[i]->ended > t->began)
			return false;
	return true;
}

static bool
everything_is_right(void)
{
	mot_view	view;
	mot_memory_report report;
	state		seen;
	bool		changed[KEYS];

	commit_count = 0;
	for (int i = 0; i < txns; i++)
		if (txn[i].ts != 0)
		{
			int			n = commit_count++;

			for (; n > 0 && commits[n - 1]->ts > txn[i].ts; n--)
				commits[n] = commits[n - 1];
			commits[n] = &txn[i];
		}
	states[0] = first_state;
	for (int i = 0; i < commit_count; i++)
	{
		states[i + 1] = states[i];
		changes(commits[i], changed, &states[i + 1]);
	}
	for (int i = 0; i < txns; i++)
	{
		if (txn[i].failed && level == MOT_READ_COMMITTED && txn[i].why != MOT_BUSY)
		{
			printf("# a transaction failed at READ COMMITTED\n");
			return false;
		}
		if (txn[i].failed && txn[i].why == MOT_BUSY && no_deadlock)
		{
			printf("# transaction %c was in a deadlock\n", 'A' + i);
			return false;
		}
		if (failed_for_nothing(&txn[i]))
		{
			printf("# transaction %c failed though nobody has committed\n", 'A' + i);
			return false;
		}
		if (txn[i].waited_for_nothing)
		{
			printf("# transaction %c waited where nothing was in its way\n", 'A' + i);
			return false;
		}
		if (!locks_were_held(&txn[i]))
		{
			printf("# what transaction %c had locked was changed\n", 'A' + i);
			return false;
		}
		if (txn[i].saw_twice && (level == MOT_READ_COMMITTED || (level == MOT_SERIALIZABLE && !txn[i].failed)))
		{
			printf("# transaction %c saw a key twice\n", 'A' + i);
			return false;
		}
		if (!(level == MOT_READ_COMMITTED ? read_committed_is_right(&txn[i]) : snapshot_is_right(&txn[i])))
		{
			printf("# transaction %c is not right\n", 'A' + i);
			return false;
		}
	}
	if (level == MOT_SERIALIZABLE && !serial_order_exists())
	{
		printf("# those that committed have no serial order\n");
		return false;
	}
	for (int i = 0; i < commit_count; i++)
		preceding += level == MOT_SERIALIZABLE && !runs_on(commits[i], &states[i], false);
	view = begin_view(session[0], MOT_COMMAND_MAX);
	for (op_kind kind = SCAN; kind <= SCAN_BY_VALUE; kind++)
		if (!do_scan(0, &view, kind, &seen) || memcmp(&seen, &states[commit_count], sizeof(seen)) != 0)
		{
			print_state(op_name[kind], &seen);
			return false;
		}
	end_view(session[0]);
	end_view(keeper);
	drain(&st, session[0]);
	mot_memory_report_get(st.engine, &report);
	if (report.retired_objects != 0 || st.by_id.index->stale != 0 ||
		(value_index && st.by_value.index->stale != 0))
	{
		printf("# left over: %llu objects, %lld stale entries\n", (unsigned long long) report.retired_objects,
			   (long long) st.by_id.index->stale);
		return false;
	}
	return true;
}

static bool
verify(void)
{
	bool		right = everything_is_right();

	if (!right)
		print_transactions();
	CHECK(right);
	for (int i = 0; i < SCHEDULE_ACTORS; i++)
		mot_session_close(session[i]);
	mot_session_close(keeper);
	return right;
}

static uint64_t runs_made;

static uint64_t limit;			/* of schedules */

/* false: these were not all */
static bool
explore(int most_preemptions, uint64_t most)
{
	uint64_t	runs = schedule_explore(txns + reclaiming, act, most_preemptions, most, prepare, verify);

	runs_made += runs;
	return runs < most;
}

/* ----------------------------------------------------------------- programs */

/* "u0 g1" is: update key 0, get key 1; see parse() for the letters */
static void
parse(const char *text, program *p)
{
	static const char letters[] = "gSIVlnhkipuadmsot";

	p->ops = 0;
	for (; *text; text ++)
	{
		const char *found = strchr(letters, *text);
		operation  *op;

		if (*text == ' ')
			continue;
		REQUIRE(found != NULL && p->ops < OPS);
		op = &p->op[p->ops++];
		op->caught = *text == 't';
		op->kind = op->caught ? INSERT : (op_kind) (found - letters);
		op->key = op->to = 0;
		if (strchr("glnhkipuadmt", *text))
			op->key = *++text -'0';
		if (op->kind == MOVE)
			op->to = *++text -'0';
	}
}

static void
try(const char *a, const char *b, const char *c, bool index, int most_preemptions)
{
	parse(a, &txn[0].program);
	parse(b, &txn[1].program);
	txns = c ? 3 : 2;
	if (c)
		parse(c, &txn[2].program);
	value_index = index;
	for (level = MOT_READ_COMMITTED; level <= MOT_SERIALIZABLE; level++)
		for (int n = 0; n <= most_preemptions; n++)
			if (!explore(n, limit))
				break;
}

/* at SERIALIZABLE only, and perhaps a fourth */
static void
try_serial(const char *a, const char *b, const char *c, const char *d, int most_preemptions)
{
	parse(a, &txn[0].program);
	parse(b, &txn[1].program);
	parse(c, &txn[2].program);
	txns = d ? 4 : 3;
	if (d)
		parse(d, &txn[3].program);
	value_index = false;
	level = MOT_SERIALIZABLE;
	for (int n = 0; n <= most_preemptions; n++)
		if (!explore(n, limit))
			break;
}

static void
report_runs(void)
{
	printf("# %llu schedules, %llu commits before their turn\n", (unsigned long long) runs_made,
		   (unsigned long long) preceding);
	runs_made = preceding = 0;
}

static void
lost_updates(void)
{
	try("a0", "a0", NULL, false, 4);
	try("g0 a0", "g0 a0", NULL, false, 3);
	try("a0 a1", "a1 a0", NULL, false, 3);
	try("a0", "a0", NULL, true, 3);
	try("l0 a0", "l0 a0", NULL, false, 3);
	try("h0 a0", "h0 a0", NULL, false, 2);
	try("h0", "a0", "h0 g0", false, 2);
	try("k0 a0", "k0 m02", NULL, false, 2);
	try("k0 a0", "d0", "k0", false, 2);

	/*
	 * whoever shares the key must not be shown a change that its transaction
	 * has changed again
	 */
	try("k0", "u0 u0", NULL, false, 2);
	try("a0", "a0", "a0", false, 2);
	report_runs();
}

static void
row_locks(void)
{
	/*
	 * of all strengths, before a change and after it, alone and beside each
	 * other
	 */
	try("n0 g0", "h0 g0", "k0", false, 2);
	try("h0 a0", "k0 a0", NULL, false, 2);
	try("h0 h0 a0", "h0 d0", NULL, false, 2);
	try("k0 h0 l0", "k0 a0", NULL, false, 2);
	try("n0 l0", "k0 g0", NULL, false, 2);
	try("a0 l0 g0", "a0", NULL, false, 2);
	try("a0 l0 g0", "k0 a0", NULL, true, 2);
	try("a0 h0 g0", "d0", NULL, false, 2);
	try("h0 a1", "h1 a0", NULL, false, 2);
	try("h0 h1", "m02 m10", NULL, false, 2);
	try("h0", "h0", "a0", false, 2);
	report_runs();

	/*
	 * who shares a row and wants more of it never meets somebody who has just
	 * taken it and is about to find the share (three preemptions bring that
	 * about)
	 */
	no_deadlock = true;
	limit *= 10;
	try("h0 l0", "l0", NULL, false, 3);
	try("h0 n0", "l0", NULL, false, 3);
	try("k0 h0", "l0", NULL, false, 3);
	limit /= 10;
	try("k0 h0 n0 l0", "l0", NULL, false, 2);
	try("h0 l0", "l0", "l0", false, 2);
	no_deadlock = false;
	report_runs();

	/* let go of by ROLLBACK TO, but not what was held before */
	try("s h0 o g1", "a0", NULL, false, 2);
	try("h0 s l0 o", "h0 a0", NULL, false, 2);
	try("k0 s h0 o", "a0", "d0", false, 1);
	try("s a0 l0 o", "a0", NULL, false, 2);
	try("a0 s l0 o", "a0", NULL, false, 2);
	try("h0 s a0 o", "h0 a0", NULL, false, 2);
	try("l0 s d0 o", "k0 a0", NULL, true, 1);
	report_runs();
}

static void
upserts(void)
{
	try("p2", "p2", NULL, false, 3);
	try("p2 p2", "p2 g2", NULL, true, 2);
	try("p0", "d0", NULL, false, 3);
	try("p0", "d0 i0", NULL, false, 2);
	try("p2", "m02", NULL, false, 2);
	try("p0", "m02", NULL, true, 2);
	try("s p2 o p2", "p2", NULL, false, 2);
	try("p2 p3", "p3 p2", NULL, false, 2);
	try("p2", "p2", "p2", false, 2);
	try("p0", "k0 g0", "a0", false, 1);
	/* DO NOTHING has found the key taken, and there is more to come */
	try("i0 a1", "S d0", NULL, false, 2);
	try("i0 i2", "g2 d0", NULL, true, 2);
	try_serial("S", "i0 i2", "d1", NULL, 1);
	try_serial("g0 g2", "i0 a1", "g1 d0", NULL, 1);
	try_serial("g2 p0", "i2 a1", "g1 d0", NULL, 1);
	report_runs();
}

static void
dirty_reads_and_skew(void)
{
	try("a0 a1", "g0 g1", NULL, false, 3);
	try("a0 a1", "S", NULL, true, 3);
	try("a0 a1", "I", NULL, false, 3);
	try("i2 i3", "V", NULL, true, 3);
	try("d0 i2", "S I", NULL, true, 2);
	try("m02 m10", "I V", NULL, true, 2);
	try("s a0 o a1", "g0 g1", NULL, false, 2);
	report_runs();
}

static void
write_skew(void)
{
	try("g1 a0", "g0 a1", NULL, false, 4);
	try("g0 g1 a0", "g0 g1 a1", NULL, false, 3);
	try("S i2", "S i3", NULL, false, 3);
	try("I i2", "I i3", NULL, true, 2);
	try("V a0", "V a1", NULL, true, 2);
	try("g2 i3", "g3 i2", NULL, false, 3);
	try("S d0", "S d1", NULL, false, 2);
	try("g1 a0", "g0 a1", "g0 g1", false, 2);
	report_runs();
}

/*
 * One reads what another changes, and changes something else itself: it
 * can come first, unless somebody has seen the one and missed the other.
 */
static void
before_their_turn(void)
{
	limit *= 4;
	/* the receipt's date, the receipts, a report */
	try_serial("g0 i2", "a0", "g0 I", NULL, 2);
	try_serial("g0 i2", "a0", "g0 g2", NULL, 2);
	try_serial("g0 a1", "a0", "g1", NULL, 2);
	try_serial("g0 a1", "a0", "g0 g1", NULL, 2);
	try_serial("g0 d1", "u0", "S", NULL, 2);
	/* the third has written, too */
	try_serial("g0 a1", "a0", "g1 i2", NULL, 2);
	try_serial("g0 a1", "a0", "g0 g1 i2", NULL, 2);
	try_serial("g2 a1", "i2", "g2 g1", NULL, 2);
	try_serial("I i3", "i2", "I", NULL, 2);
	try_serial("g2 m13", "i2", "g3 i0", NULL, 2);
	CHECK(preceding > 0);
	report_runs();
	/* both of two, in a row and in a circle */
	try_serial("g0 a1", "g1 i2", "a0", NULL, 2);
	try_serial("g0 a1", "g1 i2", "g2 a0", NULL, 2);
	try_serial("g0 a1", "g1 i2", "a0", "g1 g2", 1);
	try_serial("g0 a1", "g1 i2", "a0 i3", "I", 1);
	try_serial("g0 i2", "g1 i3", "a0 a1", "I", 1);
	/* a key that is taken or free only since the snapshot */
	try_serial("g0 i1", "a0 d1", "g1", NULL, 2);
	try_serial("g0 m12", "a0 i2", "g2", NULL, 2);
	try_serial("g0 s i2 o a1", "a0 i2", "g0 g1", NULL, 1);
	report_runs();
	limit /= 4;
}

/*
 * A duplicate that is caught tells of a row which the snapshot may lack, or which
 * is gone before the commit; one that is not found, and an insert taken back, that there is none.
 */
static void
caught_duplicates(void)
{
	/* who writes nothing afterwards has seen it all the same */
	try_serial("g0 t2", "a0 i2", "g0 g2", NULL, 2);
	try_serial("g0 t2", "a0 i2", "g0", NULL, 2);
	try_serial("g0 t2 a1", "a0 i2", "g0 g1", NULL, 2);
	try_serial("t2 g0", "i2", "g2 a0", NULL, 2);
	try_serial("t1 g0", "a0", "d1", NULL, 2);
	/* the row in the way is the one that the snapshot shows elsewhere */
	try("t2 g1", "m12", NULL, false, 2);
	/* each finds the other's key taken, which the other one takes away */
	try("t0 d1", "t1 d0", NULL, false, 3);
	try("t0 a1", "g1 d0", NULL, false, 3);
	try("t2 a1", "t3 a0", NULL, false, 2);
	/* or free, and gives it back */
	try("s i2 o a1", "g1 i2", NULL, false, 3);
	try("s i2 o a1", "s i3 o g1 i2", NULL, false, 2);
	try_serial("s i2 o a1", "g1 i2", "g0 t2", NULL, 1);
	try_serial("g0 s i1 o", "a0 d1", "g1", NULL, 2);
	try("s m12 o a0", "g0 i2", NULL, true, 2);
	/* one that is its own tells it nothing */
	try("g0 i2 t2", "a0", NULL, false, 2);
	report_runs();
}

/* ranges that everybody reads and inserts into: see failed_for_nothing */
static void
hot_ranges(void)
{
	try("I i2", "I i2", NULL, false, 3);
	try("V i2", "V i3", NULL, true, 2);
	try("I i2", "I i3", "g0 g1", false, 1);
	try("I i2", "V i3", "S a0", true, 1);
	try("g2 i2", "g2 i2", NULL, false, 3);
	try("g2 i2", "g2 i2", "g2 i2", false, 1);
	/* an insert that is taken back, by whoever goes on or fails */
	try("I a0", "s i2 o a1", NULL, false, 3);
	try("g2 a0", "s i2 o g1", NULL, false, 2);
	try("V a0", "s i2 m13 o", NULL, true, 2);
	report_runs();
}

static void
unique_keys(void)
{
	try("i2", "i2", NULL, false, 4);
	try("i2 d2", "i2", NULL, false, 3);
	try("d0 i0", "i0", NULL, false, 3);
	try("d0 i0", "d0 i0", NULL, true, 2);
	try("m02", "i2", NULL, false, 3);
	try("m02", "m12", NULL, false, 3);
	try("m02 m10", "i0", NULL, false, 2);
	try("m02 m20", "i2 d2", NULL, true, 2);
	try("s i2 o", "i2", NULL, false, 3);
	try("d0", "i0", "g0", false, 2);
	try("i2", "i2", "i2", false, 2);
	report_runs();
}

/* an entry that is there already hides a new key from the tree's versions */
static void
keys_of_deleted_rows(void)
{
	with_remains = true;
	try("g3 a0", "g0 i3", NULL, false, 3);
	try("g2 a0", "g0 i2", NULL, false, 3);
	try("I a0", "g0 i3", NULL, false, 2);
	try("V a0", "g0 i2", NULL, true, 2);
	try("S a0", "g0 i2", NULL, false, 2);
	try("i2", "i2", NULL, false, 3);
	try("i3 d3", "i3", "g3", false, 2);
	try("m02", "i2", NULL, true, 2);
	with_remains = false;
	report_runs();
}

static void
beside_reclamation(void)
{
	reclaiming = true;
	try("a0", "g0 g0", NULL, false, 2);
	try("d0 i0", "I", NULL, true, 2);
	try("m02", "g0 g2", NULL, true, 2);
	try("i2 d2", "V", NULL, true, 2);
	try("s i2 o", "S", NULL, false, 2);
	try("a0", "a0", NULL, true, 2);
	reclaiming = false;
	report_runs();
}

static void
any_transactions(void)
{
	static const char *const some[] = {
		"g0", "g1", "g2", "S", "I", "V", "l0", "l1", "n0", "h0", "h1", "k0", "k1", "i0", "i2", "i3", "p0", "p2", "p3", "u0", "u1", "a0", "a1", "a2", "d0", "d1", "d2",
		"m02", "m01", "m12", "m20", "t0", "t2", "t3", "s i2 o", "s a0 o", "s d0 o", "s h0 o", "s l0 o", "s p2 o"
	};
	const char *seconds = getenv("MOT_SCHEDULE_SECONDS");
	double		until = test_seconds() + (seconds ? atof(seconds) : 5);
	char text[	3][64];

	while (test_seconds() < until && atomic_load(&test_failed_checks) == 0)
	{
		bool		index = test_random() % 2;
		int			n = test_random() % 3 ? 2 : 3;

		for (int t = 0; t < n; t++)
		{
			int			left = n == 2 ? 3 : 2;

			text[		t][0] = '\0';

			for (int i = (int) (test_random() % (unsigned) left); i >= 0 && left > 0; i--)
			{
				const char *op = some[test_random() % (sizeof(some) / sizeof(some[0]))];

				if (op[0] == 's' && text[t][0] != '\0')
					op = "a0";
				strcat(strcat(text[t], op), " ");
				left -= op[0] == 's' ? 3 : 1;
			}
		}
		reclaiming = test_random() % 4 == 0;
		parse(text[0], &txn[0].program);
		parse(text[1], &txn[1].program);
		if (n == 3)
			parse(text[2], &txn[2].program);
		txns = n;
		value_index = index;
		with_remains = test_random() % 2;
		level = (mot_isolation) (test_random() % 3);
		(void) (explore(1, limit / 4 + 1) && explore(2, limit / 4 + 1));
	}
	reclaiming = with_remains = false;
	report_runs();
}

/* three or four at SERIALIZABLE that read here and write there */
static void
any_serial(void)
{
	static const char *const reads[] = {"g0", "g1", "g2", "g3", "I", "S", "V", "k0", "h1"};
	static const char *const writes[] = {
		"a0", "a1", "u0", "i2", "i3", "a2", "d0", "d1", "m12", "m03", "p0", "p2", "i0", "s i2 o", "s a1 o", "s i3 o a1",
		"t2", "t3", "t0", "t2 a1", "t0 i3"
	};
	const char *seconds = getenv("MOT_SCHEDULE_SECONDS");
	double		until = test_seconds() + (seconds ? atof(seconds) : 5);

	level = MOT_SERIALIZABLE;
	while (test_seconds() < until && atomic_load(&test_failed_checks) == 0)
	{
		txns = 3 + (int) (test_random() % 2);
		for (int t = 0; t < txns; t++)
		{
			char text[	64] = "";
			uint64_t	r = test_random();

			/*
			 * half of them read first and then write, some only the one or
			 * the other
			 */
			if (r % 8 != 0)
				strcat(text, reads[test_random() % (sizeof(reads) / sizeof(reads[0]))]);
			if (r % 3 == 0)
				strcat(text, reads[test_random() % (sizeof(reads) / sizeof(reads[0]))]);
			if (r % 5 < 3 || r % 8 == 0)
				strcat(text, writes[test_random() % (r % 7 < 5 ? 8 : sizeof(writes) / sizeof(writes[0]))]);
			parse(text, &txn[t].program);
		}
		value_index = test_random() % 4 == 0;
		with_remains = test_random() % 4 == 0;
		runs_made += 40;
		if (!schedule_at_random(txns, act, 40, prepare, verify))
			break;
	}
	with_remains = false;
	CHECK(preceding > 0);
	report_runs();
}

int
main(int argc, char **argv)
{
	const char *l = getenv("MOT_SCHEDULE_LIMIT");

	test_begin(argc, argv);
	limit = l ? strtoull(l, NULL, 0) : 300;

	/*
	 * every run starts with fresh memory; huge pages would be zeroed for
	 * nothing
	 */
	(void) prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	schedule.given_up = print_transactions;
	RUN(lost_updates);
	RUN(row_locks);
	RUN(upserts);
	RUN(dirty_reads_and_skew);
	RUN(write_skew);
	RUN(before_their_turn);
	RUN(caught_duplicates);
	RUN(hot_ranges);
	RUN(unique_keys);
	RUN(keys_of_deleted_rows);
	RUN(beside_reclamation);
	RUN(any_transactions);
	RUN(any_serial);
	mot_engine_destroy(st.engine);
	return test_end();
}

#else

int
main(void)
{
	printf("ok 1 - schedules # SKIP needs stop points, and one thread\n1..1\n");
	return 0;
}

#endif
