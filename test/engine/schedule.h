/*-------------------------------------------------------------------------
 *
 * schedule.h
 *	  A deterministic scheduler: several actors in one thread, and every order
 *	  in which they can take turns.
 *
 * An actor is a function on a stack of its own.  It runs until it comes to a
 * stop point (MOT_STOP_POINT in the engine, or schedule_point), where the
 * scheduler says who goes on.  Nothing else ever switches, so a run is
 * determined by these choices, and schedule_explore() runs the same actors
 * again and again until it has made all of them.
 *
 * To take an actor off the processor where it could go on is a preemption;
 * their number in a run is bounded (Musuvathi and Qadeer, PLDI 2007: nearly
 * all bugs need one or two).  Where an actor has to wait, everybody else is
 * tried, and that is no preemption: in mot_backoff ("backoff") for somebody
 * else to take a step, in schedule_wait for a condition.  If all wait, the
 * one that came last is told so: a deadlock, of which it is the victim.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MOT_SCHEDULE_H
#define MOT_SCHEDULE_H

#include <ucontext.h>

#include "internal.h"
#include "test.h"

#define SCHEDULE_ACTORS 4
#define SCHEDULE_STACK	(256 * 1024)
#define SCHEDULE_MAX	4096	/* choices in a run */
#define SCHEDULE_ROUND	4		/* stop points between two looks of a spinner,
								 * at most */

typedef enum actor_state
{
	ACTOR_READY, ACTOR_SPINS, ACTOR_WAITS, ACTOR_VICTIM, ACTOR_DONE
} actor_state;

typedef struct schedule_choice
{
	unsigned char options[SCHEDULE_ACTORS];
	unsigned char count;
	unsigned char taken;		/* which option */
	bool		preempts;		/* options after the first are preemptions */
	const char *where;
	unsigned char who;			/* stopped there */
} schedule_choice;

static struct
{
	/* the actors */
	int			actors;
	bool		random;
	void		(*act) (int me);
	actor_state state[SCHEDULE_ACTORS];
	bool		(*condition[SCHEDULE_ACTORS]) (void *arg);
	void	   *condition_arg[SCHEDULE_ACTORS];
	uint64_t	waiting_since[SCHEDULE_ACTORS];
	unsigned	since_spin[SCHEDULE_ACTORS];	/* stop points since it span */
	ucontext_t	context[SCHEDULE_ACTORS];
	ucontext_t	explorer;
	char	   *stack[SCHEDULE_ACTORS];
	int			running;		/* or -1 */

	/* the run */
	schedule_choice choice[SCHEDULE_MAX];
	int			made;
	int			given;			/* choices that this run repeats */
	uint64_t	steps;
	int			preemptions;
	int			most_preemptions;
	void		(*given_up) (void); /* says what the actors were doing */
}			schedule;

static inline void
schedule_body(void)
{
	int			me = schedule.running;

	schedule.act(me);
	schedule.state[me] = ACTOR_DONE;
}

/* who may go on? */
static inline void
schedule_options(schedule_choice *c, int current)
{
	c->count = 0;
	c->preempts = false;
	for (int i = 0; i < schedule.actors; i++)
		if (schedule.state[i] == ACTOR_WAITS && schedule.condition[i] (schedule.condition_arg[i]))
			schedule.state[i] = ACTOR_READY;
	if (current >= 0 && schedule.state[current] == ACTOR_READY)
	{
		c->options[c->count++] = (unsigned char) current;
		c->preempts = true;
		if (schedule.preemptions >= schedule.most_preemptions)
			return;
	}
	for (int i = 0; i < schedule.actors; i++)
		if (i != current && schedule.state[i] == ACTOR_READY)
			c->options[c->count++] = (unsigned char) i;
	/* only spinners: let them look again, in turn */
	for (int n = 1; c->count == 0 && n <= schedule.actors; n++)
	{
		int			i = ((current < 0 ? 0 : current) + n) % schedule.actors;

		if (schedule.state[i] == ACTOR_SPINS)
			c->options[c->count++] = (unsigned char) i;
	}
}

/* how the last run went, for a failure's report: its first choices */
static inline void
schedule_print(int most)
{
	for (int i = 0; i < schedule.made && i < most; i++)
	{
		const schedule_choice *c = &schedule.choice[i];

		if (c->taken > 0 || !c->preempts)
			printf("#   choice %d: %c at %s, then %c\n", i,
				   c->who == SCHEDULE_ACTORS ? '-' : 'A' + c->who, c->where, 'A' + c->options[c->taken]);
	}
}

/* most preemptions between the operations of the actors' programs */
static inline unsigned char
schedule_random_choice(const schedule_choice *c)
{
	uint64_t	r = test_random();

	if (c->preempts && r % (strcmp(c->where, "operation") == 0 ? 2 : 16) != 0)
		return 0;
	return (unsigned char) ((r >> 8) % c->count);
}

/* the next one to run, or -1 when all are done */
static inline int
schedule_next(const char *where, int current)
{
	schedule_choice *c;

	if (schedule.made >= SCHEDULE_MAX || schedule.steps > 1000000)
	{
		if (schedule.given_up)
			schedule.given_up();
		schedule_print(60);
		REQUIRE(!"the actors do not come to an end");
	}
	c = &schedule.choice[schedule.made];
	schedule_options(c, current);
	if (c->count == 0)
	{
		int			victim = -1;

		for (int i = 0; i < schedule.actors; i++)
			if (schedule.state[i] == ACTOR_WAITS &&
				(victim < 0 || schedule.waiting_since[i] > schedule.waiting_since[victim]))
				victim = i;
		if (victim >= 0)
			schedule.state[victim] = ACTOR_VICTIM;
		return victim;
	}
	if (c->count > 1)
	{
		c->where = where;
		c->who = (unsigned char) (current < 0 ? SCHEDULE_ACTORS : current);
		if (schedule.made >= schedule.given)
			c->taken = schedule.random ? schedule_random_choice(c) : 0;
		if (c->preempts && c->taken > 0)
			schedule.preemptions++;
		REQUIRE(c->taken < c->count);
		schedule.made++;
		return c->options[c->taken];
	}
	return c->options[0];
}

/* the caller (an actor) stops here; goes on when it is chosen */
static inline void
schedule_stop(const char *where)
{
	int			me = schedule.running;
	int			next = schedule_next(where, me);

	schedule.steps++;

	/*
	 * Somebody got on: spinners may look again after it.  A spinner that goes
	 * round has not got on, though there are stop points on its way.
	 */
	if (schedule.state[me] == ACTOR_SPINS)
		schedule.since_spin[me] = 0;
	else if (++schedule.since_spin[me] > SCHEDULE_ROUND)
		for (int i = 0; i < schedule.actors; i++)
			if (i != me && schedule.state[i] == ACTOR_SPINS)
				schedule.state[i] = ACTOR_READY;
	if (next == me)
	{
		if (schedule.state[me] == ACTOR_SPINS)
			schedule.state[me] = ACTOR_READY;
		return;
	}
	schedule.running = next;
	swapcontext(&schedule.context[me], &schedule.context[next]);
	schedule.running = me;
	if (schedule.state[me] == ACTOR_SPINS)
		schedule.state[me] = ACTOR_READY;
}

/* a stop point of the test's own, or the engine's (as mot_stop_point_handler) */
static inline void
schedule_point(const char *name)
{
	int			me = schedule.running;

	if (me < 0)
		return;
	if (strcmp(name, "backoff") == 0)
		schedule.state[me] = ACTOR_SPINS;
	schedule_stop(name);
}

/* until condition(arg); false: everybody waits, and the caller has to give up */
static inline bool
schedule_wait(bool (*condition) (void *arg), void *arg)
{
	int			me = schedule.running;

	schedule.condition[me] = condition;
	schedule.condition_arg[me] = arg;
	schedule.waiting_since[me] = schedule.steps;
	schedule.state[me] = ACTOR_WAITS;
	schedule_stop("wait");
	if (schedule.state[me] == ACTOR_VICTIM)
	{
		schedule.state[me] = ACTOR_READY;
		return false;
	}
	return true;
}

static inline void
schedule_make_ready(ucontext_t * context, int actor)
{
	if (schedule.stack[actor] == NULL)
		schedule.stack[actor] = malloc(SCHEDULE_STACK);
	REQUIRE(schedule.stack[actor] != NULL && getcontext(context) == 0);
	context->uc_stack.ss_sp = schedule.stack[actor];
	context->uc_stack.ss_size = SCHEDULE_STACK;
	context->uc_link = &schedule.explorer;
	makecontext(context, schedule_body, 0);
	schedule.state[actor] = ACTOR_READY;
	schedule.since_spin[actor] = SCHEDULE_ROUND;
}

/* one run with the choices given so far */
static inline void
schedule_run(void)
{
	int			next;

	schedule.made = 0;
	schedule.steps = 0;
	schedule.preemptions = 0;
	for (int i = 0; i < schedule.actors; i++)
		schedule_make_ready(&schedule.context[i], i);
	next = schedule_next("start", -1);
	while (next >= 0)
	{
		schedule.running = next;
		/* comes back when an actor is done */
		swapcontext(&schedule.explorer, &schedule.context[next]);
		for (int i = 0; i < schedule.actors; i++)
			if (schedule.state[i] == ACTOR_SPINS)
				schedule.state[i] = ACTOR_READY;
		schedule.running = -1;
		next = schedule_next("done", -1);
	}
	schedule.running = -1;
}

/* the next untried run: the last choice that can be made otherwise; false when there is none */
static inline bool
schedule_advance(void)
{
	int			last = schedule.made - 1;

	while (last >= 0 && schedule.choice[last].taken + 1 >= schedule.choice[last].count)
		last--;
	if (last < 0)
		return false;
	schedule.choice[last].taken++;
	schedule.given = last + 1;
	return true;
}

/*
 * Run all schedules of these actors (at most "limit"), each between prepare()
 * and verify(), which says whether all was well.  Returns how many there were.
 */
static inline uint64_t
schedule_explore(int actors, void (*act) (int me), int most_preemptions, uint64_t limit,
				 void (*prepare) (void), bool (*verify) (void))
{
	uint64_t	runs = 0;

	schedule.actors = actors;
	schedule.act = act;
	schedule.most_preemptions = most_preemptions;
	schedule.given = 0;
	schedule.random = false;
	schedule.running = -1;
	do
	{
		prepare();
		mot_stop_point_handler = schedule_point;
		schedule_run();
		mot_stop_point_handler = NULL;
		runs++;
		if (!verify())
		{
			schedule_print(SCHEDULE_MAX);
			break;
		}
	} while (runs < limit && schedule_advance());
	return runs;
}

/* the same for so many schedules made at random; false: not all was well */
static inline bool
schedule_at_random(int actors, void (*act) (int me), uint64_t runs,
				   void (*prepare) (void), bool (*verify) (void))
{
	bool		good = true;

	schedule.actors = actors;
	schedule.act = act;
	schedule.most_preemptions = SCHEDULE_MAX;
	schedule.given = 0;
	schedule.random = true;
	schedule.running = -1;
	while (good && runs-- > 0)
	{
		prepare();
		mot_stop_point_handler = schedule_point;
		schedule_run();
		mot_stop_point_handler = NULL;
		good = verify();
		if (!good)
			schedule_print(SCHEDULE_MAX);
	}
	return good;
}

#endif							/* MOT_SCHEDULE_H */
